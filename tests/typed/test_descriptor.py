"""Copies: tile, token, leader, coordinates and operation must fit the map; and what a descriptor is on the host."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import oxidecopy as ox
from oxidecopy.errors import ExportError
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.ops import REDUCE
from oxidecopy.isa.swizzle import SWIZZLES
from oxidecopy.program.program import MapParam
from oxidecopy.typed import dtypes, geometry
from tests.helpers.recordings import recorded, refused

COPIES = ("g2s", "g2s_multicast", "s2g", "reduce")
ALIGNMENTS = (ox.A16, ox.A128, ox.A256, ox.A512, ox.A1024)
WHOLE = [name for name, info in DTYPES.items() if info.bits % 8 == 0]


def issue(name: str, desc: Any, leader: Any, tile: Any, coords: Any, token: Any) -> None:
    """A copy by name, with arguments that are right beside those given."""
    match name:
        case "g2s":
            desc.g2s(leader, tile, coords, token)
        case "g2s_multicast":
            desc.g2s_multicast(leader, tile, coords, token, cta_mask=1)
        case "s2g":
            desc.s2g(leader, tile, coords)
        case _:
            desc.reduce(ox.reduce.add, leader, tile, coords)


def rule_of(name: str, param: MapParam, *, tile: Any = None, coords: Any = None, leader: Any = None, token: Any = None) -> str:
    """The rule that refuses a copy; "" when none does. `tile` makes one from a CTA."""

    def pipe(cta: ox.ClusterCta, src: Any) -> None:
        target = tile(cta) if tile else cta.shared(src)
        full = cta.barrier().init(1)
        at = (0,) * param.rank if coords is None else coords
        with cta.elect() as one:
            issue(name, src, leader or one, target, at, token or full.arrive_expect_tx(one, 0))

    try:
        recorded(pipe, cluster=(2, 1, 1), src=param)
    except ox.errors.RecordError as error:
        return error.rule
    return ""


def a_map(dtype: str = "f32", box: tuple[int, ...] = (8, 8), swizzle: str = "none") -> MapParam:
    return MapParam(name="src", dtype=dtype, box_dim=box, element_strides=(1,) * len(box), swizzle=swizzle)


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_ranks(name: str, rank: int) -> None:
    param = a_map(box=(2,) * (rank - 1) + (8,))
    for given in range(7):
        assert rule_of(name, param, coords=(0,) * given) == ("" if given == rank else "OX1013")
    assert rule_of(name, param, coords=[0] * rank) == "OX1013"
    assert rule_of(name, param, coords=(0.5,) * rank) == "OX1029"


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("swizzle", SWIZZLES)
def test_alignments(name: str, swizzle: str) -> None:
    for align in ALIGNMENTS:
        good = align.bytes >= SWIZZLES[swizzle].repeat_bytes
        made = rule_of(name, a_map(swizzle=swizzle), tile=lambda cta, a=align: cta.shared(ox.f32, (8, 8), align=a))
        assert made == ("" if good else "OX1010")


@pytest.mark.parametrize("dtype", WHOLE)
def test_element_types(dtype: str) -> None:
    for other in WHOLE:
        made = rule_of("g2s", a_map(dtype), tile=lambda cta, o=other: cta.shared(getattr(dtypes, o), (8, 8), align=ox.A1024))
        assert made == ("" if other == dtype else "OX1011")


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("box", [(8, 4), (4, 8), (8,), (1, 8, 8), (64,)])
def test_boxes(name: str, box: Any) -> None:
    assert rule_of(name, a_map(), tile=lambda cta: cta.shared(ox.f32, box, align=ox.A1024)) == "OX1012"


def test_a_box_with_element_strides() -> None:
    param = MapParam(name="src", dtype="f32", box_dim=(8, 8), element_strides=(3, 1))
    assert rule_of("g2s", param, tile=lambda cta: cta.shared(ox.f32, (3, 8), align=ox.A128)) == ""
    assert rule_of("g2s", param, tile=lambda cta: cta.shared(ox.f32, (8, 8), align=ox.A128)) == "OX1012"


@pytest.mark.parametrize("name", COPIES)
def test_parts_are_tiles_of_their_own(name: str) -> None:
    def whole(cta: Any) -> Any:
        return cta.shared(ox.f32, (32, 8), align=ox.A128)

    assert rule_of(name, a_map(), tile=lambda cta: whole(cta).part(cta.cta_rank, of=4)) == ""
    assert rule_of(name, a_map(), tile=lambda cta: whole(cta).part(cta.cta_rank, of=2)) == "OX1012"


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("wrong", [None, 0, "tile", (8, 8)])
def test_no_tile(name: str, wrong: Any) -> None:
    assert rule_of(name, a_map(), tile=lambda cta: wrong) == "OX1009"
    assert rule_of(name, a_map(), tile=lambda cta: cta.shared(ox.f32, (8, 8), align=ox.A128), leader="leader") == "OX1014"
    assert rule_of(name, a_map(), token=0.5) == ("OX1006" if name.startswith("g2s") else "")


@pytest.mark.parametrize("dtype", WHOLE)
def test_reductions(dtype: str) -> None:
    def pipe(cta: ox.Cta, src: Any, op: str) -> None:
        with cta.elect() as leader:
            src.reduce(getattr(ox.reduce, op), leader, cta.shared(src), (0, 0))  # here

    for op in REDUCE.words:
        if op in DTYPES[dtype].reduce:
            recorded(pipe, src=a_map(dtype), op=op)
        else:
            diagnostic = refused(pipe, "OX1016", src=a_map(dtype), op=op)
            assert all(f"ox.reduce.{good}" in diagnostic.required for good in DTYPES[dtype].reduce)


@pytest.mark.parametrize("wrong", ["add", None, ox.reduce])
def test_no_operation(wrong: Any) -> None:
    def pipe(cta: ox.Cta, src: Any) -> None:
        with cta.elect() as leader:
            src.reduce(wrong, leader, cta.shared(src), (0, 0))  # here

    refused(pipe, "OX1009")


def test_multicast_needs_a_cluster() -> None:
    def pipe(cta: ox.Cta, src: Any) -> None:
        full = cta.barrier().init(1)
        tile = cta.shared(src)
        with cta.elect() as leader:
            src.g2s_multicast(leader, tile, (0, 0), full.arrive_expect_tx(leader, tile), cta_mask=1)  # here

    refused(pipe, "OX1017")


# ---- on the host
@pytest.fixture(name="array")
def _array() -> Any:
    return ox.Device.open("sim").empty((128, 128), ox.f32)


def test_a_descriptor_keeps_its_array(array: Any) -> None:
    desc = ox.TmaDescriptor.tiled(array, box=(64, 32), swizzle=ox.Swizzle128B)
    assert desc.array is array
    assert desc.shape == (128, 128)
    assert (desc.tensor_map.box_dim, desc.tensor_map.swizzle) == ((64, 32), "128B")


@pytest.mark.parametrize("name", COPIES)
def test_copies_are_recorded(array: Any, name: str) -> None:
    desc = ox.TmaDescriptor.tiled(array, box=(64, 64))
    with pytest.raises(ox.errors.ScopeError) as caught:
        issue(name, desc, None, None, (0, 0), None)
    assert caught.value.rules == ("OX1059",)


def test_captured_descriptors(array: Any) -> None:
    desc = ox.TmaDescriptor.tiled(array, box=(64, 64))

    def tile(cta: ox.Cta) -> None:
        cta.shared(desc)  # here

    refused(tile, "OX1059")


@pytest.mark.parametrize("swizzle", [None, "128B", ox.A128, ox.AnySwizzle, 128])
def test_no_swizzle(array: Any, swizzle: Any) -> None:
    with pytest.raises(ox.errors.DTypeError) as caught:
        ox.TmaDescriptor.tiled(array, box=(64, 32), swizzle=swizzle)
    assert caught.value.rules == ("OX1047",)


@pytest.mark.parametrize("wrong", [None, [1.0], 3])
def test_no_array(wrong: Any) -> None:
    with pytest.raises(ox.errors.DTypeError) as caught:
        ox.TmaDescriptor.tiled(wrong, box=(64, 32))
    assert caught.value.rules == ("OX1046",)


def test_no_box(array: Any) -> None:
    with pytest.raises(ox.errors.DescriptorError) as caught:
        ox.TmaDescriptor.tiled(array)  # type: ignore[call-overload]  # the test
    assert caught.value.rules == ("OX2011",)


def test_alignments_name_every_swizzle() -> None:
    assert {a.bytes for a in ALIGNMENTS} >= {info.repeat_bytes for info in SWIZZLES.values()}
    assert geometry.A1024.bytes == max(info.repeat_bytes for info in SWIZZLES.values())


@pytest.mark.parametrize("use", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_descriptor_stays_where_its_array_is(use: Callable[[object], object]) -> None:
    desc = ox.TmaDescriptor.tiled(ox.Device.open("sim").empty((64, 64), ox.f32), box=(32, 32))
    with pytest.raises(ExportError, match=r"OX5039(.|\n)*desc\.parameters") as caught:
        use(desc)
    site = caught.value.diagnostics[0].site
    assert site is not None
    assert site.file == __file__
    assert pickle.loads(pickle.dumps(desc.parameters)) == desc.parameters


def test_descriptors_say_what_they_are() -> None:
    dev = ox.Device.open("sim")
    tiled = ox.TmaDescriptor.tiled(dev.empty((64, 64), ox.f32), box=(32, 32), swizzle=ox.Swizzle128B)
    assert repr(tiled) == "TmaDescriptor(f32, shape=(64, 64), box (32, 32), swizzle 128B, device='sim')"
    images = dev.empty((4, 14, 14, 64), ox.bf16)
    im2col = ox.TmaDescriptor.im2col(images, lower=(-1, -1), upper=(-1, 0), channels=64, pixels=32)
    said = "Im2colDescriptor(bf16, shape=(4, 14, 14, 64), 32 pixels x 64 channels, corners (-1, -1) (-1, 0), swizzle none, device='sim')"
    assert repr(im2col) == said
    inside: list[str] = []

    def pipe(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
        inside.append(repr(src))

    recorded(pipe)
    assert inside == ["TmaDescriptor('src')"]

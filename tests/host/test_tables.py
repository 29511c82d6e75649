"""Tables as arguments: held against their parameter, bound entry by entry, and updated between launches."""

from __future__ import annotations

from typing import Any, Literal, cast

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.errors import ArgumentError, VerificationError
from oxidecopy.program.program import MapParam

DEV = ox.Device.open("sim")
Table = ox.DescriptorTable[ox.f32, ox.D2, ox.SwizzleNone, ox.Box2[Literal[8], Literal[8]]]


@ox.pipeline(threads=32)
def copy(cta: ox.Cta, src: Table, out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
    tile, full = cta.shared(src[0]), cta.barrier().init(1)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src[cta.block_idx.x].g2s(leader, tile, (0, 0), token)
    full.wait(token)
    cta.store(out, tile, (cta.block_idx.x * 8, 0))


@ox.pipeline(threads=32)
def single(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
    cta.shared(src)


def desc(value: float = 1, shape: tuple[int, ...] = (8, 8), *, dev: ox.Device = DEV, **given: Any) -> Any:
    a: Any = dev.array(np.full(shape, value, np.float32), ox.f32)
    return ox.TmaDescriptor.tiled(a, **{"box": (8, 8), **given})


def table(*descs: Any) -> Any:
    return ox.DescriptorTable(descs or [desc(1), desc(2, (40, 16))])


def out(blocks: int = 2) -> Any:
    return DEV.zeros((8 * blocks, 8), ox.f32)


def test_a_launch_binds_every_entry() -> None:
    bound = copy[2].bind(table(), out())
    assert [name for name, _ in bound.launch.maps] == ["src[0]", "src[1]"]
    assert bound.launch.environment()["src[1].dim[0]"] == 40
    param = bound.program.params[0]
    assert isinstance(param, MapParam)
    assert (param.name, param.entries, param.box_dim) == ("src", 2, (8, 8))
    assert copy[2].bind(table(desc(), desc(), desc()), out()).program is not bound.program
    assert copy[1].bind(table(desc(3), desc(4)), out()).program is bound.program


@pytest.mark.parametrize(
    ("given", "got"),
    [
        (desc(), "TmaDescriptor"),
        ([desc()], "list"),
        (None, "None"),
        (table(desc(swizzle=ox.Swizzle32B)), "DescriptorTable[f32, D2, swizzle 32B, box (8, 8)]"),
        (table(desc(box=(8, 4))), "DescriptorTable[f32, D2, swizzle none, box (8, 4)]"),
        (table(desc(shape=(1, 8, 8), box=(1, 8, 8))), "DescriptorTable[f32, D3, swizzle none, box (1, 8, 8)]"),
    ],
)
def test_what_does_not_fit(given: Any, got: str) -> None:
    launch = cast("Any", copy[1])
    with pytest.raises(ArgumentError) as caught:
        launch.bind(given, out())
    (found,) = caught.value.diagnostics
    assert found.rule == "OX1053"
    assert got in found.got
    assert found.required == "DescriptorTable[f32, D2, swizzle none, box (8, 8)]"
    assert found.site is not None
    assert found.site.file == __file__


def test_a_table_is_no_descriptor() -> None:
    launch = cast("Any", single[1])
    with pytest.raises(ArgumentError) as caught:
        launch.bind(table())
    assert (caught.value.rule, caught.value.diagnostics[0].fix) == ("OX1053", "pass one entry, table[i]")


def test_all_on_one_device() -> None:
    other = ox.Device.open("sim")
    with pytest.raises(ArgumentError) as caught:
        copy[1].bind(table(desc(dev=other)), out())
    assert caught.value.rule == "OX1050"


def test_updates_are_for_later_launches() -> None:
    made, target = table(), out()
    copy[2](made, target)
    assert (target.numpy().reshape(2, -1) == [[1], [2]]).all()
    bound, prepared = copy[2].bind(made, target), copy[2].prepare(made, target)
    made.update(0, desc(5))
    for launch in (bound, prepared):
        launch()
        assert target.numpy()[0, 0] == 1
    copy[2](made, target)
    assert (target.numpy().reshape(2, -1) == [[5], [2]]).all()
    made.update(0, desc(7))
    prepared.update(made, target)
    prepared()
    assert (target.numpy().reshape(2, -1) == [[7], [2]]).all()


def test_a_prepared_launch_is_proven_for_the_extents_of_its_entries() -> None:
    made, target = table(), out()
    prepared = copy[2].prepare(made, target)
    made.update(1, desc(3, (48, 16)))
    with pytest.raises(ArgumentError) as caught:
        prepared.update(made, target)
    assert caught.value.rule == "OX5338"
    copy[2](made, target)
    assert target.numpy()[8, 0] == 3


def test_what_a_launch_was_given_lives_until_then() -> None:
    made, target = table(), out()
    bound = copy[2].bind(made, target)
    for i in range(2):
        made.update(i, desc(9, (40, 16) if i else (8, 8)))
    for _ in range(50):
        DEV.array(np.full((8, 8), 77, np.float32), ox.f32)
    bound()
    assert (target.numpy().reshape(2, -1) == [[1], [2]]).all()


def test_a_launch_of_more_blocks_is_refused() -> None:
    with pytest.raises(VerificationError) as caught:
        copy[3](table(), out(3))
    assert caught.value.rule == "OX3089"


# ---- kernels of the user's
def test_a_kernel_takes_a_table_by_its_address() -> None:
    from oxidecopy.engines.cuda.elf import ParameterInfo
    from oxidecopy.host.cubin_checks import _fits
    from oxidecopy.typed.signature import Formal

    formal = Formal(name="src", kind="table", dtype="f32", rank=2)
    assert _fits(formal, ParameterInfo(offset=0, size=8, alignment=8))
    assert not _fits(formal, ParameterInfo(offset=0, size=128, alignment=128))

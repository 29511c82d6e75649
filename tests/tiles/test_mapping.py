"""`map`, `copy`, `fill` and `iota` of groups: right results through whole pipelines, and each misuse refused at the user's line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import oxidecopy as ox
from oxidecopy import BoundLaunch
from oxidecopy.engines.sim import explore
from oxidecopy.errors import (
    DTypeError,
    OxidecopyError,
    RecordError,
    ScopeError,
    ShapeError,
    SymbolicError,
    VerificationError,
)
from oxidecopy.isa import ops
from oxidecopy.program.expansion import expanded
from oxidecopy.program.text import from_text, to_text
from oxidecopy.tiles.stage import StageTuple
from oxidecopy.verify import inspect
from tests.helpers.edits import dropped

F32: TypeAlias = ox.TmaDescriptor[ox.f32, ox.D2]
BF16: TypeAlias = ox.TmaDescriptor[ox.bf16, ox.D2]
Out: TypeAlias = ox.GlobalArray[ox.f32, ox.D2]

DATA = np.random.default_rng(11).standard_normal((150, 128)).astype(np.float32)


@pytest.fixture
def dev() -> ox.Device:
    return ox.Device.open("sim")


def scaling(warps: int) -> ox.Pipeline[[F32, BF16, ox.Scalar[ox.f32]]]:
    """The design's example, with so many consumer warps."""

    @ox.pipeline(warps=ox.roles(producer=1, consumers=warps))
    def scale(cta: ox.Cta, src: F32, dst: BF16, alpha: ox.Scalar[ox.f32]) -> None:
        ring = cta.ring(stages=4, tiles=(src,))
        outs = cta.store_ring(dst, stages=2)
        with cta.producer() as leader:
            for at in cta.tiles(src):
                with ring.produce(leader) as (slot,):
                    slot.load(src, at)
        with cta.consumers() as group:
            for at in cta.tiles(src):
                with ring.consume(group) as (tile,), outs.put(group, at) as out:
                    group.map(lambda v: (v * alpha).cast(ox.bf16), tile, out=out)

    return scale


def bound_scale(dev: ox.Device, warps: int) -> tuple[BoundLaunch, ox.GlobalArray[ox.bf16, Any]]:
    out = dev.zeros(DATA.shape, ox.bf16)
    src = ox.TmaDescriptor.tiled(dev.array(DATA), box=(32, 32), swizzle=ox.Swizzle128B)
    dst = ox.TmaDescriptor.tiled(out, box=(32, 32), swizzle=ox.Swizzle64B)
    return scaling(warps)[3].bind(src, dst, 1.7), out


@pytest.mark.parametrize("warps", [1, 4])
def test_scale(dev: ox.Device, warps: int) -> None:
    bound, out = bound_scale(dev, warps)
    bound()
    wanted = (DATA * np.float32(1.7)).astype(ml_dtypes.bfloat16)
    assert (out.numpy().view(np.uint16) == wanted.view(np.uint16)).all()
    for seed in range(4):
        result = explore(bound.program, bound.bindings, seed=seed)
        assert (result.outcome, result.findings) == ("ok", ())


def test_scale_as_text(dev: ox.Device) -> None:
    program = bound_scale(dev, 4)[0].program
    text = to_text(program)
    assert "map.tiles (ring0_src[i1 % 4]), dst_out[i1 % 2], fn=cast(x0:f32 * alpha:f32, bf16)" in text
    assert from_text(text) == program


@pytest.mark.parametrize("nth", [0, 1, 2])
def test_scale_without_one_of_its_fences_or_syncs_is_refused(dev: ox.Device, nth: int) -> None:
    """The group's sync before the map, the fence and the sync before the store: each is needed."""
    bound, _ = bound_scale(dev, 4)
    program = expanded(bound.program)
    inside = [
        s.op for s in program.walk() if isinstance(s.op, ops.BarSync | ops.FenceProxyAsync) and s.op != ops.BarSync(number=0, threads=160)
    ]
    assert [type(op) for op in inside] == [ops.BarSync, ops.FenceProxyAsync, ops.BarSync, ops.BarSync]
    broken = dropped(program, lambda op: op is inside[nth])
    assert not inspect(program, bound.launch).violations
    assert inspect(broken, bound.launch).violations


# ---- other uses
@ox.pipeline(warps=ox.roles(producer=1, consumers=2))
def in_place(cta: ox.Cta, src: F32, dst: F32, alpha: ox.Scalar[ox.f32], k: int) -> None:
    """Written over where it landed, in the whole tile and then in its upper half, and stored from there."""
    ring = cta.ring(stages=2, tiles=(src,))
    with cta.producer() as leader:
        for at in cta.tiles(src):
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.consumers() as group:
        for at in cta.tiles(src):
            with ring.consume(group) as (tile,):
                group.map(lambda v: 1 - alpha * v / k, tile, out=tile)
                group.sync()
                half = tile.part(0, of=2)
                group.map(lambda v: -v, half, out=half)
                group.store(dst, tile, at)


def test_in_place(dev: ox.Device) -> None:
    out = dev.zeros(DATA.shape, ox.f32)
    src = ox.TmaDescriptor.tiled(dev.array(DATA), box=(32, 32))
    in_place[2](src, ox.TmaDescriptor.tiled(out, box=(32, 32)), 0.3, 3)
    wanted = np.float32(1) - np.float32(0.3) * DATA / np.float32(3)
    rows = np.arange(len(DATA))[:, None]
    assert (out.numpy() == np.where(rows % 32 < 16, -wanted, wanted)).all()


@ox.pipeline(warps=ox.roles(producer=1, consumers=2))
def written(cta: ox.Cta, src: F32, out: Out) -> None:
    """Landed tiles are written over, one whole and one in part, and loaded again."""
    ring = cta.ring(stages=2, tiles=(src, src))
    with cta.producer() as leader:
        for at in cta.tiles(src):
            with ring.produce(leader) as (slot, other):
                slot.load(src, at)
                other.load(src, at)
    with cta.consumers() as group:
        for at in cta.tiles(src):
            with ring.consume(group) as (tile, other):
                group.map(lambda v, w: v + w, tile, other, out=tile)
                group.sync()
                group.fill(other.part(0, of=4), 0)
                group.sync()
                cta.store(out, tile, at)


def test_the_ring_fences_what_is_written_into_it(dev: ox.Device) -> None:
    out = dev.zeros(DATA.shape, ox.f32)
    bound = written[2].bind(ox.TmaDescriptor.tiled(dev.array(DATA), box=(32, 32)), out)
    bound()
    assert (out.numpy() == DATA + DATA).all()
    broken = dropped(bound.program, lambda op: isinstance(op, ops.FenceProxyAsync))
    assert {d.rule for d in inspect(broken, bound.launch).violations} == {"OX3046"}


@ox.pipeline(threads=96)
def four(cta: ox.Cta, out: Out, ints: ox.GlobalArray[ox.i32, ox.D2]) -> None:
    """Fills and iotas by a group; maps of four inputs, and of integers by all threads."""
    tiles = [cta.shared(ox.f32, (16, 32), align=ox.A128) for _ in range(4)]
    whole = cta.shared(ox.i32, (16, 32), align=ox.A128)
    with cta.warps(0, 2) as group:
        group.iota(tiles[0], 0)
        group.iota(tiles[1], axis=1)
        group.fill(tiles[2], 0.5)
        group.fill(tiles[3], 3)
        group.sync()
        group.map(lambda a, b, c, d: a * b - c / d + 7, *tiles, out=tiles[0])
    cta.sync()
    cta.map(lambda v: v.cast(ox.i32) * -2, tiles[0], out=whole)
    cta.copy(tiles[0], out=tiles[1])
    cta.sync()
    cta.store(out, tiles[1], (0, 0))
    cta.store(ints, whole, (0, 0))


def test_four_inputs_and_integers(dev: ox.Device) -> None:
    out, ints = dev.zeros((16, 32), ox.f32), dev.zeros((16, 32), ox.i32)
    four[1](out, ints)
    a, b = np.indices((16, 32)).astype(np.float32)
    wanted = a * b - np.float32(0.5) / np.float32(3) + np.float32(7)
    assert (out.numpy() == wanted).all()
    assert (ints.numpy() == wanted.astype(np.int32) * -2).all()


@ox.pipeline(threads=64)
def unswizzle(cta: ox.Cta, src: F32, out: Out) -> None:
    landed, plain = cta.shared(src), cta.shared(ox.f32, (32, 32), align=ox.A128)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, landed)
        src.g2s(leader, landed, (32, 64), token)
    full.wait(token)
    cta.copy(landed, out=plain)
    cta.sync()
    cta.store(out, plain, (0, 0))
    full.inval()


def test_copy_unswizzles(dev: ox.Device) -> None:
    out = dev.zeros((32, 32), ox.f32)
    unswizzle[1](ox.TmaDescriptor.tiled(dev.array(DATA), box=(32, 32), swizzle=ox.Swizzle128B), out)
    assert (out.numpy() == DATA[32:64, 64:96]).all()


def test_numbers_of_numpy_and_both_sides(dev: ox.Device) -> None:
    @ox.pipeline(threads=32)
    def numbers(cta: ox.Cta, out: Out, alpha: ox.Scalar[ox.f32]) -> None:
        tile = cta.shared(ox.f32, (16, 16), align=ox.A128)
        cta.iota(tile, 1)
        cta.sync()
        two: Any = np.float32(2)  # numpy's stubs know no operand but numbers
        cta.map(lambda v: two * v + np.float64(0.5) - alpha * v - (alpha - v) + 2 / (v + 1) + (1 - v), tile, out=tile)
        cta.sync()
        cta.store(out, tile, (0, 0))

    out = dev.zeros((16, 16), ox.f32)
    numbers[1](out, 0.1)
    f = np.float32
    v: npt.NDArray[np.float32] = np.broadcast_to(np.arange(16, dtype=f), (16, 16))
    wanted = f(2) * v + f(0.5) - f(0.1) * v - (f(0.1) - v) + f(2) / (v + f(1)) + (f(1) - v)
    assert (out.numpy() == wanted).all()


# ---- the verifier's twins
@pytest.mark.parametrize(("sync", "rule"), [(True, ""), (False, "OX3045")])
def test_another_group_reads_after_a_sync(dev: ox.Device, sync: bool, rule: str) -> None:
    @ox.pipeline(threads=64)
    def two(cta: ox.Cta, out: Out) -> None:
        a, b = (cta.shared(ox.f32, (16, 16), align=ox.A128) for _ in range(2))
        cta.fill(a, 1)
        cta.fill(b, 0)
        cta.sync()
        with cta.warps(0, 1) as first:
            first.map(lambda v: v + 1, a, out=b)
        if sync:
            cta.sync()
        with cta.warps(1, 2):
            cta.store(out, b, (0, 0))

    bound = two[1].bind(dev.zeros((16, 16), ox.f32))
    if not rule:
        bound()
        return
    with pytest.raises(VerificationError) as caught:
        bound.verify()
    assert set(caught.value.rules) <= {"OX3045", "OX3044"}


# ---- misuse
@dataclass
class Case:
    """What a wrong line has at hand. (Any: they are wrong for a checker too.)"""

    cta: ox.Cta
    group: Any
    tile: Any
    other: Any
    alpha: Any
    half: Any
    index: Any
    out: Any


def inner_block(c: Case) -> None:
    with c.group.elect():
        c.group.copy(c.tile, out=c.tile)


def inner_fill(c: Case) -> None:
    with c.group.elect():
        c.group.fill(c.tile, 1)


def nested(c: Case) -> None:
    def outer(v: Any) -> Any:
        c.group.map(lambda w: v + w, c.tile, out=c.tile)
        return v

    c.group.map(outer, c.tile, out=c.tile)


def leaked(c: Case) -> None:
    kept: list[Any] = []

    def keep(v: Any) -> Any:
        kept.append(v)
        return v

    c.group.map(keep, c.tile, out=c.tile)
    kept[0] * 2


def unused_vector(c: Case) -> None:
    scales = c.cta.shared(ox.f32, (1, 32), align=ox.A128)
    c.group.map(lambda v, _: v, c.tile, ox.per_row(scales), out=c.tile)


def mapped(fn: Callable[..., object]) -> Callable[[Case], None]:
    return lambda c: c.group.map(lambda v: fn(v, c), c.tile, out=c.tile)


WRONG: list[tuple[str, Callable[[Case], None], type[OxidecopyError], str]] = [
    ("no tile", lambda c: c.group.map(lambda v: v, out=c.tile), ShapeError, "OX1120"),
    ("five tiles", lambda c: c.group.map(lambda *v: v[0], *[c.tile] * 5, out=c.tile), ShapeError, "OX1120"),
    ("an array", lambda c: c.group.map(lambda v, w: v + w, c.tile, c.out, out=c.tile), ShapeError, "OX1120"),
    ("not a tile", lambda c: c.group.map(lambda v: v, 3, out=c.tile), ShapeError, "OX1120"),
    ("all of a stage", lambda c: c.group.map(lambda v: v, StageTuple((c.tile,)), out=c.tile), ShapeError, "OX1120"),
    ("out is no tile", lambda c: c.group.map(lambda v: v, c.tile, out=None), ShapeError, "OX1120"),
    ("shapes", lambda c: c.group.copy(c.tile, out=c.tile.part(0, of=2)), ShapeError, "OX1120"),
    ("inner block", inner_block, ScopeError, "OX1121"),
    ("inner fill", inner_fill, ScopeError, "OX1121"),
    ("if", mapped(lambda v, _: v if v > 0 else -v), SymbolicError, "OX1122"),
    ("bool", mapped(lambda v, _: v if v else -v), SymbolicError, "OX1122"),
    ("equal", mapped(lambda v, _: v if v == 0 else -v), SymbolicError, "OX1122"),
    ("chain", mapped(lambda v, _: (0 < v < 1).select(v, 0)), SymbolicError, "OX1122"),
    ("and", mapped(lambda v, _: (v > 0 and v < 1).select(v, 0)), SymbolicError, "OX1122"),
    ("comparison mixed", mapped(lambda v, _: (v < v.cast(ox.f16)).select(v, 0)), DTypeError, "OX1123"),
    ("select mixed", mapped(lambda v, _: (v < 1).select(v, v.cast(ox.f16))), DTypeError, "OX1123"),
    ("minimum mixed", mapped(lambda v, _: v.minimum(v.cast(ox.f16))), DTypeError, "OX1123"),
    ("order of fp8", mapped(lambda v, _: (v.cast(ox.e4m3) < v.cast(ox.e4m3)).select(v, 0)), DTypeError, "OX1124"),
    ("bits of floats", mapped(lambda v, _: v & v), DTypeError, "OX1124"),
    ("exp of integers", mapped(lambda v, _: v.cast(ox.i32).exp().cast(ox.f32)), DTypeError, "OX1124"),
    ("a comparison", mapped(lambda v, _: v < 1), RecordError, "OX1125"),
    ("and of a number", mapped(lambda v, _: ((v < 1) & 1).select(v, 0)), RecordError, "OX1125"),
    ("select of a number", mapped(lambda v, _: (v < 1).select(0, v)), RecordError, "OX1180"),
    ("short vector", lambda c: c.group.map(lambda v, w: v + w, c.tile, ox.per_row(c.tile), out=c.tile), ShapeError, "OX1120"),
    ("unused vector", unused_vector, RecordError, "OX1125"),
    ("int", mapped(lambda v, _: int(v)), SymbolicError, "OX1122"),
    ("float", mapped(lambda v, _: float(v)), SymbolicError, "OX1122"),
    ("index", mapped(lambda v, _: [1, 2][v]), SymbolicError, "OX1122"),
    ("iterate", mapped(lambda v, _: list(v)), SymbolicError, "OX1122"),
    ("mixed", mapped(lambda v, _: v + v.cast(ox.f16)), DTypeError, "OX1123"),
    ("mixed scalar", mapped(lambda v, c: v * c.half), DTypeError, "OX1123"),
    ("mixed scalar first", mapped(lambda v, c: c.half * v), DTypeError, "OX1123"),
    ("fp8", mapped(lambda v, _: v.cast(ox.e4m3) * 2), DTypeError, "OX1124"),
    ("fp8 negated", mapped(lambda v, _: -v.cast(ox.e4m3)), DTypeError, "OX1124"),
    ("tf32", mapped(lambda v, _: v.cast(ox.tf32) + v.cast(ox.tf32)), DTypeError, "OX1124"),
    ("integer division", mapped(lambda v, _: v.cast(ox.i32) / 2), DTypeError, "OX1124"),
    ("arity", lambda c: c.group.map(lambda v, w: v, c.tile, out=c.tile), RecordError, "OX1125"),
    ("no function", lambda c: c.group.map(3, c.tile, out=c.tile), RecordError, "OX1125"),
    ("a number", mapped(lambda _v, _: 3), RecordError, "OX1125"),
    ("power", mapped(lambda v, _: v**2), RecordError, "OX1009"),
    ("numpy's function", mapped(lambda v, _: np.exp(v)), RecordError, "OX1009"),
    ("no such method", mapped(lambda v, _: v.cosh()), RecordError, "OX1009"),
    ("nothing", mapped(lambda _v, _: None), RecordError, "OX1125"),
    ("nested", nested, RecordError, "OX1125"),
    ("leaked", leaked, RecordError, "OX1125"),
    ("result", mapped(lambda v, _: v.cast(ox.f16)), DTypeError, "OX1126"),
    ("copy of another type", lambda c: c.group.copy(c.tile, out=c.other), DTypeError, "OX1126"),
    ("too deep", mapped(lambda v, _: sum([v] * 70, start=v)), RecordError, "OX1127"),
    ("too deep by signs", mapped(lambda v, _: reduce(lambda x, _: -x, range(70), v)), RecordError, "OX1127"),
    ("too large", mapped(lambda v, _: reduce(lambda x, _: x + x, range(40), v)), RecordError, "OX1127"),
    ("text", mapped(lambda v, _: v * "2"), DTypeError, "OX1066"),
    ("a truth value", mapped(lambda v, _: v * True), DTypeError, "OX1066"),
    ("out of range", mapped(lambda v, _: v.cast(ox.u8) + 256), DTypeError, "OX1066"),
    ("not whole", mapped(lambda v, _: v.cast(ox.i32) * 0.5), DTypeError, "OX1066"),
    ("an index", mapped(lambda v, c: v * c.index), DTypeError, "OX1066"),
    ("no type", mapped(lambda v, _: v.cast("f16")), DTypeError, "OX1128"),
    ("packed type", mapped(lambda v, _: v.cast(ox.u4x16_align8b)), DTypeError, "OX1128"),
    ("no such operator", mapped(lambda v, _: v // 2), RecordError, "OX1009"),
    ("fill type", lambda c: c.group.fill(c.tile, c.half), DTypeError, "OX1011"),
    ("fill value", lambda c: c.group.fill(c.tile, "1"), DTypeError, "OX1066"),
    ("iota axis", lambda c: c.group.iota(c.tile, 2), ShapeError, "OX1061"),
]


@pytest.mark.parametrize(("line", "error", "rule"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
def test_misuse_is_refused_at_the_users_line(dev: ox.Device, line: Callable[[Case], None], error: type[OxidecopyError], rule: str) -> None:
    @ox.pipeline(threads=64)
    def wrong(cta: ox.Cta, alpha: ox.Scalar[ox.f32], half: ox.Scalar[ox.f16], out: Out) -> None:
        tile, other = cta.shared(ox.f32, (32, 32), align=ox.A128), cta.shared(ox.f16, (32, 32), align=ox.A128)
        with cta.warps(0, 1) as group:
            line(Case(cta, group, tile, other, alpha, half, cta.block_idx.x, out))

    with pytest.raises(error) as caught:
        wrong[1].bind(1.0, 1.0, dev.zeros((32, 32), ox.f32))
    assert caught.value.rules == (rule,)
    (found,) = caught.value.diagnostics
    assert found.site is not None
    assert found.site.file == __file__


def test_tiles_of_a_ring_and_elements_say_what_they_are(dev: ox.Device) -> None:
    said: list[str] = []

    def kept(v: ox.Elem[ox.f32]) -> ox.Elem[ox.f32]:
        said.append(repr(v))
        return v

    @ox.pipeline(warps=ox.roles(producer=1, consumers=1))
    def printed(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
        ring = cta.ring(stages=2, tiles=(src,))
        with cta.producer() as leader, ring.produce(leader) as (slot,):
            slot.load(src, (0, 0))
        with cta.consumers() as group, ring.consume(group) as (tile,):
            group.map(kept, tile, out=tile)
            said.append(repr(tile))

    printed[1].bind(ox.TmaDescriptor.tiled(dev.zeros((32, 32), ox.f32), box=(32, 32)))
    assert said == ["Elem[f32]", "Landed('ring0_src', f32, (32, 32))"]


def test_a_tile_of_another_pipeline_is_refused(dev: ox.Device) -> None:
    kept: list[Any] = []

    @ox.pipeline(threads=64)
    def first(cta: ox.Cta, out: Out) -> None:
        kept.append(cta.shared(ox.f32, (32, 32), align=ox.A128))

    @ox.pipeline(threads=64)
    def second(cta: ox.Cta, out: Out) -> None:
        tile = cta.shared(ox.f32, (32, 32), align=ox.A128)
        cta.copy(kept[0], out=tile)

    out = dev.zeros((32, 32), ox.f32)
    first[1].bind(out)
    with pytest.raises(ScopeError) as caught:
        second[1].bind(out)
    assert caught.value.rules == ("OX1019",)


def test_scalars_alone_stay_without_arithmetic(dev: ox.Device) -> None:
    @ox.pipeline(threads=64)
    def wrong(cta: ox.Cta, alpha: ox.Scalar[ox.f32], out: Out) -> None:
        del cta, out
        alpha * 2  # type: ignore[operator]  # as it says

    with pytest.raises(SymbolicError) as caught:
        wrong[1].bind(1.0, dev.zeros((32, 32), ox.f32))
    assert caught.value.rules == ("OX1024",)

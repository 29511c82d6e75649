"""`Cta`: what it gives, its loops and conditions, plain accesses, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.errors import RecordError
from oxidecopy.isa.expr import Const, Sym, SymKind
from oxidecopy.isa.ops import Fill, Iota, Loop, ScalarRef
from tests.helpers.recordings import marked_line, recorded, refused

Src = ox.TmaDescriptor[ox.f32, ox.D2]
Out = ox.GlobalArray[ox.f32, ox.D2]
N = Sym("n", SymKind.PARAM)


# ---- loops
def test_ranges() -> None:
    def pipe(cta: ox.Cta, n: ox.Idx) -> None:
        for _ in cta.range(n):
            pass
        for _ in cta.range(2, n):
            pass
        for _ in cta.range(n, -1, -2):
            pass
        for _ in cta.range(0, ox.minimum(0, 0)):
            pass
        for _ in cta.range(np.int64(3)):  # type: ignore[arg-type]  # numpy's integers count as well
            pass

    loops = [step.op for step in recorded(pipe).steps if isinstance(step.op, Loop)]
    assert [repr(loop).split("counter=")[1].split(",")[0] for loop in loops] == [f"'i{k}'" for k in range(5)]
    assert [(loop.start, loop.stop, loop.step) for loop in loops] == [
        (Const(0), N, 1),
        (Const(2), N, 1),
        (N, Const(-1), -2),
        (Const(0), Const(0), 1),
        (Const(0), Const(3), 1),
    ]


@pytest.mark.parametrize("step", [0, 1.0, None, "1", True, 1 << 31])
def test_steps(step: Any) -> None:
    def pipe(cta: ox.Cta, n: ox.Idx) -> None:
        cta.range(0, n, step)  # here

    refused(pipe, "OX1063")


def break_before_an_op(cta: ox.Cta, n: ox.Idx) -> None:
    for _ in cta.range(n):  # here
        cta.sync()
        break
    cta.sync()


def break_at_the_end(cta: ox.Cta, n: ox.Idx) -> None:
    for _ in cta.range(n):  # here
        break


def return_from_a_block(cta: ox.Cta, n: ox.Idx) -> None:
    with cta.elect():
        for _ in cta.range(n):  # here
            return


def break_of_an_inner_loop(cta: ox.Cta, n: ox.Idx) -> None:
    for _ in cta.range(n):
        for _ in cta.range(n):  # here
            break


def exception_that_is_caught(cta: ox.Cta, n: ox.Idx) -> None:
    with suppress(ValueError):
        for _ in cta.range(n):  # here
            int("x")
    cta.barrier()


def iterator_that_is_dropped(cta: ox.Cta, n: ox.Idx) -> None:
    next(cta.range(n))  # here
    with cta.elect():
        pass


@pytest.mark.parametrize(
    "pipe",
    [
        break_before_an_op,
        break_at_the_end,
        return_from_a_block,
        break_of_an_inner_loop,
        exception_that_is_caught,
        iterator_that_is_dropped,
    ],
)
def test_a_loop_left_early(pipe: Callable[..., None]) -> None:
    refused(pipe, "OX1025")


def test_a_loop_that_is_never_finished() -> None:
    kept: list[Any] = []

    def pipe(cta: ox.Cta, n: ox.Idx) -> None:
        kept.append(cta.range(n))
        next(kept[0])  # here

    refused(pipe, "OX1026")


def test_an_exception_of_the_user_stays_itself() -> None:
    def pipe(cta: ox.Cta, n: ox.Idx) -> None:
        for _ in cta.range(n):
            with cta.elect():
                1 // 0  # noqa: B018  # it raises

    with pytest.raises(ZeroDivisionError):
        recorded(pipe)


# ---- counters end with their loops, whatever carries them
def late_integer(cta: ox.Cta, n: ox.Idx) -> None:
    (late,) = (i + 1 for i in cta.range(n))
    cta.barrier().init(1).wait_phase(late)  # here


def late_condition(cta: ox.Cta, n: ox.Idx) -> None:
    (late,) = (i == 0 for i in cta.range(n))
    with cta.when(late):  # here
        pass


def late_block(cta: ox.Cta, n: ox.Idx) -> None:
    (late,) = (cta.when(i == 0) for i in cta.range(n))
    with late:  # here
        pass


def late_bound(cta: ox.Cta, n: ox.Idx) -> None:
    (late,) = cta.range(n)
    for _ in cta.range(late):  # here
        pass


def late_tile(cta: ox.Cta, src: Src, n: ox.Idx) -> None:
    tiles = cta.shared(src, stages=2)
    (late,) = (tiles[i % 2] for i in cta.range(n))
    cta.fill(late, 0)  # here


def late_part(cta: ox.Cta, src: Src, n: ox.Idx) -> None:
    whole = cta.shared(src)
    (late,) = (whole.part(i % 2, of=2) for i in cta.range(n))
    cta.fill(late, 0)  # here


def late_barrier(cta: ox.Cta, n: ox.Idx) -> None:
    bars = cta.barriers(2).init(1)
    (late,) = (bars[i % 2] for i in cta.range(n))
    late.arrive()  # here


def late_coordinate(cta: ox.Cta, src: Src, out: Out, n: ox.Idx) -> None:
    (late,) = cta.range(n)
    cta.store(out, cta.shared(src), (late, 0))  # here


@pytest.mark.parametrize(
    "pipe", [late_integer, late_condition, late_block, late_bound, late_tile, late_part, late_barrier, late_coordinate]
)
def test_a_counter_after_its_loop(pipe: Callable[..., None]) -> None:
    assert refused(pipe, "OX1068").got == "i0"


# ---- conditions
@pytest.mark.parametrize("value", [3, None, "i == 3", 1.0])
def test_no_condition(value: Any) -> None:
    def pipe(cta: ox.Cta) -> None:
        cta.when(value)  # here

    refused(pipe, "OX1027")


# ---- tiles
def test_forms_of_shared() -> None:
    def pipe(cta: ox.Cta, dst: Src) -> None:
        one = cta.shared(dst)
        many = cta.shared(dst, stages=3)
        typed = cta.shared(ox.u8, ox.Box3[Literal[2], Literal[4], Literal[8]], align=ox.A16)
        numpy = cta.shared(ox.f64, (np.int32(4), 4), align=ox.A256)  # type: ignore[arg-type]  # numpy's integers count as well
        assert (one.shape, one.nbytes) == ((64, 32), 8192)
        assert (len(many), [tile.shape for tile in many]) == (3, [(64, 32)] * 3)
        assert (typed.shape, typed.nbytes) == ((2, 4, 8), 64)
        assert (numpy.shape, numpy.nbytes) == ((4, 4), 128)

    tiles = recorded(pipe).tiles
    assert [(t.dtype, t.shape, t.align, t.stages, t.swizzle) for t in tiles] == [
        ("f32", (64, 32), 1024, 1, "128B"),
        ("f32", (64, 32), 1024, 3, "128B"),
        ("u8", (2, 4, 8), 16, 1, "none"),
        ("f64", (4, 4), 256, 1, "none"),
    ]


def test_names() -> None:
    class Full: ...

    def pipe(cta: ox.Cta, dst: Src) -> None:
        cta.shared(dst, name="queries")
        cta.shared(dst, stages=2, name="queries")
        cta.shared(ox.u8, (16,), align=ox.A16, name="scratch")
        cta.barrier(name="loaded").init(1)
        cta.barriers(2, name="turns").init(1)
        cta.barriers(2, brand=Full, name="turns").init(1)
        cta.barriers(2, brand=Full).init(1)

    program = recorded(pipe)
    assert [t.name for t in program.tiles] == ["queries", "queries1", "scratch"]
    assert [b.name for b in program.barriers] == ["loaded", "turns", "turns1", "full"]


@pytest.mark.parametrize("name", ["", "a b", "1st", 3, b"full", True])
def test_no_name(name: Any) -> None:
    def tile(cta: ox.Cta, dst: Src) -> None:
        cta.shared(dst, name=name)  # here

    def barrier(cta: ox.Cta) -> None:
        cta.barrier(name=name)  # here

    def barriers(cta: ox.Cta) -> None:
        cta.barriers(2, name=name)  # here

    for pipe in (tile, barrier, barriers):
        assert "name=" in refused(pipe, "OX1009").fix


@pytest.mark.parametrize("box", [(), (0,), (-1, 4), (4, 4.0), 4, (True,), "44", (1,) * 6, None, ox.Box2, ox.Box2[int, int], [4, 4]])
def test_no_box(box: Any) -> None:
    def pipe(cta: ox.Cta) -> None:
        cta.shared(ox.f32, box, align=ox.A128)  # here

    refused(pipe, "OX1057")


def test_a_box_of_symbols() -> None:
    def pipe(cta: ox.Cta, n: Any) -> None:
        cta.shared(ox.f32, (n, 4), align=ox.A128)  # here

    refused(pipe, "OX1021")


@pytest.mark.parametrize("like", [np.float32, "f32", ox.DType, ox.HasAdd, None, 4, ox.A128])
def test_a_tile_of_something_else(like: Any) -> None:
    def pipe(cta: ox.Cta) -> None:
        cta.shared(like, (4, 4), align=ox.A128)  # here

    refused(pipe, "OX1056")


@pytest.mark.parametrize("align", [None, 128, ox.Swizzle128B, ox.f32, "A128"])
def test_no_alignment(align: Any) -> None:
    def pipe(cta: ox.Cta) -> None:
        cta.shared(ox.f32, (4, 4), align=align)  # here

    refused(pipe, "OX1047")


def test_arguments_of_the_other_form_of_shared() -> None:
    def stages(cta: ox.Cta) -> None:
        cta.shared(ox.f32, (4, 4), align=ox.A128, stages=2)  # type: ignore[call-overload]  # here

    def box(cta: ox.Cta, src: Src) -> None:
        cta.shared(src, (4, 4))  # type: ignore[call-overload]  # here

    def align(cta: ox.Cta, src: Src) -> None:
        cta.shared(src, align=ox.A1024)  # type: ignore[call-overload]  # here

    for pipe in (stages, box, align):
        refused(pipe, "OX1009")


@pytest.mark.parametrize("n", [0, -1, 1025, 2.0, True, "2"])
def test_stages(n: Any) -> None:
    def tiles(cta: ox.Cta, src: Src) -> None:
        cta.shared(src, stages=n)  # here

    def barriers(cta: ox.Cta) -> None:
        cta.barriers(n)  # here

    refused(tiles, "OX1048")
    refused(barriers, "OX1048")


def test_symbolic_stages() -> None:
    def pipe(cta: ox.Cta, n: Any) -> None:
        cta.barriers(n)  # here

    refused(pipe, "OX1021")


@pytest.mark.parametrize("kind", [ox.Kind, ox.Ready, "TmaBarrier", None, 1])
def test_no_kind(kind: Any) -> None:
    def pipe(cta: ox.Cta) -> None:
        cta.barrier(kind=kind)  # here

    refused(pipe, "OX1047")


# ---- threads
@pytest.mark.parametrize("i", [-1, 128, 0.0, True, None, "0"])
def test_no_such_thread(i: Any) -> None:
    def thread(cta: ox.Cta) -> None:
        cta.thread(i)  # here

    def threads_except(cta: ox.Cta) -> None:
        cta.threads_except(i)  # here

    def init_by(cta: ox.Cta) -> None:
        cta.barrier().init_by(1, i)  # here

    def inval_by(cta: ox.Cta) -> None:
        cta.barrier().init(1).inval_by(i)  # here

    for pipe in (thread, threads_except, init_by, inval_by):
        refused(pipe, "OX1043")


@pytest.mark.parametrize(("first", "stop"), [(0, 0), (1, 1), (-1, 1), (0, 5), (4, 5), (0, 1.0), (True, 2)])
def test_no_such_warps(first: Any, stop: Any) -> None:
    def pipe(cta: ox.Cta) -> None:
        cta.warps(first, stop)  # here

    refused(pipe, "OX1043", threads=100)


# ---- plain accesses
def test_fill_and_iota() -> None:
    def pipe(cta: ox.Cta, src: Src, alpha: ox.Scalar[ox.f32]) -> None:
        tile = cta.shared(src, stages=2)[1]
        cta.fill(tile, 1)
        cta.fill(tile, float("-inf"))
        cta.fill(tile, np.float16(0.5))  # type: ignore[arg-type]  # numpy's numbers count as well
        cta.fill(tile, alpha)
        cta.iota(tile, 1)

    ops = [step.op for step in recorded(pipe).steps]
    assert [op.value for op in ops if isinstance(op, Fill)] == [1, float("-inf"), 0.5, ScalarRef("alpha")]
    assert [op.axis for op in ops if isinstance(op, Iota)] == [1]


@pytest.mark.parametrize("axis", [-1, 2, 1.0, None, True])
def test_no_axis(axis: Any) -> None:
    def pipe(cta: ox.Cta, src: Src) -> None:
        cta.iota(cta.shared(src), axis)  # here

    refused(pipe, "OX1061")


def test_a_scalar_of_another_type() -> None:
    def pipe(cta: ox.Cta, src: Src, count: Any) -> None:
        cta.fill(cta.shared(src), count)  # here

    assert refused(pipe, "OX1011").required == "f32"


def test_store_needs_tile_and_array_of_one_kind() -> None:
    def dtype(cta: ox.Cta, out: Any) -> None:
        cta.store(out, cta.shared(ox.f16, (4, 4), align=ox.A16), (0, 0))  # here

    def rank(cta: ox.Cta, out: Any) -> None:
        cta.store(out, cta.shared(ox.f32, (4, 4, 4), align=ox.A16), (0, 0))  # here

    def coords(cta: ox.Cta, out: Any) -> None:
        cta.store(out, cta.shared(ox.f32, (4, 4), align=ox.A16), (0, 0, 0))  # here

    refused(dtype, "OX1011")
    refused(rank, "OX1013")
    refused(coords, "OX1013")


@pytest.mark.parametrize("wrong", [None, 3, "tile", (1, 2)])
def test_handles_of_another_class(wrong: Any) -> None:
    def fill(cta: ox.Cta) -> None:
        cta.fill(wrong, 0)  # here

    def iota(cta: ox.Cta) -> None:
        cta.iota(wrong, 0)  # here

    def store(cta: ox.Cta, out: Any) -> None:
        cta.store(out, wrong, (0, 0))  # here

    def array(cta: ox.Cta, src: Src) -> None:
        cta.store(wrong, cta.shared(src), (0, 0))  # here

    for pipe in (fill, iota, store, array):
        refused(pipe, "OX1009")


def test_an_array_of_the_host() -> None:
    captured = ox.Device.open("sim").empty((64, 32), ox.f32)

    def pipe(cta: ox.Cta, src: Src) -> None:
        cta.store(captured, cta.shared(src), (0, 0))  # here

    refused(pipe, "OX1059")


# ---- everything of a recording is refused after it and in another one
def _kept(**handles: Any) -> Any:
    return type("Kept", (), handles)


def all_handles(cta: Any, src: Any, out: Any, n: Any, alpha: Any) -> Any:
    """One of each; tokens and leaders have tests of their own."""
    return _kept(
        cta=cta, src=src, out=out, n=n, alpha=alpha,
        tile=cta.shared(src), tiles=cta.shared(src, stages=2), full=cta.barrier().init(1), bars=cta.barriers(2).init(1),
        pred=n == 0, block=cta.elect(), condition=cta.when(n == 0), loop=cta.range(n), x=cta.block_idx.x,
    )  # fmt: skip


USES: dict[str, Any] = {
    "shared": lambda old, new: old.cta.shared(new.src),
    "shared of an old map": lambda old, new: new.cta.shared(old.src),
    "barrier": lambda old, new: old.cta.barrier(),
    "sync": lambda old, new: old.cta.sync(),
    "fence": lambda old, new: old.cta.fence_proxy_async(),
    "elect": lambda old, new: old.cta.elect().__enter__(),
    "block": lambda old, new: old.block.__enter__(),
    "condition": lambda old, new: old.condition.__enter__(),
    "when": lambda old, new: new.cta.when(old.pred).__enter__(),
    "loop": lambda old, new: next(old.loop),
    "range": lambda old, new: new.cta.range(old.n),
    "start": lambda old, new: new.cta.range(old.x, 4),
    "sum": lambda old, new: old.n + new.n,
    "minimum": lambda old, new: ox.minimum(new.x, old.n),
    "and": lambda old, new: (new.n == 0) & old.pred,
    "compare": lambda old, new: old.n < new.n,
    "fill": lambda old, new: new.cta.fill(old.tile, 0),
    "iota": lambda old, new: new.cta.iota(old.tile, 0),
    "scalar": lambda old, new: new.cta.fill(new.tile, old.alpha),
    "store": lambda old, new: new.cta.store(old.out, new.tile, (0, 0)),
    "store of a tile": lambda old, new: new.cta.store(new.out, old.tile, (0, 0)),
    "coordinate": lambda old, new: new.cta.store(new.out, new.tile, (0, old.n)),
    "part": lambda old, new: old.tile.part(0, of=2),
    "rank of a part": lambda old, new: new.tile.part(old.n, of=2),
    "stage": lambda old, new: old.tiles[0],
    "index": lambda old, new: new.tiles[old.n],
    "element": lambda old, new: new.bars[old.n],
    "arrive": lambda old, new: old.full.arrive(),
    "inval": lambda old, new: old.full.inval(),
    "bars": lambda old, new: old.bars[0],
    "phase": lambda old, new: new.full.wait_phase(old.n),
    "parity": lambda old, new: new.full.try_wait_parity(old.n),
    "copy": lambda old, new: old.src.s2g(None, old.tile, (0, 0)),
}


@pytest.mark.parametrize("use", USES)
def test_another_recording(use: str) -> None:
    kept: list[Any] = []

    def first(cta: ox.Cta, src: Src, out: Out, n: ox.Idx, alpha: Any) -> None:
        kept.append(all_handles(cta, src, out, n, alpha))

    def second(cta: ox.Cta, src: Src, out: Out, n: ox.Idx, alpha: Any) -> None:
        USES[use](kept[0], all_handles(cta, src, out, n, alpha))

    recorded(first)
    with pytest.raises(ox.errors.ScopeError) as caught:
        recorded(second)
    assert caught.value.rules == ("OX1019",)


@pytest.mark.parametrize("use", [name for name in USES if name not in ("sum", "minimum", "and", "compare")])
def test_after_the_recording(use: str) -> None:
    kept: list[Any] = []

    def pipe(cta: ox.Cta, src: Src, out: Out, n: ox.Idx, alpha: Any) -> None:
        kept.append(all_handles(cta, src, out, n, alpha))

    recorded(pipe)
    with pytest.raises(ox.errors.ScopeError) as caught:
        USES[use](kept[0], kept[0])
    assert caught.value.rules == ("OX1019",)


def test_an_outer_recordings_handles_in_an_inner_one() -> None:
    def outer(cta: ox.Cta, src: Src) -> None:
        tile = cta.shared(src)

        def inner(cta: ox.Cta) -> None:
            cta.fill(tile, 0)  # here

        refused(inner, "OX1019")

    recorded(outer)


def test_an_outer_recordings_descriptor_in_an_inner_one() -> None:
    def outer(cta: ox.Cta, src: Src) -> None:
        def inner(cta: ox.Cta) -> None:
            cta.shared(src)  # here

        refused(inner, "OX1019")

    recorded(outer)


def test_extents_are_symbols() -> None:
    def pipe(cta: ox.Cta, src: Src, out: Out) -> None:
        with cta.when(src.shape[0] < out.shape[1]):
            pass

    (step,) = recorded(pipe).steps
    assert "src.dim[0]" in repr(step.op)
    assert "out.dim[1]" in repr(step.op)


def test_python_mistakes_name_the_line() -> None:
    def pipe(cta: Any) -> None:
        cta.barrier().init()  # here

    diagnostic = refused(pipe, "OX1009")
    assert "missing 1 required positional argument: 'count'" in diagnostic.got
    assert diagnostic.site
    assert diagnostic.site.line == marked_line(pipe)


MISTAKES: list[tuple[Callable[[Any, Any, Any], object], str]] = [
    (lambda cta, src, _: cta.share(src), "did you mean `shared`?"),
    (lambda cta, src, _: cta.shared(src) * 2, "cta.map("),
    (lambda cta, src, _: cta.shared(src).__setitem__(0, 1.0), "it has `bytes`, `nbytes`, `part`, `shape`"),
    (lambda cta, src, _: cta.shared(src).dtype, "it has `bytes`, `nbytes`, `part`, `shape`"),
    (lambda _cta, src, _: src.box, "`cta.shared(desc).shape`"),
    (lambda _cta, src, _: src.nbytes, "`cta.shared(desc).nbytes`"),
    (lambda _cta, src, _: src.ndim, "`len(desc.shape)`"),
    (lambda cta, _src, _out: cta.cluster_sync(), "`cta: ox.ClusterCta`"),
    (lambda _cta, _src, _out: ox.SharedArray((64, 64), ox.f32), "`cta.shared(desc)`"),  # type: ignore[arg-type, call-arg]
    (lambda _cta, _src, _out: ox.ManagedBarrier(), "`cta.barrier().init(1)`"),  # type: ignore[call-arg]
    (lambda _cta, _src, out: out[0], "cta.load_index("),
    (lambda cta, _src, _out: cta.thread_idx.x, "with cta.elect() as leader:"),
    (lambda cta, _src, _out: cta.block_dim.x, "`cta.threads`"),
    (lambda cta, _src, _out: cta.syncthreads(), "`cta.sync()`"),
    (lambda cta, _src, _out: cta.blockIdx.x, "`cta.block_idx`"),
    (lambda cta, _src, _out: cta.block_idx * 64, "`cta.block_idx.x`"),
    (lambda cta, _src, _out: (*cta.block_idx,), "`cta.block_idx.x`"),
    (lambda cta, src, _out: src.g2s(cta.shared(src), (0, 0)), "help(ox.TmaDescriptor.g2s)"),
    (lambda cta, src, out: ox.bulk_g2s(cta.shared(src), out), "help(ox.bulk_g2s)"),  # type: ignore[call-arg]
]


@pytest.mark.parametrize(("mistake", "fix"), MISTAKES)
def test_what_to_write_instead(mistake: Callable[[Any, Any, Any], object], fix: str) -> None:
    def pipe(cta: ox.Cta, src: Src, out: Out) -> None:
        mistake(cta, src, out)

    with pytest.raises(RecordError) as caught:
        recorded(pipe)
    assert caught.value.rules == ("OX1009",)
    assert fix in caught.value.diagnostics[0].fix


CALLS: list[tuple[Callable[[Any, Any], object], str]] = [
    (lambda cta, src: src.g2s(cta.shared(src), (0, 0)), "TmaDescriptor.g2s(leader, tile, coords, token, *, cache_hint=None)"),
    (lambda cta, src: cta.ring(tiles=(src,)), "Cta.ring(*, stages, tiles, consumers=None)"),
    (lambda cta, src: cta.ring(stages=2, tiles=(src,)).produce(), "Ring.produce(leader, /)"),
    (lambda cta, src: cta.map(lambda v: v, cta.shared(src)), "Maps.map(fn, /, *inputs, out)"),
    (lambda cta, src: cta.range(start=0, stop=3), "Cta.range(start, stop=..., step=1, /)"),
    (lambda cta, src: ox.bulk_g2s(cta), "bulk_g2s(leader, tile, src, at, token, *, nbytes=None, cache_hint=None)"),  # type: ignore[call-arg]
]


@pytest.mark.parametrize(("call", "signature"), CALLS)
def test_signatures_are_said(call: Callable[[Any, Any], object], signature: str) -> None:
    """Those of the rooms that are built on this one, too."""

    @ox.pipeline(threads=32)
    def pipe(cta: ox.Cta, src: Src) -> None:
        call(cta, src)

    dev = ox.Device.open("sim")
    with pytest.raises(RecordError) as caught:
        pipe[1].bind(ox.TmaDescriptor.tiled(dev.zeros((8, 8), ox.f32), box=(8, 8)))
    assert caught.value.rules == ("OX1009",)
    assert caught.value.diagnostics[0].required == signature


def test_a_constructor_has_no_signature_to_follow() -> None:
    def pipe(cta: Any, src: Any) -> None:
        ox.ManagedBarrier()  # type: ignore[call-arg]  # here

    assert refused(pipe, "OX1009").required == "a call as it is documented"

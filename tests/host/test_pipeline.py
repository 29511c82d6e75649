"""Declaring and launching pipelines: the recording's key, grids, streams, binding."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.errors import ArgumentError, OxidecopyError, UsageError, VerificationError

DEV = ox.Device.open("sim")
Src = ox.TmaDescriptor[ox.f32, ox.D2]
Out = ox.GlobalArray[ox.f32, ox.D2]


def pipe() -> ox.Pipeline[[Src, Out]]:
    """A fresh one: nothing is recorded yet."""

    @ox.pipeline(threads=32)
    def load(cta: ox.Cta, src: Src, out: Out) -> None:
        """Loads."""
        tile = cta.shared(src)
        full = cta.barrier().init(1)
        at = (cta.block_idx.y * 16, cta.block_idx.x * 16)
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile)
            src.g2s(leader, tile, at, token)
        full.wait(token)
        cta.store(out, tile, at)
        full.inval()

    return load


def array(rows: int = 32, cols: int = 32) -> Out:
    x = np.arange(rows * cols, dtype=np.float32).reshape(rows, cols)
    return cast("Out", DEV.array(x))


def desc(a: Out, box: tuple[int, int] = (16, 16), **more: Any) -> Src:
    return ox.TmaDescriptor.tiled(a, box=box, **more)


def raises(error: type[OxidecopyError], rule: str, use: Callable[[], object]) -> str:
    with pytest.raises(error) as caught:
        use()
    assert type(caught.value) is error
    assert caught.value.rules == (rule,)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.site is not None
    assert diagnostic.site.file == __file__
    assert diagnostic.fix
    return str(diagnostic)


# ---- running
def test_launch() -> None:
    load, a = pipe(), array()
    out = DEV.empty((32, 32), ox.f32)
    load[2, 2](desc(a), out)
    assert (out.numpy() == a.numpy()).all()


@pytest.mark.parametrize("grid", [(2, 2), ox.Grid(x=2, y=2), (2, 2, 1), (np.int64(2), np.uint8(2))])
def test_grids(grid: Any) -> None:
    a = array()
    assert pipe()[grid].bind(desc(a), a).launch.grid == (2, 2, 1)


def test_one_number_is_a_grid() -> None:
    a = array()
    assert pipe()[3].bind(desc(a), a).launch.grid == pipe()[(3,)].bind(desc(a), a).launch.grid == (3, 1, 1)


def test_bind_records_prepare_verifies_and_the_call_runs() -> None:
    load, a = pipe(), array()
    out = DEV.empty((32, 32), ox.f32)
    bound = load[2, 2].prepare(desc(a), out)
    assert bound.verify() is bound.verify()
    for _ in range(2):
        bound()
    assert (out.numpy() == a.numpy()).all()

    @ox.pipeline(threads=32)
    def hangs(cta: ox.Cta, out: Out) -> None:
        cta.barrier().init(1).wait_phase(0)

    bad = hangs[1].bind(a)
    for use in (bad.verify, bad, lambda: hangs[1].prepare(a)):
        with pytest.raises(VerificationError):
            use()


def test_a_bound_launch_keeps_its_arrays() -> None:
    load = pipe()
    out = DEV.empty((32, 32), ox.f32)
    bound = load[2, 2].bind(desc(array()), out)
    for _ in range(4):
        array()  # would take over the memory of the first one, were it freed
    bound()
    assert (out.numpy() == array().numpy()).all()


def test_streams() -> None:
    class Stream:
        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, 7

    load, a = pipe(), array()
    for stream in (0, 7, Stream()):
        load[2, 2].on(stream)(desc(a), DEV.empty((32, 32), ox.f32))
    for wrong in ("s", None, 1.0, True, -1, 1 << 64):
        raises(ArgumentError, "OX1051", lambda w=wrong: load[2, 2].on(w))  # type: ignore[misc]  # bound now


# ---- what a recording depends on
def test_the_same_types_are_recorded_once() -> None:
    load = pipe()
    a, b = array(), array(64, 48)
    one = load[2, 2].bind(desc(a), a).program
    assert load[1].bind(desc(b), a).program is one  # other extents and another grid
    assert load[1].bind(desc(a, l2_promotion=0), a).program is one  # speed only


def test_other_types_are_recorded_anew() -> None:
    load, a = pipe(), array()
    descs = [
        desc(a),
        desc(a, box=(8, 16)),
        desc(a, swizzle=ox.Swizzle64B),
        desc(a, element_strides=(2, 1)),
        desc(a, oob_fill="nan"),
    ]
    programs = [load[1].bind(d, a).program for d in descs]
    assert len(set(map(id, programs))) == len(set(programs)) == 5


def test_plain_arguments_are_part_of_it_and_others_are_not() -> None:
    @ox.pipeline(threads=32)
    def pipe(cta: ox.Cta, out: Out, k: int, flag: bool, name: str, n: ox.Idx, alpha: ox.Scalar[ox.f32]) -> None:
        assert isinstance(k, int)
        for _ in range(k):
            cta.sync()

    a = array()
    base = pipe[1].bind(a, 1, True, "x", 1, 1.0).program
    assert pipe[1].bind(a, 1, True, "x", 2, 2.5).program is base
    assert pipe[1].bind(a, k=1, flag=True, name="x", n=3, alpha=3).program is base
    for other in ((2, True, "x"), (1, False, "x"), (1, True, "y")):
        assert pipe[1].bind(a, *other, 1, 1.0).program is not base


def test_true_is_not_one() -> None:
    @ox.pipeline(threads=32)
    def pipe(cta: ox.Cta, out: Out, k: int) -> None: ...

    raises(ArgumentError, "OX1053", lambda: pipe[1].bind(array(), True))


def test_a_refused_recording_is_tried_again() -> None:
    mistakes = [True]

    @ox.pipeline(threads=32)
    def pipe(cta: ox.Cta, out: Out) -> None:
        if mistakes:
            cta.barrier().inval()  # type: ignore[misc]  # the mistake

    with pytest.raises(ox.errors.StateError):
        pipe[1].bind(array())
    mistakes.clear()
    assert pipe[1].bind(array()).program.barriers == ()


def test_names_and_docs_are_the_functions() -> None:
    load = pipe()
    assert (load.__name__, load.__doc__, load.__module__) == ("load", "Loads.", __name__)
    assert list(load.signature.parameters) == ["src", "out"]
    assert (load.threads, load.cluster) == (32, None)


# ---- what is refused
@pytest.mark.parametrize(
    "grid",
    [0, -1, 1.0, "2", None, True, (), (0, 1), (1, 0), (2, -1), (1, 1, 1, 1), (2.0, 1), [2, 2], (1 << 31,), (1, 65_536), (1, 1, 65_536)],
)
def test_no_grid(grid: Any) -> None:
    load, a = pipe(), array()
    raises(ArgumentError, "OX1034", lambda: load[grid](desc(a), a))


def test_a_grid_too_large_in_two_ways() -> None:
    with pytest.raises(ArgumentError) as caught:
        pipe()[1 << 31, 1 << 16]
    assert [d.got for d in caught.value.diagnostics] == [str(1 << 31), str(1 << 16)]


def test_a_grid_of_the_largest_size_is_one() -> None:
    pipe()[(1 << 31) - 1, 65_535, 65_535]


def test_no_grid_at_all() -> None:
    load = cast("Any", pipe())
    a = array()
    assert "load[4, 2](...)" in raises(ArgumentError, "OX1033", lambda: load(desc(a), a))
    assert "load[4, 2].bind(...)" in raises(ArgumentError, "OX1033", lambda: load.bind(desc(a), a))
    assert not hasattr(load, "bound")


@pytest.mark.parametrize("threads", [None, 0, -1, 1025, 1.0, "128", True, (128,)])
def test_no_threads(threads: Any) -> None:
    raises(UsageError, "OX1031", lambda: ox.pipeline(threads=threads))


def test_a_decorator_without_brackets() -> None:
    declare = cast("Any", ox.pipeline)
    raises(UsageError, "OX1031", lambda: declare(lambda cta: None))
    raises(UsageError, "OX1031", lambda: declare(128))


@pytest.mark.parametrize("cluster", [0, -1, 17, (2, 0), (4, 5), (1, 1, 1, 1), 2.0, "2", [2, 1], (), True])
def test_no_cluster(cluster: Any) -> None:
    raises(UsageError, "OX1065", lambda: ox.pipeline(threads=32, cluster=cluster))


def test_both_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        ox.pipeline(threads=0, cluster=0)
    assert caught.value.rules == ("OX1031", "OX1065")


@pytest.mark.parametrize(("cluster", "shape"), [(2, (2, 1, 1)), ((2, 2), (2, 2, 1)), ((1, 1, 16), (1, 1, 16)), (1, (1, 1, 1))])
def test_clusters(cluster: Any, shape: tuple[int, int, int]) -> None:
    @ox.pipeline(threads=32, cluster=cluster)
    def pipe(cta: ox.ClusterCta, out: Out) -> None:
        cta.cluster_sync()

    assert pipe[shape].bind(array()).program.cluster == shape
    pipe[shape](array())


def test_launching_while_recording() -> None:
    load = pipe()

    @ox.pipeline(threads=32)
    def outer(cta: ox.Cta, src: Src, out: Out) -> None:
        load[1](src, out)

    a = array()
    with pytest.raises(ox.errors.ScopeError) as caught:
        outer[1].bind(desc(a), a)
    assert caught.value.rules == ("OX1060",)


def test_a_pipeline_recorded_by_two_threads_at_once_is_one_program() -> None:
    """A prepared launch is held against it when it is given other arguments."""
    made: list[object] = []

    def other_thread() -> None:
        made.append(load[2, 2].bind(*args).program)

    @ox.pipeline(threads=32)
    def load(cta: ox.Cta, src: Src, out: Out) -> None:
        tile, full = cta.shared(src), cta.barrier().init(1)
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile)
            src.g2s(leader, tile, (0, 0), token)
        full.wait(token)
        if not started:
            started.append(threading.Thread(target=other_thread))
            started[0].start()
            started[0].join()
        full.inval()

    started: list[threading.Thread] = []
    args = (ox.TmaDescriptor.tiled(DEV.zeros((32, 32), ox.f32), box=(16, 16)), DEV.zeros((32, 32), ox.f32))
    assert load[2, 2].bind(*args).program is made[0] is load[2, 2].bind(*args).program

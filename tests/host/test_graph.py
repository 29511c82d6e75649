"""Graphs on the simulator: captured once, replayed, updated; everything out of order is refused."""

from __future__ import annotations

from typing import Any

import pytest

import oxidecopy as ox
from oxidecopy.errors import ArgumentError, UsageError
from tests.helpers.launching import copy_pipeline, descriptor, numbers

DEV = ox.Device.open("sim")


def test_captured_replayed_updated() -> None:
    a, b = DEV.array(numbers()), DEV.array(numbers(7))
    out, other = DEV.zeros((32, 32), ox.f32), DEV.zeros((32, 32), ox.f32)
    launch = copy_pipeline()[2, 2].prepare(descriptor(a), out)
    graph = ox.Graph(DEV)
    with graph.capture():
        node = graph.add(launch)
        graph.add(launch)
    assert (out.numpy() == 0).all()  # nothing ran
    graph.replay()
    assert (out.numpy() == numbers()).all()
    node.update(descriptor(b), other)
    DEV.engine.fill(out.buffer, 0, out.buffer.nbytes, 0)
    graph.replay(7)
    assert (other.numpy() == numbers(7)).all()
    assert (out.numpy() == numbers()).all()  # the second launch is as it was


def test_a_graph_has_its_own_arguments() -> None:
    a, out, other = DEV.array(numbers()), DEV.zeros((32, 32), ox.f32), DEV.zeros((32, 32), ox.f32)
    launch = copy_pipeline()[2, 2].prepare(descriptor(a), out)
    graph = ox.Graph(DEV)
    with graph.capture():
        graph.add(launch)
    launch.update(descriptor(a), other)
    graph.replay()
    assert (other.numpy() == 0).all()
    assert (out.numpy() == numbers()).all()


def test_updates_of_another_shape() -> None:
    a, out = DEV.array(numbers()), DEV.zeros((32, 32), ox.f32)
    graph = ox.Graph(DEV)
    with graph.capture():
        node = graph.add(copy_pipeline()[2, 2].prepare(descriptor(a), out))
    with pytest.raises(ArgumentError) as caught:
        node.update(descriptor(a), DEV.zeros((48, 32), ox.f32))
    assert caught.value.rules == ("OX5338",)


def refused(use: Any) -> None:
    with pytest.raises(UsageError) as caught:
        use()
    assert caught.value.rules == ("OX5339",)


@pytest.mark.parametrize("wrong", [None, 3, "sim", DEV.engine])
def test_what_is_no_device(wrong: Any) -> None:
    refused(lambda: ox.Graph(wrong))


def test_out_of_order() -> None:
    a, out = DEV.array(numbers()), DEV.zeros((32, 32), ox.f32)
    load = copy_pipeline()[2, 2]
    launch, graph = load.prepare(descriptor(a), out), ox.Graph(DEV)
    refused(graph.replay)
    refused(lambda: graph.add(launch))
    with graph.capture():
        refused(graph.replay)
        refused(lambda: graph.add(load.bind(descriptor(a), out)))  # type: ignore[arg-type]
        graph.add(launch)
    refused(lambda: graph.add(launch))
    refused(lambda: graph.capture().__enter__())
    graph.replay()


def test_a_capture_that_failed_leaves_nothing() -> None:
    a, out = DEV.array(numbers()), DEV.zeros((32, 32), ox.f32)
    graph = ox.Graph(DEV)

    def fail() -> None:
        with graph.capture():
            graph.add(copy_pipeline()[2, 2].prepare(descriptor(a), out))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    refused(graph.replay)
    with graph.capture():
        pass
    graph.replay()
    assert (out.numpy() == 0).all()


def test_what_reaches_coordinates_and_trip_counts_is_fixed_by_the_capture() -> None:
    """Another value asks for another proof: first of the launch, then of the graph that holds it. Values of elements are free."""

    @ox.pipeline(threads=32)
    def first(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D2], rows: ox.Idx, value: ox.Scalar[ox.f32]) -> None:
        tile = cta.shared(ox.f32, (1, 32), align=ox.A16)
        cta.fill(tile, value)
        cta.sync()
        for row in cta.range(rows):
            cta.store(out, tile, (row, 0))

    out = DEV.zeros((2, 32), ox.f32)
    graph = ox.Graph(DEV)
    with graph.capture():
        node = graph.add(first[1].prepare(out, 1, 1.0))
    node.update(out, 1, 2.0)
    for rows in (0, 2, 3):
        with pytest.raises(ArgumentError) as caught:
            node.update(out, rows, 2.0)
        assert caught.value.rules == ("OX5338",)
        assert f"'rows' = {rows}" in str(caught.value)
    graph.replay()
    assert (out.numpy() == [[2.0] * 32, [0.0] * 32]).all()

"""NVTX ranges: by the pipeline's name where nvtx is installed, nothing at all where it is not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import oxidecopy as ox
from oxidecopy.host import ranges
from oxidecopy.host.ranges import in_range
from tests.helpers.launching import copy_pipeline, descriptor, numbers


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What a made-up nvtx is told."""
    told: list[str] = []
    domain = SimpleNamespace(
        push_range=lambda attributes: told.append(f"push {attributes}"),
        pop_range=lambda: told.append("pop"),
        get_event_attributes=lambda message: message,
    )

    def get_domain(name: str) -> Any:
        told.append(name)
        return domain

    nvtx: Any = SimpleNamespace(get_domain=get_domain)
    monkeypatch.setitem(sys.modules, "nvtx", nvtx)
    ranges._domain.cache_clear()
    yield told
    ranges._domain.cache_clear()


def test_launches_are_ranges(said: list[str]) -> None:
    dev = ox.Device.open("sim-fast")
    a, out = dev.array(numbers()), dev.zeros((32, 32), ox.f32)
    load = copy_pipeline()[2, 2]
    load(descriptor(a), out)
    launch = load.prepare(descriptor(a), out)
    launch()
    launch()
    assert said == ["oxidecopy", *["push load", "pop"] * 3]


def test_a_replay_is_a_range_of_all_names(said: list[str]) -> None:
    dev = ox.Device.open("sim-fast")
    a, out = dev.array(numbers()), dev.zeros((32, 32), ox.f32)
    launch, graph, empty = copy_pipeline()[2, 2].prepare(descriptor(a), out), ox.Graph(dev), ox.Graph(dev)
    with graph.capture():
        graph.add(launch)
        graph.add(launch)
    with empty.capture():
        pass
    graph.replay()
    empty.replay()
    assert said[-4:] == ["push load", "pop", "push graph", "pop"]


def test_a_range_ends_with_an_error_too(said: list[str]) -> None:
    def fail() -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        in_range("x", fail)()
    assert said[-1] == "pop"


def test_without_nvtx_the_call_is_the_call_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nvtx", None)
    ranges._domain.cache_clear()

    def call() -> None: ...

    assert in_range("x", call) is call
    ranges._domain.cache_clear()

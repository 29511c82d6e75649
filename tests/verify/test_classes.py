"""Thread classes."""

from __future__ import annotations

from oxidecopy.verify.classes import thread_classes
from tests.helpers.programs import Builder


def classes(b: Builder) -> dict[str, int]:
    return {c.name: c.size for c in thread_classes(b.program())}


def test_without_scopes_all_threads_are_one_class() -> None:
    assert classes(Builder(threads=96)) == {"all threads": 96}
    assert classes(Builder(threads=1)) == {"the only thread": 1}


def test_elect_and_warps_cut_the_block() -> None:
    b = Builder()
    with b.elect(0):
        b.fence()
    with b.scope((32, 128)), b.elect(32):
        b.fence()
    assert classes(b) == {"thread 0": 1, "threads 1-31": 31, "thread 32": 1, "threads 33-127": 95}


def test_threads_with_the_same_scopes_are_one_class_even_when_apart() -> None:
    b = Builder()
    with b.others(64):
        b.fence()
    assert classes(b) == {"threads 0-63, 65-127": 127, "thread 64": 1}


def test_a_class_is_inside_a_scope_as_a_whole() -> None:
    b = Builder()
    with b.scope((0, 32)):
        b.fence()
    scope = b.program().steps[0].op
    assert [c.inside(scope) for c in thread_classes(b.program())] == [True, False]  # type: ignore[arg-type]

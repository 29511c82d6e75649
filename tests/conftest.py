"""What the configuration file cannot say: which tests are skipped or not measured, and how hypothesis runs on small, shared machines."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test, settings

# No deadline: a loaded machine is slow, not wrong. In CI the examples are the same on each run, so that a failure can be repeated, and
# fewer: more of them would show nothing that the run before did not.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True, max_examples=30)
settings.load_profile("ci" if os.environ.get("CI") else "local")


# Measuring branches makes a test two to four times slower. These hold whole programs against each other, or take a rule away and look what
# is missed, through code that the tests of its own room reach part by part; and what random examples reach is no promise. Neither counts
# for the coverage gate.
UNMEASURED = (
    "conformance/test_descriptor_cases.py",
    "conformance/test_descriptors.py",
    "conformance/test_oracles.py",
    "engines/cuda/code/test_beyond.py",
    "engines/cuda/code/test_random.py",
    "engines/cuda/emit/test_on_cpu.py",
    "engines/sim/test_against_verifier.py",
    "engines/sim/test_vectors.py",
    "mypy_plugin/test_cases.py",
    "mypy_plugin/test_every_rule.py",
    "mypy_plugin/test_leaks.py",
    "rules/test_pages.py",
    "test_examples.py",
    "test_patterns.py",
    "test_readme.py",
    "test_rosetta.py",
    "test_violations.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    whole = tuple(str(Path(__file__).parent / name) for name in UNMEASURED)
    gone = [path for path in whole if not Path(path).exists()]
    if gone:
        raise pytest.UsageError(f"UNMEASURED names what is not there: {', '.join(gone)}")
    for item in items:
        if is_hypothesis_test(getattr(item, "obj", None)) or str(item.path).startswith(whole):
            item.add_marker("unmeasured")
    _skip_without_gpu([item for item in items if item.get_closest_marker("gpu") is not None])


def pytest_collection_finish() -> None:
    """Tests by the ten thousand live to the end: the garbage collector need not look through them again and again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """What pytest-cov has for this (`no_cover`) ends one measurement, and a process of pytest-xdist has two, one below the other."""
    if item.get_closest_marker("unmeasured") is None:
        return (yield)
    here, elsewhere = sys.gettrace(), threading.gettrace()
    sys.settrace(None)
    threading.settrace(None)
    try:
        return (yield)
    finally:
        threading.settrace(elsewhere)
        sys.settrace(here)


def _skip_without_gpu(marked: list[pytest.Item]) -> None:
    if not marked:
        return
    from oxidecopy.engines.cuda.probe import probe

    facts = probe()
    if facts.reason:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=f"no GPU: {facts.reason}"))

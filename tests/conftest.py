"""What the configuration file cannot say: when tests marked `gpu` are skipped, and how hypothesis runs on small, shared machines."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# No deadline: a loaded machine is slow, not wrong. In CI the examples are the same on each run, so that a failure can be repeated, and
# fewer: more of them would show nothing that the run before did not.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True, max_examples=30)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    marked = [item for item in items if item.get_closest_marker("gpu") is not None]
    if not marked:
        return
    from oxidecopy.engines.cuda.probe import probe

    facts = probe()
    if facts.reason:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=f"no GPU: {facts.reason}"))

"""What all tests of the plugin share: mypy's cache of everything that is not the tests' own, and one check of all files of cases."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.mypy_plugin.project import Project
from tests.mypy_plugin.warm import Warm

if TYPE_CHECKING:  # they know mypy's inside, and some tests run with a mypy that has another one
    from tests.mypy_plugin.analysed import Checked


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Warm:
    base = tmp_path_factory.getbasetemp()
    return Warm(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base)


@pytest.fixture(scope="session")
def checked(warm: Warm, tmp_path_factory: pytest.TempPathFactory) -> Checked:
    """All files of cases; a test that runs the pass again must not be hurt by what another one did to it."""
    from tests.mypy_plugin.analysed import check, library
    from tests.mypy_plugin.sources import every_source

    cache = tmp_path_factory.mktemp("cases") / "cache"
    library(warm, cache)
    return check(every_source(), cache)


@pytest.fixture
def cache(warm: Warm, tmp_path: Path) -> Path:
    """For `options_of`: the library is checked already."""
    from tests.mypy_plugin.analysed import library

    library(warm, tmp_path / "library")
    return tmp_path / "library"


@pytest.fixture
def new(warm: Warm, tmp_path: Path) -> Iterator[Callable[..., Project]]:
    """Makes a project, as its class does."""
    made: list[Project] = []

    def make(*args: Any, **named: Any) -> Project:
        made.append(Project(tmp_path, *args, warm=warm, **named))
        return made[-1]

    yield make
    for project in made:
        project.stop()

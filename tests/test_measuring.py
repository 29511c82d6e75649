"""Tests that are not measured for coverage (conftest.py) run at full speed."""

from __future__ import annotations

import sys
import threading

import pytest


@pytest.mark.unmeasured
def test_nothing_watches_a_test_that_is_not_measured() -> None:
    assert sys.gettrace() is None
    assert threading.gettrace() is None


def test_what_watches_the_others_is_there_again(request: pytest.FixtureRequest) -> None:
    plugin = request.config.pluginmanager.getplugin("_cov")
    measured = plugin is not None and plugin.cov_controller is not None
    assert (sys.gettrace() is not None) == measured or not measured

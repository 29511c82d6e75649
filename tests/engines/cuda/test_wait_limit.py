"""The limit for waits: by default, when checked, and from the environment."""

from __future__ import annotations

import pytest

from oxidecopy.engines.cuda.wait_limit import LIMIT_MAX_MS, LIMIT_VARIABLE, wait_limit_us
from oxidecopy.errors import UsageError


def test_without_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LIMIT_VARIABLE, raising=False)
    assert (wait_limit_us(checked=False), wait_limit_us(checked=True)) == (4_000_000, 1_000_000)
    monkeypatch.setenv(LIMIT_VARIABLE, "")
    assert wait_limit_us(checked=False) == 4_000_000


@pytest.mark.parametrize("checked", [True, False])
def test_the_variable_counts_milliseconds(monkeypatch: pytest.MonkeyPatch, checked: bool) -> None:
    for ms in (1, 250, LIMIT_MAX_MS):
        monkeypatch.setenv(LIMIT_VARIABLE, str(ms))
        assert wait_limit_us(checked=checked) == 1000 * ms < 1 << 32


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "4s", " 4", "\u0664", str(LIMIT_MAX_MS + 1), "9" * 50, "9" * 5000])
def test_what_is_no_limit(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, text)
    with pytest.raises(UsageError) as caught:
        wait_limit_us(checked=False)
    assert caught.value.rules == ("OX5337",)

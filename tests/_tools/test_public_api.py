"""The snapshot of the public API: what is in it, and what is said when it changes."""

from __future__ import annotations

from pathlib import Path

import pytest

import oxidecopy as ox
from oxidecopy._tools import public_api

TEXT = public_api.text()
LINES = TEXT.splitlines()


def test_every_public_name_is_in_it() -> None:
    shown = {line.split(" ")[-1] for line in LINES if line.startswith("module ")}
    for name in set(ox.__all__) - {"__version__"}:
        starts = tuple(f"{start}ox.{name}" for start in ("class ", "@final class ", "def ", "module ", "@runtime_checkable class ", ""))
        assert f"ox.{name}" in shown or any(line.startswith(starts) for line in LINES), name


@pytest.mark.parametrize(
    "line",
    [
        "@final class ox.f32(HasStore, HasAdd)",
        "    def empty(self, shape: _Sh, dtype: type[DT], *, pad: bool=False) -> GlobalArray[DT, _Sh]",
        "    def elect(self) -> AbstractContextManager[Leader, None]",  # of a base that is not public itself
        "    block_idx: property -> Dim3",
        "    @classmethod def of(cls, device: Device, stream: SupportsCudaStream | int) -> Self",
        "    ox.reduce.add: Final[ReduceOp[HasAdd]]",
        "        rules: property -> tuple[str, ...]",
        "ox.D2: TypeAlias = tuple[Idx, Idx]",
    ],
)
def test_how_names_are_told(line: str) -> None:
    assert line in LINES


def test_overloads_are_told_and_what_implements_them_is_not() -> None:
    arrays = [line for line in LINES if line.startswith("    def array(self, x:")]
    assert len(arrays) > 5
    assert not any("x: Any" in line for line in arrays)


def test_what_only_the_package_can_call_is_not_told() -> None:
    assert "Recorder" not in TEXT
    assert "TypeVar(" not in TEXT
    names = [line.strip().removeprefix("def ").partition("(")[0].partition(":")[0] for line in LINES if line.startswith("    ")]
    assert not [name for name in names if name.startswith("_") and not name.startswith("__")]


def test_a_change_is_shown_with_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "public_api.txt"
    assert public_api.main([], page) == 0
    assert public_api.main(["--check"], page) == 0
    capsys.readouterr()
    page.write_text(TEXT.replace("def elect(self)", "def elect(self, lane: int)"))
    assert public_api.main(["--check"], page) == 1
    said = capsys.readouterr().err
    assert "which breaks whoever relies on them" in said
    assert "  -    def elect(self, lane: int)" in said
    assert "add it to CHANGELOG.md" in said
    assert said.rstrip().endswith(public_api.COMMAND)


def test_what_comes_breaks_nobody() -> None:
    assert "breaks" not in public_api.difference("a\n", "a\nb\n")
    assert "  +b" in public_api.difference("a\n", "a\nb\n")

"""What is refused for release: files too few or too many, another version, damaged machine code, types that are not known."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from oxidecopy._tools import package
from oxidecopy._tools.package import BESIDE, Done, NotFitError, imported, sdist_faults, unknown_types, wheel_faults
from oxidecopy._version import __version__

CUBIN = f"{package.KERNELS}/cubins/sm_90a.cubin"
ABOUT = f"oxidecopy-{__version__}.dist-info/METADATA"


@pytest.fixture
def wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, bytes]:
    """A small wheel that is as it should be, of a small checkout."""
    listed = {"files": [{"file": "cubins/sm_90a.cubin", "sha256": hashlib.sha256(b"code").hexdigest()}]}
    files = {"oxidecopy/__init__.py": b"", "oxidecopy/py.typed": b"", CUBIN: b"code"}
    files[f"{package.KERNELS}/manifest.json"] = json.dumps(listed).encode()
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    monkeypatch.setattr(package, "ROOT", tmp_path)
    return {**files, ABOUT: f"Name: oxidecopy\nVersion: {__version__}\n".encode()}


def faults(files: dict[str, bytes]) -> str:
    return "\n".join(wheel_faults(files))


def test_a_wheel_that_is_fit(wheel: dict[str, bytes]) -> None:
    assert faults(wheel) == ""


def test_stubs_do_not_get_into_a_wheel(wheel: dict[str, bytes]) -> None:
    assert "would install `cuda` beside the package" in faults({**wheel, "cuda/bindings/driver.pyi": b""})
    assert "would install `stubs`" in faults({**wheel, "stubs/cuda/bindings/driver.pyi": b""})


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("oxidecopy/py.typed", None, "lacks oxidecopy/py.typed"),
        (CUBIN, None, "sm_90a.cubin of the wheel is not the file of its manifest"),
        (CUBIN, b"codf", "sm_90a.cubin of the wheel is not the file of its manifest"),
        (f"{package.KERNELS}/manifest.json", None, "has no machine code"),
        (ABOUT, b"Name: oxidecopy\nVersion: 0.0.0\n", f"does not say version {__version__}"),
    ],
)
def test_a_wheel_that_is_not(wheel: dict[str, bytes], name: str, data: bytes | None, said: str) -> None:
    files = {of: found for of, found in {**wheel, name: data}.items() if found is not None}
    assert said in faults(files)


def test_a_source_distribution_has_stubs_tests_and_docs(wheel: dict[str, bytes]) -> None:
    names = {*BESIDE, *wheel} - {ABOUT}
    assert list(sdist_faults(names)) == []
    for name in (*BESIDE, CUBIN):
        assert list(sdist_faults(names - {name})) == [f"the source distribution lacks {name}"]


def symbols(**known: bool) -> dict[str, object]:
    rows = [
        {"name": name.replace("__", "."), "isTypeKnown": state, "isTypeAmbiguous": False, "diagnostics": [{"message": "is unknown\nmore"}]}
        for name, state in known.items()
    ]
    return {"typeCompleteness": {"symbols": rows}}


def told(public: Sequence[str], **known: bool) -> Iterator[str]:
    return unknown_types(symbols(**known), public)


def test_types_of_public_names_are_known() -> None:
    assert list(told(["a.B"], a__B=True, a__B__f=True, other=False)) == []
    assert list(told(["a.B"], a__B=True, a__B__f=False)) == ["the type of a.B.f is not known without cuda-bindings: is unknown"]
    assert list(told(["a.B"], a__C=True)) == ["pyright does not see a.B"]


def test_user_code_is_checked_that_asks_for_nothing_else() -> None:
    assert imported("import os.path\nfrom numpy import typing\ndef f():\n    from PIL import Image") == {"os", "numpy", "PIL"}
    lessons = [path for path in (package.ROOT / "examples").glob("*.py") if imported(path.read_text()) <= package.KNOWN]
    assert len(lessons) > 25


def test_a_tool_that_fails_ends_it(capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[tuple[Sequence[str], Path]] = []

    def run(command: Sequence[str], folder: Path, _first: str) -> Done:
        asked.append((command, folder))
        return Done(status=1, output="no such backend")

    assert package.main([], run) == 1
    ((command, folder),) = asked
    assert command[1:4] == ("-m", "hatchling", "build")
    assert folder == package.ROOT
    assert "hatchling build -t sdist" in capsys.readouterr().err
    with pytest.raises(NotFitError, match="no such backend"):
        package.ran(run, folder, "tool")


def test_the_version_is_in_one_place() -> None:
    root = package.ROOT
    assert 'dynamic = ["version"]' in (root / "pyproject.toml").read_text()
    files = [root / "pyproject.toml", root / "README.md", *(root / "docs").glob("*.md"), *(root / "oxidecopy").rglob("*.py")]
    assert [path.name for path in files if f'"{__version__}"' in path.read_text()] == ["_version.py"]

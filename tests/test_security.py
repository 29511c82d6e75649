"""What docs/security.md promises: files that are read are data, readers are bounded, changed machine code does not reach a driver."""

from __future__ import annotations

import ast
import contextlib
import re
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Self, final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oxidecopy as ox
from oxidecopy.engines.cuda.context import PrimaryContext
from oxidecopy.engines.cuda.elf import read_cubin
from oxidecopy.engines.cuda.module import interpreter
from oxidecopy.errors import CubinError, DeviceError, InputError, OxidecopyError, ProgramTextError
from oxidecopy.host.npy import load_npy
from oxidecopy.program.text import from_text
from oxidecopy.program.text.parser import TEXT_MAX
from tests.helpers.cubin_files import SM90
from tests.helpers.fake_driver import FakeDriver, FakeImage
from tests.helpers.fake_kernels import CODE, write_kernels

PACKAGE = Path(ox.__file__).parent
# Modules that make objects or code of bytes, whatever the bytes are.
UNSAFE = {"pickle", "marshal.load", "marshal.loads", "shelve", "dill", "cloudpickle", "code", "codeop", "runpy"}
WORDS = re.compile(
    r"pickle|marshal|shelve|dill|import code|runpy|\b(?:eval|exec|compile)\(|__import__|shell="
)  # in a file that is looked at
# Where Python source is run: the file that the user names, and our own lessons.
RUNS_CODE = {
    "cli/files.py": {"exec", "compile"},
    "bench/sim.py": {"runpy"},
    "conformance/lessons.py": {"runpy"},
    "trace/lessons.py": {"runpy"},
}
READERS = ("program/text", "program/binary", "engines/cuda/elf.py", "engines/cuda/elf_sections.py", "host/npy.py", "interop/cuda_array.py")


# ---- no code from data
def sources(*places: str) -> Iterator[tuple[str, Used]]:
    for place in places or (".",):
        path = PACKAGE / place
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            text = file.read_text()
            if places or WORDS.search(text):
                yield file.relative_to(PACKAGE).as_posix(), Used.by(ast.parse(text))


@final
@dataclass(slots=True)
class Used:
    """What a module imports, what it calls by name, and which constants it gives to which keywords."""

    imported: set[str] = field(default_factory=set)
    called: set[str] = field(default_factory=set)
    keywords: set[tuple[str | None, object]] = field(default_factory=set)

    @classmethod
    def by(cls, tree: ast.Module) -> Self:
        used = cls()
        for node in ast.walk(tree):
            match node:
                case ast.Import(names=names):
                    used.imported |= {alias.name for alias in names}
                case ast.ImportFrom(module=module, names=names):
                    used.imported |= {str(module), *(f"{module}.{alias.name}" for alias in names)}
                case ast.Attribute(value=ast.Name(name), attr=attribute):
                    used.imported.add(f"{name}.{attribute}")  # marshal.loads; what only writes may be used
                case ast.Call(func=ast.Name(name)):
                    used.called.add(name)
                case ast.keyword(arg=name, value=ast.Constant(value)):
                    used.keywords.add((name, value))
                case _:
                    pass
        return used

    def runs_code(self) -> set[str]:
        return (self.imported & UNSAFE) | (self.called & {"eval", "exec", "compile", "__import__"})


def test_nothing_unpickles_and_only_the_command_line_runs_a_users_python_file() -> None:
    for file, used in sources():
        assert used.runs_code() == RUNS_CODE.get(file, set()), file
        assert used.keywords.isdisjoint({("allow_pickle", True), ("shell", True)}), file


def test_these_tests_would_see_it() -> None:
    used = Used.by(ast.parse("import pickle\nfrom marshal import loads\neval(text)\nnp.load(f, allow_pickle=True)\nrun('x', shell=True)"))
    assert used.runs_code() == {"pickle", "marshal.loads", "eval"}
    assert used.keywords == {("allow_pickle", True), ("shell", True)}


def test_readers_of_files_can_reach_neither_modules_nor_processes_by_name() -> None:
    files = dict(sources(*READERS))
    assert len(files) > 15
    for file, used in files.items():
        assert used.imported.isdisjoint({"importlib", "subprocess", "ctypes", "sys", "builtins"}), file
        assert used.called.isdisjoint({"globals", "vars", "setattr", "delattr"}), file


# ---- bounds
def peak_of(read: Callable[[], object]) -> int:
    """The most bytes that a reader held at a time, whether it took the file or refused it."""
    tracemalloc.start()
    try:
        read()
    except OxidecopyError:
        pass
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return peak


HEADERS = st.one_of(
    st.binary(max_size=80),
    st.text(alphabet="{}()[]',: <>=0123456789descrfortanshpFalseTrueVUOf-+*", max_size=80).map(str.encode),
    st.builds(
        "{{'descr': {}, 'fortran_order': {}, 'shape': {}, }}".format,
        st.sampled_from(
            ["'<f4'", "'|O'", "'V2'", "'<U9999999'", "[('a', '<f4', (99999999,))]", "'<f4' * 9", "None", "()", "'|V0'", "'>c16'"]
        ),
        st.sampled_from(["False", "True", "0", "None"]),
        st.sampled_from(["(4,)", "()", "(0,)", "(-1,)", "(1 << 60,)", "(99999999999, 99999999999)", "(4.0,)", "[4]", "4", "(1,) * 40"]),
    ).map(str.encode),
)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(header=HEADERS, version=st.sampled_from([1, 2, 3, 9]), declared=st.none() | st.integers(0, 1 << 31), body=st.binary(max_size=24))
def test_any_npy_file_is_an_array_of_its_own_bytes_or_refused(
    tmp_path: Path, header: bytes, version: int, declared: int | None, body: bytes
) -> None:
    length = (len(header) if declared is None else declared).to_bytes(4, "little")
    file = tmp_path / "x.npy"
    file.write_bytes(b"\x93NUMPY" + bytes([version, 0]) + (length[:2] if version == 1 else length) + header + body)
    with contextlib.suppress(InputError):
        array = load_npy(file)
        assert array.nbytes == len(body)
        assert not array.dtype.hasobject


@pytest.mark.parametrize("shape", ["(4,)", "(1099511627776, 1024)"])
def test_an_npy_file_is_not_believed_about_its_size(tmp_path: Path, shape: str) -> None:
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode()
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\2\0" + len(header).to_bytes(4, "little") + header + bytes(8))
    assert peak_of(lambda: load_npy(tmp_path / "x.npy")) < 1 << 18
    (tmp_path / "y.npy").write_bytes(b"\x93NUMPY\2\0" + (1 << 31).to_bytes(4, "little"))
    assert peak_of(lambda: load_npy(tmp_path / "y.npy")) < 1 << 18


@pytest.mark.parametrize("line", ["  idx n", "  when true:", "  scope elect {0}:", '  idx "', "  nonsense " + "x" * 80])
def test_a_text_is_read_in_memory_of_its_size(line: str) -> None:
    text = "program p threads=64 cluster=(1, 1, 1) shared=0:\n" + f"{line}\n" * (30_000 // len(line))
    assert peak_of(lambda: from_text(text)) < 120 * len(text)


def test_a_text_that_is_too_large_is_not_read() -> None:
    text = "x" * (TEXT_MAX + 1)
    with pytest.raises(ProgramTextError):
        from_text(text)
    assert peak_of(lambda: from_text(text)) < 1 << 16


def test_a_cubin_is_read_in_memory_of_its_size() -> None:
    data = SM90.read_bytes()
    assert peak_of(lambda: read_cubin(data)) < 20 * len(data)
    for at in (40, 58, 60):  # where the table of sections is said to be, and how large
        broken = data[:at] + b"\xff" * 6 + data[at + 6 :]
        with pytest.raises(CubinError):
            read_cubin(broken)
        assert peak_of(partial(read_cubin, broken)) < 20 * len(data)


# ---- machine code
@pytest.mark.parametrize("changed", [CODE[:-1], CODE + b"\0", b"\x7fELF" + CODE[4:][::-1], b""])
def test_changed_machine_code_does_not_reach_the_driver(tmp_path: Path, changed: bytes) -> None:
    folder = write_kernels(tmp_path)
    for file in folder.glob("*.cubin"):
        file.write_bytes(changed)
    driver = FakeDriver(images=[FakeImage(changed, ())])
    with PrimaryContext(driver, 0), pytest.raises(DeviceError) as caught:
        interpreter(driver, 90, 232_448, folder)
    assert caught.value.rules == ("OX5335",)
    assert driver.calls["cuModuleLoadData"] == 0

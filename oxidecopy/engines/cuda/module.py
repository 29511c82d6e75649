"""The interpreter's machine code: which file fits a GPU, that it is the one that was built, and its kernels once it is loaded.

`oxidecopy/kernels/manifest.json` says of each file what it was built for and from. A file that is not the one of the manifest, or that was
built from another declaration of `abi`, is refused before the driver sees it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, final

from oxidecopy.engines.cuda.abi import part_of
from oxidecopy.engines.cuda.abi_header import abi_hash
from oxidecopy.engines.cuda.driver import check
from oxidecopy.errors import DeviceError, Diagnostic, ExecutionError
from oxidecopy.isa.limits import CLUSTER_PORTABLE_MAX

if TYPE_CHECKING:
    from cuda.bindings.driver import CUfunction, CUmodule

    from oxidecopy.engines.cuda.driver import Driver

NO_CODE: Final = "OX5334"
DAMAGED: Final = "OX5335"
TOO_MUCH: Final = "OX5336"
MANIFEST: Final = "manifest.json"
_TARGET: Final = re.compile(r"(sm|compute)_(\d+)([af]?)")


# ---- files
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFile:
    """One file of the manifest: `target` is what it was built for ("sm_90a", "compute_90" for PTX), `sha256` of its bytes.

    `part` says which kernels are in it: `abi.PARTS`.
    """

    file: str
    target: str
    sha256: str
    part: str = ""

    @property
    def is_ptx(self) -> bool:
        """The driver compiles it when it is loaded."""
        return self.target.startswith("compute_")

    def runs_on(self, sm: int) -> bool:
        """It is code for compute capability `sm`, 90 for 9.0 (CUDA's rules of binary compatibility; PTX for everything newer)."""
        parts = _TARGET.fullmatch(self.target)
        if parts is None:
            return False
        number, suffix = int(parts[2]), parts[3]
        if self.is_ptx and not suffix:
            return sm >= number
        return sm == number if suffix == "a" else sm // 10 == number // 10 and sm >= number


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What was built.

    Attributes:
        abi: the fingerprint of the declarations it was built from.
        toolkit: what built it.
        files: one per target and part.
        programmatic: kernels wait for the one before them (griddepcontrol.wait), so they may be launched while it is still ending.
    """

    abi: str
    toolkit: str
    files: tuple[CodeFile, ...]
    programmatic: bool = False


def kernels_folder() -> Traversable:
    """Where the package keeps its machine code."""
    return files("oxidecopy") / "kernels"


def read_manifest(folder: Traversable) -> Manifest:
    """The manifest of a folder of machine code.

    Raises:
        DeviceError: when there is none, or it cannot be read.
    """
    try:
        data: Any = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        found = tuple(CodeFile(file=f["file"], target=f["target"], sha256=f["sha256"], part=f.get("part", "")) for f in data["files"])
        programmatic = data.get("programmatic", False) is True
        return Manifest(abi=data["abi"], toolkit=data["toolkit"], files=found, programmatic=programmatic)
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise DeviceError(_damaged("the manifest of the kernels cannot be read", f"{MANIFEST}: {problem!r}", "its fields")) from problem


def choose(manifest: Manifest, sm: int, part: str = "") -> CodeFile:
    """The file with a part of the kernels for a GPU: machine code for it alone first, then for its family, then PTX.

    Raises:
        DeviceError: when there is none, or all were built for other declarations than this version's.
    """
    if manifest.abi != abi_hash():
        what = "the kernels were built for another version of oxidecopy"
        raise DeviceError(_damaged(what, f"declarations {manifest.abi[:16]}", f"declarations {abi_hash()[:16]}"))
    fitting = [f for f in manifest.files if f.part == part and f.runs_on(sm)]
    if not fitting:
        raise DeviceError(
            Diagnostic(
                rule=NO_CODE,
                what="there is no machine code for this GPU" + (f" that runs programs of family {part!r}" if part else ""),
                got=f"compute capability {sm // 10}.{sm % 10}",
                required=", ".join(targets(manifest, part)) or "any file at all",
                fix='take a newer version of oxidecopy, or Device.open("sim")',
            )
        )
    return min(fitting, key=lambda f: (f.is_ptx, "af".find(f.target[-1]) % 3))  # "a", "f", then plain


def read_code(folder: Traversable, code: CodeFile) -> bytes:
    """The file's bytes.

    Raises:
        DeviceError: when it is not there, or not the file that was built.
    """
    try:
        data = (folder / code.file).read_bytes()
    except OSError as problem:
        raise DeviceError(_damaged(f"`{code.file}` cannot be read", str(problem), "the file of the manifest")) from problem
    found = hashlib.sha256(data).hexdigest()
    if found != code.sha256:
        raise DeviceError(_damaged(f"`{code.file}` is not the file that was built", f"sha256 {found[:16]}", f"sha256 {code.sha256[:16]}"))
    return data


def _damaged(what: str, got: str, required: str) -> Diagnostic:
    return Diagnostic(rule=DAMAGED, what=what, got=got, required=required, fix="install oxidecopy again")


# ---- in the driver
@final
class Kernel:
    """One kernel of a loaded module. What a launch needs allowed is allowed once.

    Attributes:
        name: its symbol.
        function: the driver's handle.
        threads: the most threads that a CTA of it can have.
        resident: block, cluster and shared bytes -> how many such CTAs the device holds at once, where that was asked for.
    """

    __slots__ = ("_cluster", "_driver", "_limit", "_shared", "function", "name", "resident", "threads")

    def __init__(self, driver: Driver, name: str, function: CUfunction, shared_limit: int, threads: int) -> None:
        self._driver = driver
        self.threads = threads
        self.resident: dict[tuple[object, ...], int] = {}
        self.name = name
        self.function = function
        self._limit = shared_limit
        self._shared = 48 * 1024  # without asking, a launch may have this much (CUDA Programming Guide)
        self._cluster = CLUSTER_PORTABLE_MAX

    def allow(self, *, threads: int, shared_bytes: int, cluster_size: int) -> None:
        """Lets launches have so many threads, so much dynamic shared memory and such clusters. The context must be current.

        Raises:
            ExecutionError: when the device does not have it.
        """
        self._refuse(threads, shared_bytes)
        attributes = self._driver.CUfunction_attribute
        if shared_bytes > self._shared:
            attribute = attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            check(self._driver.cuFuncSetAttribute(self.function, attribute, self._limit), "cuFuncSetAttribute", self.name)
            self._shared = self._limit
        if cluster_size > self._cluster:
            attribute = attributes.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
            check(self._driver.cuFuncSetAttribute(self.function, attribute, 1), "cuFuncSetAttribute", self.name)
            self._cluster = cluster_size

    def _refuse(self, threads: int, shared_bytes: int) -> None:
        broken = []
        if shared_bytes > self._limit:
            what = f"`{self.name}` would need more shared memory than a CTA can have"
            required, fix = f"at most {self._limit:,} bytes on this device", "take fewer stages or smaller boxes"
            broken.append(Diagnostic(rule=TOO_MUCH, what=what, got=f"{shared_bytes:,} bytes", required=required, fix=fix))
        if threads > self.threads:
            what = f"`{self.name}` would need more threads than its registers leave room for in a CTA"
            required, fix = f"at most {self.threads}", "take fewer threads or consumers"
            broken.append(Diagnostic(rule=TOO_MUCH, what=what, got=f"{threads} threads", required=required, fix=fix))
        if broken:
            raise ExecutionError(*broken)


@final
class Module:
    """Machine code in the driver. It is loaded with the context current, and so are its kernels looked up."""

    def __init__(self, driver: Driver, image: bytes, shared_limit: int, name: str) -> None:
        self._driver = driver
        self._limit = shared_limit
        self._name = name
        # PTX is text, and the driver reads it to its terminating zero.
        self._image = image if image[:4] == b"\x7fELF" else image + b"\0"
        self.handle: CUmodule = check(driver.cuModuleLoadData(self._image), "cuModuleLoadData", name)
        self._kernels: dict[str, Kernel] = {}
        self._lock = Lock()

    def kernel(self, name: str) -> Kernel:
        """A kernel by its symbol."""
        found = self._kernels.get(name)
        if found is None:
            with self._lock:
                driver = self._driver
                function = check(driver.cuModuleGetFunction(self.handle, name.encode()), "cuModuleGetFunction", f"{name} of {self._name}")
                attributes = driver.CUfunction_attribute
                static, threads = (
                    check(driver.cuFuncGetAttribute(attribute, function), "cuFuncGetAttribute", name)
                    for attribute in (attributes.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, attributes.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
                )
                found = self._kernels[name] = Kernel(driver, name, function, self._limit - static, threads)
        return found

    def unload(self) -> None:
        """Takes it out of the driver; nothing of it may be running. The context must be current."""
        check(self._driver.cuModuleUnload(self.handle), "cuModuleUnload", self._name)


def describe(code: CodeFile, sm: int) -> str:
    """One line for `doctor` and for warnings: what runs, and what that means."""
    if code.is_ptx:
        return f"{code.file}: PTX that the driver compiles for compute capability {sm // 10}.{sm % 10}; slower to start, and never measured"
    return f"{code.file}: machine code for {code.target}"


@final
class Interpreter:
    """The interpreter's kernels for a GPU, whose files are loaded when one of their kernels is first asked for.

    Attributes:
        code: the file with most of them.
        programmatic: as in `Manifest`.
    """

    __slots__ = ("_driver", "_folder", "_limit", "_manifest", "_parts", "_sm", "code", "programmatic")

    def __init__(self, driver: Driver, sm: int, shared_limit: int, folder: Traversable) -> None:
        self._driver = driver
        self._folder = folder
        self._limit = shared_limit
        self._manifest = read_manifest(folder)
        self._sm = sm
        self._parts: dict[str, Module] = {}
        self.code = choose(self._manifest, sm)
        self.programmatic = self._manifest.programmatic

    def module(self, part: str = "") -> Module:
        """A part, loaded. The context must be current."""
        found = self._parts.get(part)
        if found is None:
            code = choose(self._manifest, self._sm, part)
            found = self._parts[part] = Module(self._driver, read_code(self._folder, code), self._limit, code.file)
        return found

    def kernel(self, name: str) -> Kernel:
        """A kernel by its symbol. The context must be current."""
        return self.module(part_of(name)).kernel(name)


def interpreter(driver: Driver, sm: int, shared_limit: int, folder: Traversable | None = None) -> Interpreter:
    """The interpreter for a GPU, with most of its kernels loaded. The context must be current."""
    made = Interpreter(driver, sm, shared_limit, kernels_folder() if folder is None else folder)
    made.module()
    return made


def targets(manifest: Manifest, part: str = "") -> Sequence[str]:
    """What there is code for, of a part, in the manifest's order."""
    return list(dict.fromkeys(f.target for f in manifest.files if f.part == part))

"""The interpreter's machine code for the fake driver: a folder with a manifest, and the image that the driver finds in its file."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.abi_header import abi_hash
from oxidecopy.engines.cuda.code.image import PARAMETER_BYTES
from tests.helpers.fake_driver import FakeImage, FakeKernel

CODE = b"\x7fELF of the interpreter"


def interpreter_image(sm: int = 90) -> FakeImage:
    """All entry points, each with its one parameter."""
    kernels = [FakeKernel(name, ((0, PARAMETER_BYTES[name.rsplit("_", 1)[1]]),)) for name in abi.ENTRY_POINTS]
    return FakeImage(CODE, tuple(kernels), sm=sm)


def write_kernels(folder: Path, *files: dict[str, str], data: bytes = CODE, **changes: Any) -> Path:
    """A folder with one file of `data` for each entry (target sm_90a, in all its parts, without any), and its manifest."""
    parts = {part: f"interpreter_{part}.cubin" if part else "interpreter.cubin" for part in abi.PARTS}
    entries = files or tuple([{"file": file, "target": "sm_90a", "part": part} for part, file in parts.items()])
    for entry in entries:
        (folder / entry["file"]).write_bytes(data)
    listed = [{"sha256": hashlib.sha256(data).hexdigest(), **entry} for entry in entries]
    manifest = {"abi": abi_hash(), "toolkit": "12.9", "files": listed, **changes}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder

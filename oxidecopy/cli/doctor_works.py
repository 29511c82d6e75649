"""What `oxidecopy doctor` ends with: each thing that this package does, whether it works here, and what it lacks where it does not."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from oxidecopy.cli import nvidia_tools
from oxidecopy.cli.facts import Fact, safely

if TYPE_CHECKING:
    from collections.abc import Sequence


def work_facts(before: Sequence[Fact]) -> list[Fact]:
    """Conclusions from the facts before, in the order they are printed."""
    known = {fact.topic: fact for fact in before}
    return [
        *safely("checked types", lambda: [_types(known)]),
        *safely("emitted code", lambda: [_emitted()]),
        *safely("own kernels", lambda: [_own_kernels(known)]),
        *safely("built kernels", lambda: [_built()]),
    ]


def _types(known: dict[str, Fact]) -> Fact:
    topic = "checked types"
    plugin = known["mypy plugin"]
    if plugin.state == "ok":
        return Fact(topic=topic, value="yes", state="ok", note=f"`oxidecopy check` asks mypy {known['mypy'].value} with the plugin")
    return Fact(topic=topic, value="no", state="missing", note=f"`oxidecopy check` verifies only: {plugin.value}, {plugin.note}")


def _emitted() -> Fact:
    number, place = nvidia_tools.toolkit()
    topic = "emitted code"
    if number:
        return Fact(topic=topic, value="yes", state="ok", note=f"`oxidecopy emit` writes CUDA C++, {place} compiles it")
    return Fact(
        topic=topic, value="written only", state="missing", note="`oxidecopy emit` needs nothing; nvcc, which would compile it, is not here"
    )


def _own_kernels(known: dict[str, Fact]) -> Fact:
    topic = "own kernels"
    gpus = [name for name in known if name.startswith("runs on cuda:") and known[name].value == "yes"]
    if gpus:
        return Fact(
            topic=topic, value="yes", state="ok", note=f"ox.Cubin launches on {', '.join(name.removeprefix('runs on ') for name in gpus)}"
        )
    return Fact(
        topic=topic, value="checked only", state="missing", note="ox.Cubin reads and checks cubins anywhere, and launches them on a GPU"
    )


def _built() -> Fact:
    from oxidecopy.engines.cuda.nvrtc import FOLDERS, find_library

    topic = "built kernels"
    lacking = [f"CUDA {major}" for major in FOLDERS if find_library(major) is None] if find_spec("nvidia") else ["any"]
    if lacking:
        note = f"without NVRTC of {', '.join(lacking)}: pip install 'oxidecopy[kernels]'; only whoever changes the kernels needs it"
        return Fact(topic=topic, value="no", note=note)
    return Fact(topic=topic, value="yes", state="ok", note="python -m oxidecopy._tools.build_cubins")

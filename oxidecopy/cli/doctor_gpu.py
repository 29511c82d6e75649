"""The GPU half of `oxidecopy doctor`: driver, toolkit, GPUs with their limits, kernels that fit, and what opens."""

from __future__ import annotations

import os
import warnings
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final

from oxidecopy.cli import nvidia_tools
from oxidecopy.cli.facts import Fact, State, safely
from oxidecopy.errors import OxidecopyError
from oxidecopy.isa import limits

if TYPE_CHECKING:
    from oxidecopy.engines.cuda.probe import CudaFacts, Gpu
    from oxidecopy.host.device import Device

VARIABLES: Final = ("CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_LOADING", "OXIDECOPY_CHECKED", "OXIDECOPY_WAIT_LIMIT_MS")
_KIB: Final = 1 << 10
_MIB: Final = 1 << 20
_GIB: Final = 1 << 30


def gpu_facts() -> list[Fact]:
    """Everything, in the order it is printed; whatever is broken, an answer comes."""
    from oxidecopy.engines.cuda import probe

    found = probe.probe()
    return [
        *safely("cuda-python", _bindings),
        *safely("NVIDIA driver", lambda: [_driver(found)]),
        *safely("CUDA toolkit", _toolkit),
        *safely("environment", _environment),
        *safely("GPUs", lambda: [fact for gpu in found.gpus for fact in _gpu(gpu)]),
        *safely("kernels", lambda: _kernels(found)),
    ]


def open_facts() -> list[Fact]:
    """What `Device.open` takes, what it says when it does not, and what it takes by itself."""
    from oxidecopy.engines.cuda import probe

    names = ["sim", "sim-fast", *(f"cuda:{gpu.ordinal}" for gpu in probe.probe().gpus)]
    rows = [_opens(name) for name in (names if len(names) > 2 else [*names, "cuda:0"])]
    return [*rows, *safely("by default", _default)]


# ---- software
def _bindings() -> list[Fact]:
    try:
        installed = version("cuda-python")
    except PackageNotFoundError:
        return [Fact(topic="cuda-python", value="not installed", state="missing", note="pip install 'cuda-python>=12.9,<14'")]
    return [Fact(topic="cuda-python", value=installed, state="ok")]


def _driver(found: CudaFacts) -> Fact:
    own = nvidia_tools.driver_version()
    note = "; ".join(part for part in (f"version {own}" if own else "", found.reason) if part)
    value = f"CUDA {found.driver}" if found.driver else "none"
    return Fact(topic="NVIDIA driver", value=value, state="ok" if found.driver else "missing", note=note)


def _toolkit() -> list[Fact]:
    number, place = nvidia_tools.toolkit()
    if number:
        return [Fact(topic="CUDA toolkit", value=number, note=place)]
    return [Fact(topic="CUDA toolkit", value="none", note="none is needed: the kernels are compiled")]


def _environment() -> list[Fact]:
    from oxidecopy.host.settings import settings

    found = {name: os.environ[name] for name in VARIABLES if name in os.environ}
    if not found:
        return []
    notes = settings(checked=False).notes()
    state: State = "missing" if notes else "info"
    return [
        Fact(topic="environment", value=", ".join(f"{name}={value}" for name, value in found.items()), state=state, note="; ".join(notes))
    ]


# ---- GPUs
def _gpu(gpu: Gpu) -> list[Fact]:
    name = f"cuda:{gpu.ordinal}"
    value = f"{gpu.name}, compute capability {gpu.sm // 10}.{gpu.sm % 10}, {gpu.memory_bytes / _GIB:.0f} GiB"
    head = Fact(
        topic=name,
        value=value,
        state="ok" if gpu.usable else "missing",
        note="" if gpu.usable else "has no tensor maps: they came with 9.0",
    )
    if not gpu.sms:
        return [head]
    clusters = "clusters of up to 8 CTAs, 16 where it is asked for" if gpu.clusters else "no clusters"
    limits = (
        f"{gpu.sms} SMs of {gpu.threads_per_sm:,} threads, shared memory {gpu.shared_bytes_block // _KIB} KiB per CTA "
        f"({gpu.shared_bytes_sm // _KIB} KiB per SM), L2 {gpu.l2_bytes / _MIB:.0f} MiB, {clusters}, "
        f"{'stream-ordered' if gpu.pools else 'plain'} allocation"
    )
    return [head, Fact(topic=f"{name} has", value=limits, note=gpu.bus_id), *safely(f"{name} used by", lambda: _users(gpu))]


def _users(gpu: Gpu) -> list[Fact]:
    """Others on the GPU, as far as it shows."""
    parts = []
    if gpu.in_use:
        parts.append("another library in this process has a context on it, which is shared")
    others = nvidia_tools.processes().get(gpu.bus_id, [])
    if others:
        parts.append(f"{len(others)} other process{'es' if len(others) > 1 else ''} ({', '.join(map(str, others[:8]))})")
    used = nvidia_tools.used_bytes().get(gpu.bus_id)
    if used is not None:
        parts.append(f"{used / _GIB:.1f} GiB of its memory in use")
    if nvidia_tools.mig_modes().get(gpu.bus_id) == "Enabled":
        parts.append("it is split into instances (MIG)")
    if gpu.exclusive:
        parts.append(f"compute mode: {gpu.exclusive}")
    state: State = "missing" if gpu.exclusive == "none allowed" else "info"
    return [Fact(topic=f"cuda:{gpu.ordinal} used by", value="; ".join(parts), state=state)] if parts else []


def _kernels(found: CudaFacts) -> list[Fact]:
    """The compiled kernels, and which file each GPU takes."""
    from oxidecopy.engines.cuda.module import choose, kernels_folder, read_code, read_manifest, targets

    folder = kernels_folder()
    try:
        manifest = read_manifest(folder)
    except OxidecopyError as error:
        return [Fact(topic="kernels", value="none", state="missing", note=_first(error))]
    rows = [Fact(topic="kernels", value=", ".join(targets(manifest)), state="ok", note=manifest.toolkit)]
    for gpu in found.gpus:
        if not gpu.usable:
            continue
        topic = f"kernels of cuda:{gpu.ordinal}"
        try:
            file = choose(manifest, gpu.sm)
            read_code(folder, file)
        except OxidecopyError as error:
            rows.append(Fact(topic=topic, value="none", state="missing", note=_first(error)))
        else:
            rows.append(
                Fact(topic=topic, value=file.file, state="ok", note="compiled by the driver when it is loaded" if file.is_ptx else "")
            )
    return rows


# ---- what runs where
def _opens(name: str) -> Fact:
    """Opens the device; on a GPU its kernels are loaded, too, which shows whether the driver takes them."""
    from oxidecopy.host.device import Device

    try:
        opened = Device.open(name)
        try:
            code = getattr(opened.engine, "code_file", None)
            note = f"by {code.file}" if code else _as(opened.sm)
        finally:
            _close(opened)
    except OxidecopyError as error:
        needed = error.diagnostics[0].required
        note = f"needs {needed}" if needed else _first(error)
        return Fact(topic=f"runs on {name}", value="no", state="missing", note=note)
    except ImportError as problem:
        return Fact(topic=f"runs on {name}", value="no", state="broken" if name.startswith("sim") else "missing", note=str(problem))
    except Exception as problem:  # an answer must come
        return Fact(topic=f"runs on {name}", value="no", state="missing", note=f"{type(problem).__name__}: {problem}")
    return Fact(topic=f"runs on {name}", value="yes", state="ok", note=note)


def _as(sm: int) -> str:
    """What a simulator is like."""
    shared = limits.SHARED_BYTES_MAX.get(sm, 0) // _KIB
    clusters = f"clusters of up to {limits.CLUSTER_PORTABLE_MAX} CTAs, {limits.CLUSTER_MAX} where it is asked for"
    return f"as compute capability {sm // 10}.{sm % 10}: {shared} KiB of shared memory per CTA, {clusters}"


def _default() -> list[Fact]:
    from oxidecopy.host.device import Device

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the row for the environment says it
        opened = Device.open()
    _close(opened)
    return [Fact(topic="by default", value=opened.name, note=opened.why.removeprefix(f"{opened.name}: "))]


def _close(opened: Device) -> None:
    """Gives a GPU's context back; simulators have none."""
    close = getattr(opened.engine, "close", None)
    if callable(close):
        close()


def _first(error: OxidecopyError) -> str:
    said = error.diagnostics[0]
    return f"{said.what}: {said.got}" if said.got else said.what

"""Which device `Device.open` takes, and why: a usable GPU, else the simulator; by name exactly what was asked for.

Neither numpy nor cuda is imported before a device is opened.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Final, final

from oxidecopy.errors import DeviceError, Diagnostic, OxidecopyError, UsageError
from oxidecopy.host.settings import Settings, settings
from oxidecopy.maps.validate import compute_capability
from oxidecopy.typed.refusal import flag
from oxidecopy.typed.sites import caller_site

if TYPE_CHECKING:
    from oxidecopy.engines.base import Engine
    from oxidecopy.engines.cuda.probe import CudaFacts

SIMULATORS: Final = {"sim": True, "sim-fast": False}  # name -> looks for races and missing fences
_MEASURED_SM: Final = 90  # what the simulator was held against, and the first compute capability with tensor maps
_MEANT: Final = {"simulator": "sim", "cpu": "sim", "host": "sim", "gpu": "cuda", "nvidia": "cuda", "cuda0": "cuda:0"}  # what people write
_CUDA: Final = re.compile(r"cuda(?::(\d{1,4}))?")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """An engine under the name of its device; `why` is one line."""

    name: str
    engine: Engine
    why: str


def open_engine(name: object, *, checked: bool, arch: int | str | None = None) -> Opened:
    """The engine for a name as `Device.open` takes it.

    Raises:
        UsageError: for a name that no device has (OX5012), checks that it does not make (OX5014), an architecture that it is not asked for
            (OX5043), or, for a GPU by its name, a setting in the environment that means nothing (OX5017, OX5337).
        DeviceError: for a device that is not there or cannot be used (OX5013).
    """
    flag(checked, "checked")
    if arch is not None:
        name = "sim" if name is None else name
        return _simulated(str(name), compute_capability(arch))
    if name is None:
        return _best(settings(checked=checked))
    wanted = str(name)
    gpu = _CUDA.fullmatch(wanted)
    if gpu:
        found = settings(checked=checked)
        found.require_all()
        return _gpu(wanted, gpu[1], found)
    if wanted not in SIMULATORS:
        raise _unknown(name, wanted)
    if checked and not SIMULATORS[wanted]:
        raise UsageError(
            Diagnostic(
                rule="OX5014",
                what=f"{wanted!r} makes no checks",
                got="checked=True",
                required="a device that can",
                fix='Device.open("sim")',
                site=caller_site(),
            )
        )
    return _simulator(wanted, f"{wanted}: asked for by name")


def _best(found: Settings) -> Opened:
    """The first GPU that can be used; the simulator where there is none, with the reason of the first that cannot."""
    opened = _first_usable(found)
    for note in found.notes():
        warnings.warn(note, RuntimeWarning, stacklevel=4)
    return replace(opened, why="; ".join([opened.why, *found.notes()]))


def _first_usable(found: Settings) -> Opened:
    facts = _probe()
    reasons = [facts.reason] if facts.reason else []
    for gpu in facts.gpus:
        if gpu.usable and not facts.reason:
            try:
                return Opened(
                    name=f"cuda:{gpu.ordinal}",
                    engine=_cuda_engine(gpu.ordinal, gpu.sm, found),
                    why=f"{gpu}: the first usable GPU",
                )
            except OxidecopyError as problem:
                first = problem.diagnostics[0]
                reasons.append(f"{gpu}: {first.what} ({first.got})" if first.got else f"{gpu}: {first.what}")
    return _simulator("sim", f"sim: no GPU can be used: {' '.join(reasons[0].split())}")


def _gpu(wanted: str, number: str | None, found: Settings) -> Opened:
    """The GPU of that number; "cuda" is the first usable one."""
    facts = _probe()
    usable = [gpu for gpu in facts.gpus if gpu.usable]
    if number is None and usable and not facts.reason:
        number = str(usable[0].ordinal)
    gpu = next((gpu for gpu in facts.gpus if str(gpu.ordinal) == str(int(number or 0))), None)
    if gpu is None or not gpu.usable or facts.reason:
        raise _cannot(wanted, facts, int(number or 0))
    try:
        engine = _cuda_engine(gpu.ordinal, gpu.sm, found)
    except DeviceError:
        raise
    except OxidecopyError as problem:
        first = problem.diagnostics[0]
        raise DeviceError(
            _refusal(wanted, f"{gpu}: {first.what} ({first.got})", first.required or "a driver that opens it", first.fix)
        ) from problem
    return Opened(name=f"cuda:{gpu.ordinal}", engine=engine, why=f"{gpu}: asked for by name")


def _simulated(name: str, sm: int) -> Opened:
    """A simulator with the limits of another architecture; a GPU has its own."""
    of = f"compute capability {sm // 10}.{sm % 10}"
    if name not in SIMULATORS or sm < _MEASURED_SM:
        raise UsageError(
            Diagnostic(
                rule="OX5043",
                what="an architecture is chosen for a simulator, and has tensor maps",
                got=f"{name!r} with {of}",
                required="sim or sim-fast, 9.0 or newer",
                fix='Device.open("sim", arch=100)',
                site=caller_site(),
            )
        )
    return _simulator(name, f"{name}: asked for by name, with the limits of {of}", sm)


def _simulator(name: str, why: str, sm: int = _MEASURED_SM) -> Opened:
    from oxidecopy.engines.sim import SimEngine

    return Opened(name=name, engine=SimEngine(hazards=SIMULATORS[name], sm=sm), why=why)


def _cuda_engine(ordinal: int, sm: int, found: Settings) -> Engine:
    """Asks first whether there is machine code for it: the context is made only then.

    While the driver makes it, recorder and verifier are imported: the first launch would wait for that, 150 ms of it.
    """
    from concurrent.futures import ThreadPoolExecutor

    try:
        from oxidecopy.engines.cuda.engine import CudaEngine
        from oxidecopy.engines.cuda.module import choose, kernels_folder, read_manifest
    except ImportError as problem:
        raise DeviceError(_refusal(f"cuda:{ordinal}", f"the CUDA engine does not load ({problem})", "a complete install")) from problem
    choose(read_manifest(kernels_folder()), sm)
    with ThreadPoolExecutor(1, "oxidecopy-imports") as beside:
        beside.submit(import_module, "oxidecopy.host.pipeline")  # fails again, and is told of, where it is asked for
        return CudaEngine(ordinal, checked=found.checked, limit_us=found.limit_us)


def _probe() -> CudaFacts:
    from oxidecopy.engines.cuda.probe import probe

    return probe()


def _cannot(wanted: str, facts: CudaFacts, ordinal: int) -> DeviceError:
    """What was found, and what is needed instead."""
    from oxidecopy.engines.cuda.probe import MIN_DRIVER, MIN_SM

    needed = (
        f"a GPU of compute capability {MIN_SM // 10}.{MIN_SM % 10} or newer with a driver for CUDA {MIN_DRIVER[0]}.{MIN_DRIVER[1]} or newer"
    )
    others = [f"cuda:{gpu.ordinal}" for gpu in facts.gpus if gpu.usable]
    if facts.reason:
        found = facts.reason if not facts.gpus else f"{facts.reason}: {facts}"
        return DeviceError(_refusal(wanted, found, needed))
    known = any(gpu.ordinal == ordinal for gpu in facts.gpus)
    required = needed if known else "a GPU that the driver shows (CUDA_VISIBLE_DEVICES hides others)"
    return DeviceError(_refusal(wanted, str(facts), required, f'Device.open("{others[0]}")'))


def _refusal(wanted: str, got: str, required: str, fix: str = "") -> Diagnostic:
    fix = fix or 'Device.open("sim"), or `--device sim` of a command, runs the same program on the simulator'
    return Diagnostic(rule="OX5013", what=f"{wanted} cannot be used", got=got, required=required, fix=fix, site=caller_site())


def _unknown(name: object, wanted: str) -> UsageError:
    from difflib import get_close_matches

    known = [*SIMULATORS, "cuda:0"]
    meant = _MEANT.get(wanted.lower()) or (f"cuda:{wanted}" if wanted.isdecimal() else "")
    near = [meant] if meant else get_close_matches(wanted.lower(), known, n=1)
    fix = f'Device.open("{near[0]}")' if near else "Device.open() takes the best one there is"
    return UsageError(
        Diagnostic(rule="OX5012", what="no device has this name", got=repr(name), required=", ".join(known), fix=fix, site=caller_site())
    )

"""The process that asks the driver: it may be lost by what it is asked. Each answer is a line that begins with `> `."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from oxidecopy.conformance.case import Made
from oxidecopy.conformance.descriptor_cases import cases
from oxidecopy.conformance.descriptor_loads import fault_code, load_cases, make
from oxidecopy.errors import OxidecopyError
from oxidecopy.host.device import Device

_REFERENCE = "sim-fast"


def work(arguments: Sequence[str]) -> int:
    """`encode DEVICE SEED FIRST`, `load DEVICE SEED FIRST` or `fault DEVICE SEED CASE FIRST`."""
    task, device, seed, *numbers = arguments
    match task:
        case "encode":
            _encode(device, int(seed), int(numbers[0]))
        case "load":
            _load(device, int(seed), int(numbers[0]))
        case _:
            case = load_cases(cases(int(seed)), int(seed))[int(numbers[0])]
            _say(str(fault_code(case, Device.open(device))))
    return 0


def _encode(device: str, seed: int, first: int) -> None:
    from oxidecopy.engines.cuda.context import PrimaryContext
    from oxidecopy.engines.cuda.driver import load_driver
    from oxidecopy.engines.cuda.encode_call import load_calls

    with PrimaryContext(load_driver(), int(device.rpartition(":")[2])):
        calls = load_calls()
        for case in cases(seed)[first:]:
            code, data = calls.encode(case.parameters)
            _say(f"{code} {data.hex()}")


def _load(device: str, seed: int, first: int) -> None:
    reference, gpu = Device.open(_REFERENCE), Device.open(device)
    together = [case for case in load_cases(cases(seed), seed) if not case.faults]
    for case in together[first:]:
        problem = ""
        try:
            got, wanted = (_bytes(make(case, on)) for on in (gpu, reference))
            if got != wanted:
                problem = f"{sum(a != b for a, b in zip(got, wanted, strict=True))} of {len(got)} bytes differ"
        except OxidecopyError as error:
            problem = str(error).splitlines()[0]
        _say(json.dumps(problem))


def _bytes(made: Made) -> bytes:
    made.launch()
    return made.outputs["out"].numpy().tobytes()


def _say(answer: str) -> None:
    sys.stdout.write(f"> {answer}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(work(sys.argv[1:]))

"""The process that asks the driver: it may be lost by what it is asked. Each answer is a line that begins with `> `."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from oxidecopy.conformance.case import Made
from oxidecopy.conformance.descriptor_loads import fault_code, make
from oxidecopy.errors import OxidecopyError
from oxidecopy.host.device import Device
from oxidecopy.maps.parameters import MapParameters

_REFERENCE: Final = "sim-fast"


def work(arguments: Sequence[str]) -> int:
    """TASK (encode, load or fault), DEVICE, a file of parameter sets, and the first of them to answer for."""
    task, device, file, first = arguments
    wanted = [MapParameters.from_data(data) for data in json.loads(Path(file).read_text())[int(first) :]]
    {"encode": _encode, "load": _load, "fault": _fault}[task](device, wanted)
    return 0


def _encode(device: str, wanted: Sequence[MapParameters]) -> None:
    from oxidecopy.engines.cuda.context import PrimaryContext
    from oxidecopy.engines.cuda.driver import load_driver
    from oxidecopy.engines.cuda.encode_call import load_calls

    with PrimaryContext(load_driver(), int(device.rpartition(":")[2])):
        calls = load_calls()
        for parameters in wanted:
            code, data = calls.encode(parameters)
            _say(f"{code} {data.hex()}")


def _load(device: str, wanted: Sequence[MapParameters]) -> None:
    reference, gpu = Device.open(_REFERENCE), Device.open(device)
    for parameters in wanted:
        problem = ""
        try:
            got, expected = (_bytes(make(parameters, on)) for on in (gpu, reference))
            if got != expected:
                problem = f"{sum(a != b for a, b in zip(got, expected, strict=True))} of {len(got)} bytes differ"
        except OxidecopyError as error:
            problem = str(error).splitlines()[0]
        _say(json.dumps(problem))


def _fault(device: str, wanted: Sequence[MapParameters]) -> None:
    """The first one's: the context is lost by it."""
    _say(str(fault_code(wanted[0], Device.open(device))))


def _bytes(made: Made) -> bytes:
    made.launch()
    return made.outputs["out"].numpy().tobytes()


def _say(answer: str) -> None:
    sys.stdout.write(f"> {answer}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(work(sys.argv[1:]))

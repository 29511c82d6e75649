"""What stops a launch: the CUresult codes a device reports, and the exception that carries one up to the engine.

Sources: the run-time fault table of the measurements on an H200 (compute capability 9.0).
"""

from __future__ import annotations

from typing import Final

INVALID_VALUE: Final = 1  # the map itself: cuTensorMapEncodeTiled refuses it
ILLEGAL_ADDRESS: Final = 700
ILLEGAL_INSTRUCTION: Final = 715
MISALIGNED_ADDRESS: Final = 716
LAUNCH_FAILED: Final = 719
INVALID_CLUSTER_SIZE: Final = 912

NAMES: Final = {
    INVALID_VALUE: "INVALID_VALUE",
    ILLEGAL_ADDRESS: "ILLEGAL_ADDRESS",
    ILLEGAL_INSTRUCTION: "ILLEGAL_INSTRUCTION",
    MISALIGNED_ADDRESS: "MISALIGNED_ADDRESS",
    LAUNCH_FAILED: "LAUNCH_FAILED",
    INVALID_CLUSTER_SIZE: "INVALID_CLUSTER_SIZE",
}


class Fault(Exception):
    """The hardware would end the launch here with `code`; the four texts become one diagnostic."""

    def __init__(self, code: int, what: str, *, got: str = "", required: str = "", fix: str = "") -> None:
        super().__init__(code, what)
        self.code = code
        self.what = what
        self.got = got
        self.required = required
        self.fix = fix


class Refused(Fault):
    """The launch does not even start: the driver refuses the map or the grid."""

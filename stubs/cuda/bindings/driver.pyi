# The driver symbols this project calls: `tests/stubs/test_driver_stub.py` holds each against the real module.
#
# Every call returns a tuple: its result code, then its values (`None` in their place when the call failed).

from enum import IntEnum
from typing import final

class CUresult(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_NOT_INITIALIZED = 3
    CUDA_ERROR_NO_DEVICE = 100

class CUdevice_attribute(IntEnum):
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97
    CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH = 120
    CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED = 127

@final
class CUdevice:
    def __int__(self) -> int: ...

def cuInit(Flags: int) -> tuple[CUresult]: ...
def cuDriverGetVersion() -> tuple[CUresult, int]: ...
def cuDeviceGetCount() -> tuple[CUresult, int]: ...
def cuDeviceGet(ordinal: int) -> tuple[CUresult, CUdevice]: ...
def cuDeviceGetName(length: int, dev: CUdevice) -> tuple[CUresult, bytes]: ...
def cuDeviceGetAttribute(attrib: CUdevice_attribute, dev: CUdevice) -> tuple[CUresult, int]: ...
def cuDeviceTotalMem(dev: CUdevice) -> tuple[CUresult, int]: ...

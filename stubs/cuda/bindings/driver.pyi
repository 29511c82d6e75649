# The driver symbols this project calls, as cuda-bindings 12.9 and 13.x both have them: `tests/engines/cuda/test_stubs.py` holds each
# against the installed module.
#
# Every call returns a tuple: its result code, then its values (`None` in their place when the call failed). Where a handle goes in, its
# number will do. Enums hold only the members that are used.

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, Final, Self

from typing_extensions import Buffer, disjoint_base

CU_MEMHOSTALLOC_PORTABLE: Final[int]
CU_MEMHOSTALLOC_DEVICEMAP: Final[int]

# ---- enums
class CUresult(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NOT_INITIALIZED = 3
    CUDA_ERROR_DEINITIALIZED = 4
    CUDA_ERROR_STUB_LIBRARY = 34
    CUDA_ERROR_DEVICE_UNAVAILABLE = 46
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_INVALID_DEVICE = 101
    CUDA_ERROR_INVALID_IMAGE = 200
    CUDA_ERROR_INVALID_CONTEXT = 201
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209
    CUDA_ERROR_ECC_UNCORRECTABLE = 214
    CUDA_ERROR_INVALID_PTX = 218
    CUDA_ERROR_NVLINK_UNCORRECTABLE = 220
    CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222
    CUDA_ERROR_CONTAINED = 226
    CUDA_ERROR_INVALID_SOURCE = 300
    CUDA_ERROR_INVALID_HANDLE = 400
    CUDA_ERROR_ILLEGAL_STATE = 401
    CUDA_ERROR_NOT_FOUND = 500
    CUDA_ERROR_NOT_READY = 600
    CUDA_ERROR_ILLEGAL_ADDRESS = 700
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701
    CUDA_ERROR_LAUNCH_TIMEOUT = 702
    CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709
    CUDA_ERROR_ASSERT = 710
    CUDA_ERROR_HARDWARE_STACK_ERROR = 714
    CUDA_ERROR_ILLEGAL_INSTRUCTION = 715
    CUDA_ERROR_MISALIGNED_ADDRESS = 716
    CUDA_ERROR_INVALID_ADDRESS_SPACE = 717
    CUDA_ERROR_INVALID_PC = 718
    CUDA_ERROR_LAUNCH_FAILED = 719
    CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720
    CUDA_ERROR_TENSOR_MEMORY_LEAK = 721
    CUDA_ERROR_NOT_PERMITTED = 800
    CUDA_ERROR_NOT_SUPPORTED = 801
    CUDA_ERROR_SYSTEM_NOT_READY = 802
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803
    CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900
    CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901
    CUDA_ERROR_STREAM_CAPTURE_MERGE = 902
    CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903
    CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904
    CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905
    CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906
    CUDA_ERROR_CAPTURED_EVENT = 907
    CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908
    CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE = 910
    CUDA_ERROR_INVALID_CLUSTER_SIZE = 912
    CUDA_ERROR_UNKNOWN = 999

class CUdevice_attribute(IntEnum):
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16
    CU_DEVICE_ATTRIBUTE_COMPUTE_MODE = 20
    CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33
    CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = 34
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39
    CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID = 50
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97
    CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115
    CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH = 120
    CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED = 127

class CUpointer_attribute(IntEnum):
    CU_POINTER_ATTRIBUTE_CONTEXT = 1
    CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2
    CU_POINTER_ATTRIBUTE_IS_MANAGED = 8
    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9
    CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11
    CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12
    CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE = 17

class CUmemorytype(IntEnum):
    CU_MEMORYTYPE_HOST = 1
    CU_MEMORYTYPE_DEVICE = 2

class CUmemLocationType(IntEnum):
    CU_MEM_LOCATION_TYPE_DEVICE = 1

class CUmemAccess_flags(IntEnum):
    CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3

class CUstream_flags(IntEnum):
    CU_STREAM_NON_BLOCKING = 1

class CUevent_flags(IntEnum):
    CU_EVENT_DEFAULT = 0
    CU_EVENT_BLOCKING_SYNC = 1
    CU_EVENT_DISABLE_TIMING = 2

class CUstreamCaptureStatus(IntEnum):
    CU_STREAM_CAPTURE_STATUS_NONE = 0
    CU_STREAM_CAPTURE_STATUS_ACTIVE = 1
    CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2

class CUstreamCaptureMode(IntEnum):
    CU_STREAM_CAPTURE_MODE_GLOBAL = 0
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1
    CU_STREAM_CAPTURE_MODE_RELAXED = 2

class CUlaunchAttributeID(IntEnum):
    CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6

class CUfunction_attribute(IntEnum):
    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0
    CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1
    CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES = 2
    CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3
    CU_FUNC_ATTRIBUTE_NUM_REGS = 4
    CU_FUNC_ATTRIBUTE_PTX_VERSION = 5
    CU_FUNC_ATTRIBUTE_BINARY_VERSION = 6
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
    CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14

class CUtensorMapDataType(IntEnum):
    CU_TENSOR_MAP_DATA_TYPE_UINT8 = 0
    CU_TENSOR_MAP_DATA_TYPE_UINT16 = 1
    CU_TENSOR_MAP_DATA_TYPE_UINT32 = 2
    CU_TENSOR_MAP_DATA_TYPE_INT32 = 3
    CU_TENSOR_MAP_DATA_TYPE_UINT64 = 4
    CU_TENSOR_MAP_DATA_TYPE_INT64 = 5
    CU_TENSOR_MAP_DATA_TYPE_FLOAT16 = 6
    CU_TENSOR_MAP_DATA_TYPE_FLOAT32 = 7
    CU_TENSOR_MAP_DATA_TYPE_FLOAT64 = 8
    CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 = 9
    CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ = 10
    CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 = 11
    CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ = 12
    CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B = 13
    CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B = 14
    CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B = 15

class CUtensorMapInterleave(IntEnum):
    CU_TENSOR_MAP_INTERLEAVE_NONE = 0
    CU_TENSOR_MAP_INTERLEAVE_16B = 1
    CU_TENSOR_MAP_INTERLEAVE_32B = 2

class CUtensorMapSwizzle(IntEnum):
    CU_TENSOR_MAP_SWIZZLE_NONE = 0
    CU_TENSOR_MAP_SWIZZLE_32B = 1
    CU_TENSOR_MAP_SWIZZLE_64B = 2
    CU_TENSOR_MAP_SWIZZLE_128B = 3
    CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B = 4
    CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B = 5
    CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B = 6

class CUtensorMapL2promotion(IntEnum):
    CU_TENSOR_MAP_L2_PROMOTION_NONE = 0
    CU_TENSOR_MAP_L2_PROMOTION_L2_64B = 1
    CU_TENSOR_MAP_L2_PROMOTION_L2_128B = 2
    CU_TENSOR_MAP_L2_PROMOTION_L2_256B = 3

class CUtensorMapIm2ColWideMode(IntEnum):
    CU_TENSOR_MAP_IM2COL_WIDE_MODE_W = 0
    CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128 = 1

class CUtensorMapFloatOOBfill(IntEnum):
    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0
    CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA = 1

class CUgraphNodeType(IntEnum):
    CU_GRAPH_NODE_TYPE_KERNEL = 0
    CU_GRAPH_NODE_TYPE_MEMCPY = 1
    CU_GRAPH_NODE_TYPE_MEMSET = 2

# ---- handles
@disjoint_base
class CUdevice:
    def __int__(self) -> int: ...

@disjoint_base
class CUdeviceptr:
    def __int__(self) -> int: ...

@disjoint_base
class CUcontext:
    def __init__(self, init_value: int = ..., _ptr: int = ...) -> None: ...
    def __int__(self) -> int: ...

@disjoint_base
class CUstream:
    def __init__(self, init_value: int = ..., _ptr: int = ...) -> None: ...
    def __int__(self) -> int: ...

@disjoint_base
class CUevent:
    def __init__(self, init_value: int = ..., _ptr: int = ...) -> None: ...
    def __int__(self) -> int: ...

@disjoint_base
class CUmemoryPool:
    def __init__(self, init_value: int = ..., _ptr: int = ...) -> None: ...
    def __int__(self) -> int: ...

@disjoint_base
class CUmodule:
    def __init__(self, init_value: int = ..., _ptr: int = ...) -> None: ...
    def __int__(self) -> int: ...

@disjoint_base
class CUfunction:
    def __init__(self, init_value: int = ..., _ptr: int = ...) -> None: ...
    def __int__(self) -> int: ...

@disjoint_base
class CUgraph:
    def __init__(self, init_value: int = ..., _ptr: int = ...) -> None: ...
    def __int__(self) -> int: ...

@disjoint_base
class CUgraphExec:
    def __init__(self, init_value: int = ..., _ptr: int = ...) -> None: ...
    def __int__(self) -> int: ...

@disjoint_base
class CUgraphNode:
    def __init__(self, init_value: int = ..., _ptr: int = ...) -> None: ...
    def __int__(self) -> int: ...

# ---- structures
@disjoint_base
class cuuint32_t:
    def __new__(cls, init_value: int = ..., _ptr: int = ...) -> Self: ...
    def __int__(self) -> int: ...

@disjoint_base
class cuuint64_t:
    def __new__(cls, init_value: int = ..., _ptr: int = ...) -> Self: ...
    def __int__(self) -> int: ...

class CUtensorMap:
    def __init__(self, _ptr: int = ...) -> None: ...
    def getPtr(self) -> int: ...

class _Dim3:
    x: int
    y: int
    z: int

class CUlaunchAttributeValue:
    @property
    def clusterDim(self) -> _Dim3: ...
    cooperative: int
    programmaticStreamSerializationAllowed: int

class CUlaunchAttribute:
    def __init__(self, _ptr: int = ...) -> None: ...
    id: CUlaunchAttributeID
    @property
    def value(self) -> CUlaunchAttributeValue: ...

class CUmemLocation:
    type: CUmemLocationType
    id: int

class CUmemAccessDesc:
    def __init__(self, _ptr: int = ...) -> None: ...
    @property
    def location(self) -> CUmemLocation: ...
    flags: CUmemAccess_flags

class CUlaunchConfig:
    def __init__(self, _ptr: int = ...) -> None: ...
    gridDimX: int
    gridDimY: int
    gridDimZ: int
    blockDimX: int
    blockDimY: int
    blockDimZ: int
    sharedMemBytes: int
    @property
    def hStream(self) -> CUstream: ...
    @hStream.setter
    def hStream(self, hStream: CUstream | int) -> None: ...
    attrs: Sequence[CUlaunchAttribute]
    numAttrs: int
    def getPtr(self) -> int: ...

class CUDA_KERNEL_NODE_PARAMS:
    def __init__(self, _ptr: int = ...) -> None: ...
    @property
    def func(self) -> CUfunction: ...
    @func.setter
    def func(self, func: CUfunction | int) -> None: ...
    gridDimX: int
    gridDimY: int
    gridDimZ: int
    blockDimX: int
    blockDimY: int
    blockDimZ: int
    sharedMemBytes: int
    kernelParams: int
    extra: int

# ---- driver, devices
def cuInit(Flags: int) -> tuple[CUresult]: ...
def cuDriverGetVersion() -> tuple[CUresult, int]: ...
def cuDeviceGetCount() -> tuple[CUresult, int]: ...
def cuDeviceGet(ordinal: int) -> tuple[CUresult, CUdevice]: ...
def cuDeviceGetName(length: int, dev: CUdevice | int) -> tuple[CUresult, bytes]: ...
def cuDeviceGetAttribute(attrib: CUdevice_attribute, dev: CUdevice | int) -> tuple[CUresult, int]: ...
def cuDeviceTotalMem(dev: CUdevice | int) -> tuple[CUresult, int]: ...
def cuDeviceCanAccessPeer(dev: CUdevice | int, peerDev: CUdevice | int) -> tuple[CUresult, int]: ...
def cuDeviceGetDefaultMemPool(dev: CUdevice | int) -> tuple[CUresult, CUmemoryPool]: ...

# ---- contexts
def cuDevicePrimaryCtxRetain(dev: CUdevice | int) -> tuple[CUresult, CUcontext]: ...
def cuDevicePrimaryCtxRelease(dev: CUdevice | int) -> tuple[CUresult]: ...
def cuDevicePrimaryCtxGetState(dev: CUdevice | int) -> tuple[CUresult, int, int]: ...
def cuCtxPushCurrent(ctx: CUcontext | int) -> tuple[CUresult]: ...
def cuCtxPopCurrent() -> tuple[CUresult, CUcontext]: ...
def cuCtxGetCurrent() -> tuple[CUresult, CUcontext]: ...
def cuCtxSynchronize() -> tuple[CUresult]: ...
def cuCtxEnablePeerAccess(peerContext: CUcontext | int, Flags: int) -> tuple[CUresult]: ...

# ---- memory
def cuMemGetInfo() -> tuple[CUresult, int, int]: ...
def cuMemAlloc(bytesize: int) -> tuple[CUresult, CUdeviceptr]: ...
def cuMemFree(dptr: CUdeviceptr | int) -> tuple[CUresult]: ...
def cuMemAllocAsync(bytesize: int, hStream: CUstream | int) -> tuple[CUresult, CUdeviceptr]: ...
def cuMemFreeAsync(dptr: CUdeviceptr | int, hStream: CUstream | int) -> tuple[CUresult]: ...
def cuMemPoolSetAccess(pool: CUmemoryPool | int, map: Sequence[CUmemAccessDesc], count: int) -> tuple[CUresult]: ...  # noqa: A002
def cuMemHostAlloc(bytesize: int, Flags: int) -> tuple[CUresult, int]: ...
def cuMemFreeHost(p: int) -> tuple[CUresult]: ...
def cuMemHostGetDevicePointer(p: int, Flags: int) -> tuple[CUresult, CUdeviceptr]: ...
def cuMemcpyHtoD(dstDevice: CUdeviceptr | int, srcHost: Buffer | int, ByteCount: int) -> tuple[CUresult]: ...
def cuMemcpyDtoH(dstHost: Buffer | int, srcDevice: CUdeviceptr | int, ByteCount: int) -> tuple[CUresult]: ...
def cuMemcpyDtoD(dstDevice: CUdeviceptr | int, srcDevice: CUdeviceptr | int, ByteCount: int) -> tuple[CUresult]: ...
def cuMemcpyPeerAsync(
    dstDevice: CUdeviceptr | int,
    dstContext: CUcontext | int,
    srcDevice: CUdeviceptr | int,
    srcContext: CUcontext | int,
    ByteCount: int,
    hStream: CUstream | int,
) -> tuple[CUresult]: ...
def cuMemcpyHtoDAsync(dstDevice: CUdeviceptr | int, srcHost: Buffer | int, ByteCount: int, hStream: CUstream | int) -> tuple[CUresult]: ...
def cuMemcpyDtoDAsync(
    dstDevice: CUdeviceptr | int, srcDevice: CUdeviceptr | int, ByteCount: int, hStream: CUstream | int
) -> tuple[CUresult]: ...
def cuMemsetD8(dstDevice: CUdeviceptr | int, uc: int, N: int) -> tuple[CUresult]: ...
def cuMemsetD32(dstDevice: CUdeviceptr | int, ui: int, N: int) -> tuple[CUresult]: ...
def cuMemsetD8Async(dstDevice: CUdeviceptr | int, uc: int, N: int, hStream: CUstream | int) -> tuple[CUresult]: ...
def cuMemsetD32Async(dstDevice: CUdeviceptr | int, ui: int, N: int, hStream: CUstream | int) -> tuple[CUresult]: ...
def cuPointerGetAttribute(attribute: CUpointer_attribute, ptr: CUdeviceptr | int) -> tuple[CUresult, Any]: ...

# ---- streams, events
def cuStreamCreate(Flags: int) -> tuple[CUresult, CUstream]: ...
def cuStreamDestroy(hStream: CUstream | int) -> tuple[CUresult]: ...
def cuStreamSynchronize(hStream: CUstream | int) -> tuple[CUresult]: ...
def cuStreamQuery(hStream: CUstream | int) -> tuple[CUresult]: ...
def cuStreamGetCtx(hStream: CUstream | int) -> tuple[CUresult, CUcontext]: ...
def cuStreamWaitEvent(hStream: CUstream | int, hEvent: CUevent | int, Flags: int) -> tuple[CUresult]: ...
def cuStreamIsCapturing(hStream: CUstream | int) -> tuple[CUresult, CUstreamCaptureStatus]: ...
def cuThreadExchangeStreamCaptureMode(mode: CUstreamCaptureMode) -> tuple[CUresult, CUstreamCaptureMode]: ...
def cuEventCreate(Flags: int) -> tuple[CUresult, CUevent]: ...
def cuEventDestroy(hEvent: CUevent | int) -> tuple[CUresult]: ...
def cuEventRecord(hEvent: CUevent | int, hStream: CUstream | int) -> tuple[CUresult]: ...
def cuEventQuery(hEvent: CUevent | int) -> tuple[CUresult]: ...
def cuEventSynchronize(hEvent: CUevent | int) -> tuple[CUresult]: ...
def cuEventElapsedTime(hStart: CUevent | int, hEnd: CUevent | int) -> tuple[CUresult, float]: ...

# ---- code
def cuModuleLoadData(image: Buffer | int) -> tuple[CUresult, CUmodule]: ...
def cuModuleGetFunction(hmod: CUmodule | int, name: bytes) -> tuple[CUresult, CUfunction]: ...
def cuModuleUnload(hmod: CUmodule | int) -> tuple[CUresult]: ...
def cuFuncGetAttribute(attrib: CUfunction_attribute, hfunc: CUfunction | int) -> tuple[CUresult, int]: ...
def cuFuncSetAttribute(hfunc: CUfunction | int, attrib: CUfunction_attribute, value: int) -> tuple[CUresult]: ...
def cuOccupancyMaxActiveBlocksPerMultiprocessor(func: CUfunction | int, blockSize: int, dynamicSMemSize: int) -> tuple[CUresult, int]: ...
def cuOccupancyMaxActiveClusters(func: CUfunction | int, config: CUlaunchConfig) -> tuple[CUresult, int]: ...

# ---- launch, tensor maps, graphs
def cuLaunchKernelEx(config: CUlaunchConfig, f: CUfunction | int, kernelParams: Buffer | int | None, extra: int) -> tuple[CUresult]: ...
def cuTensorMapEncodeTiled(
    tensorDataType: CUtensorMapDataType,
    tensorRank: int,
    globalAddress: int,
    globalDim: Sequence[cuuint64_t],
    globalStrides: Sequence[cuuint64_t],
    boxDim: Sequence[cuuint32_t],
    elementStrides: Sequence[cuuint32_t],
    interleave: CUtensorMapInterleave,
    swizzle: CUtensorMapSwizzle,
    l2Promotion: CUtensorMapL2promotion,
    oobFill: CUtensorMapFloatOOBfill,
) -> tuple[CUresult, CUtensorMap]: ...
def cuTensorMapEncodeIm2col(
    tensorDataType: CUtensorMapDataType,
    tensorRank: int,
    globalAddress: int,
    globalDim: Sequence[cuuint64_t],
    globalStrides: Sequence[cuuint64_t],
    pixelBoxLowerCorner: Sequence[int],
    pixelBoxUpperCorner: Sequence[int],
    channelsPerPixel: int,
    pixelsPerColumn: int,
    elementStrides: Sequence[cuuint32_t],
    interleave: CUtensorMapInterleave,
    swizzle: CUtensorMapSwizzle,
    l2Promotion: CUtensorMapL2promotion,
    oobFill: CUtensorMapFloatOOBfill,
) -> tuple[CUresult, CUtensorMap]: ...
def cuTensorMapEncodeIm2colWide(
    tensorDataType: CUtensorMapDataType,
    tensorRank: int,
    globalAddress: int,
    globalDim: Sequence[cuuint64_t],
    globalStrides: Sequence[cuuint64_t],
    pixelBoxLowerCornerWidth: int,
    pixelBoxUpperCornerWidth: int,
    channelsPerPixel: int,
    pixelsPerColumn: int,
    elementStrides: Sequence[cuuint32_t],
    interleave: CUtensorMapInterleave,
    mode: CUtensorMapIm2ColWideMode,
    swizzle: CUtensorMapSwizzle,
    l2Promotion: CUtensorMapL2promotion,
    oobFill: CUtensorMapFloatOOBfill,
) -> tuple[CUresult, CUtensorMap]: ...
def cuTensorMapReplaceAddress(tensorMap: CUtensorMap, globalAddress: int) -> tuple[CUresult]: ...
def cuStreamBeginCapture(hStream: CUstream | int, mode: CUstreamCaptureMode) -> tuple[CUresult]: ...
def cuStreamEndCapture(hStream: CUstream | int) -> tuple[CUresult, CUgraph]: ...
def cuGraphInstantiate(hGraph: CUgraph | int, flags: int) -> tuple[CUresult, CUgraphExec]: ...
def cuGraphLaunch(hGraphExec: CUgraphExec | int, hStream: CUstream | int) -> tuple[CUresult]: ...
def cuGraphExecDestroy(hGraphExec: CUgraphExec | int) -> tuple[CUresult]: ...
def cuGraphDestroy(hGraph: CUgraph | int) -> tuple[CUresult]: ...
def cuGraphGetNodes(hGraph: CUgraph | int, numNodes: int = ...) -> tuple[CUresult, list[CUgraphNode], int]: ...
def cuGraphNodeGetType(hNode: CUgraphNode | int) -> tuple[CUresult, CUgraphNodeType]: ...
def cuGraphKernelNodeGetParams(hNode: CUgraphNode | int) -> tuple[CUresult, CUDA_KERNEL_NODE_PARAMS]: ...
def cuGraphExecKernelNodeSetParams(
    hGraphExec: CUgraphExec | int, hNode: CUgraphNode | int, nodeParams: CUDA_KERNEL_NODE_PARAMS
) -> tuple[CUresult]: ...

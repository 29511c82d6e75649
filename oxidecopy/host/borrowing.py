"""Arrays over memory of other libraries: what they say of it is judged against the device, then borrowed. Nothing is copied."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from oxidecopy.engines.base import Buffer, SupportsSharing
from oxidecopy.errors import ArgumentError, Diagnostic, InputError
from oxidecopy.host.arrays import INFERRED, NAMED, array_faults, as_stored, element_type, extents, refusal, shape_faults
from oxidecopy.interop import cuda_array, dlpack, torch_tensor
from oxidecopy.interop.dlpack import Where
from oxidecopy.interop.foreign import Foreign, SupportsCudaArray, SupportsDLPack, dense_strides
from oxidecopy.isa.limits import GLOBAL_ADDRESS_ALIGN
from oxidecopy.typed.global_array import GlobalArray
from oxidecopy.typed.refusal import described, flag, whole
from oxidecopy.typed.sites import at_the_users_line
from oxidecopy.typed.views import canonical

if TYPE_CHECKING:
    import numpy as np

    from oxidecopy.host.device import Device
    from oxidecopy.host.pipeline import SupportsCudaStream
    from oxidecopy.typed.dtypes import DType

NO_ARRAY: Final = "OX5030"
ELSEWHERE: Final = "OX5031"
OTHER_TYPE: Final = "OX5032"
OTHER_RANK: Final = "OX5033"
STRIDES: Final = "OX5036"
NO_PLACE: Final = "OX5038"
_BYTES_OF: Final = ("float8_e4m3fn", "float8_e5m2")  # types that libraries without them keep as uint8
_RAW: Final = {"raw8": _BYTES_OF, "raw16": ("bfloat16",)}
_DEFAULT: Final = 1  # the default stream, as DLPack counts
_ADDRESS_LIMIT: Final = 1 << 64
KNOWN: Final = {**INFERRED, **NAMED}  # element types by numpy's and ml_dtypes' names


def borrow(
    dev: Device, x: object, dtype: object, rank: object, stream: SupportsCudaStream | int | None, *, kept: bool = True
) -> GlobalArray[Any, Any]:
    """As `Device.borrow`. Memory that is not `kept` is somebody else's to keep alive."""
    import numpy as np

    from oxidecopy.host.pipeline import check_stream

    chosen, engine = _whole_bytes(element_type(dtype, dev.sm)), _sharing(dev)
    if stream is not None:
        check_stream(stream)
    on_host = engine.dlpack_device[0] == dlpack.CPU
    if isinstance(x, np.ndarray):
        if not on_host:
            _elsewhere(dev, x, "host memory: a numpy array")
        return _numpy(dev, engine, x, chosen, rank)
    found = _said(dev, engine, x, None if on_host else _dlpack_stream(stream))
    faults = [*shape_faults(found.shape, "the array"), *_type_faults(found, chosen, x), *_rank_faults(found.shape, rank)]
    if faults:
        raise InputError(*faults)
    if found.stream is not None and found.stream != _dlpack_stream(stream):
        engine.order(found.stream, stream)
    return _made(dev, engine, found if kept else replace(found, keep=None), chosen, _around(x, found))


def borrow_any(dev: Device, x: object, stream: SupportsCudaStream | int | None) -> GlobalArray[Any, Any]:
    """An array over memory of another library, of the element type that it says itself.

    Raises:
        InputError: with everything that is wrong with it.
    """
    import numpy as np

    if isinstance(x, np.ndarray):
        faults = array_faults(x)
        named = KNOWN.get(x.dtype.name)
        if faults or named is None:
            raise InputError(*(faults or [_unnamed(x, str(x.dtype))]))
        return borrow(dev, x, named, None, stream)
    engine = _sharing(dev)
    waiting = None if engine.dlpack_device[0] == dlpack.CPU else _dlpack_stream(stream)
    quick = waiting is not None and torch_tensor.is_tensor(x)
    if quick:
        _check_device(dev, engine, cast("SupportsDLPack", x))
    found = torch_tensor.read(x) if quick else _said(dev, engine, x, waiting)
    named = KNOWN.get(found.element)
    faults = shape_faults(found.shape, "the array")
    if faults or named is None:
        raise InputError(*(faults or [_unnamed(x, found.element)]))
    if found.stream is not None and (found.stream or _DEFAULT) != waiting:
        engine.order(found.stream, stream)
    return _made(dev, engine, found, named, _around(x, found))


def _around(x: object, found: Foreign) -> tuple[int, int, bool] | None:
    """The memory that a tensor of torch in host memory is a part of: as for numpy's arrays, views of one are one memory."""
    memory = torch_tensor.host_memory(x)
    return None if memory is None else (*memory, found.readonly)


def follow(dev: Device, tensor: object, stream: SupportsCudaStream | int | None) -> None:
    """The stream waits for what torch was given to do on a tensor that was borrowed before, as at `borrow_any`."""
    fills = torch_tensor.stream_of(tensor)
    if (fills or _DEFAULT) != _dlpack_stream(stream):
        _sharing(dev).order(fills, stream)


def _unnamed(x: object, element: str) -> Diagnostic:
    fix = "a view of it as integers of the same size: x.view(np.uint8), x.view(torch.uint8)"
    what = f"the memory of a {type(x).__name__} holds what no element type is"
    return refusal(OTHER_TYPE, what, got=element, required=", ".join(KNOWN), fix=fix)


def home_of(x: object) -> str | None:
    """The name of the device that an object's memory is on, as `Device.open` takes it; None for what does not share its memory."""
    import numpy as np

    if isinstance(x, np.ndarray):
        return "sim"
    if torch_tensor.is_tensor(x):
        tensor: Any = x
        return f"cuda:{tensor.get_device()}"
    if isinstance(x, SupportsDLPack):
        at = dlpack.where(x)
        return f"cuda:{at.number}" if at.kind == dlpack.CUDA else "sim"
    return "cuda" if isinstance(x, SupportsCudaArray) else None


def _whole_bytes(dtype: type[DType]) -> type[DType]:
    """Elements that other libraries have: of packed ones the bytes are borrowed."""
    name = dtype.info.name
    if dtype.info.packed:
        fix = f"dev.borrow(x, ox.u8, rank=...).packed(ox.{name})"
        raise InputError(
            refusal(OTHER_TYPE, f"no library's memory is of packed {name}", got=name, required="ox.u8: the packed bytes", fix=fix)
        )
    return dtype


def _said(dev: Device, engine: SupportsSharing, x: object, stream: int | None) -> Foreign:
    """What the object says of its memory; `stream` as DLPack counts, None on the simulator."""
    if isinstance(x, SupportsDLPack):
        _check_device(dev, engine, x)
        return dlpack.read(x, stream=stream)
    if isinstance(x, SupportsCudaArray):
        if stream is None:
            _elsewhere(dev, x, "a GPU's memory: it has __cuda_array_interface__")
        return cuda_array.read(x)
    raise InputError(
        refusal(
            NO_ARRAY,
            "this object does not share its memory",
            got=described(x),
            required="a numpy array (on the simulator), or an object with __dlpack__ or __cuda_array_interface__",
            fix="dev.array(np.asarray(x)) copies it",
        )
    )


def borrow_pointer(
    dev: Device, address: object, shape: object, dtype: object, strides_bytes: object, *, owner: object, readonly: object
) -> GlobalArray[Any, Any]:
    """As `Device.borrow_pointer`."""
    chosen, wanted, engine = _whole_bytes(element_type(dtype, dev.sm)), extents(shape), _sharing(dev)
    number, size = whole(address), chosen.info.nbytes
    faults = []
    if number is None or not 0 < number < _ADDRESS_LIMIT:
        faults.append(_place("there is no memory at this address", described(address), "the address of its first element, not 0"))
    elif number % size:
        faults.append(
            _place("the address is not aligned", f"{number:#x}", f"a multiple of {size} bytes, the size of one {chosen.__name__}")
        )
    if owner is None:
        required, fix = "the object whose memory it is: it is kept alive", "owner=tensor"
        faults.append(refusal(NO_PLACE, "nobody owns the memory", got="owner=None", required=required, fix=fix))
    strides = dense_strides(wanted, size) if strides_bytes is None else _strides(strides_bytes, len(wanted))
    if strides is None:
        faults.append(_place("these are no strides", described(strides_bytes), f"a tuple of {len(wanted)} integers: bytes"))
    if faults:
        raise InputError(*faults)
    found = Foreign(
        address=number or 0,
        shape=wanted,
        strides_bytes=strides or (),
        element=chosen.info.numpy,
        element_bytes=size,
        readonly=flag(readonly, "readonly"),
        keep=owner,
    )
    return _made(dev, engine, found, chosen)


def reach(dev: Device, a: GlobalArray[Any, Any]) -> GlobalArray[Any, Any]:
    """As `Device.peer`."""
    known: object = a
    if not isinstance(known, GlobalArray):
        required, fix = "a GlobalArray of another device", "dev.borrow(x, dtype) takes arrays of other libraries"
        raise InputError(refusal(NO_ARRAY, "this is no array of a device", got=described(known), required=required, fix=fix))
    with at_the_users_line():
        buffer, offset = _sharing(dev).reach(a.buffer)
    return a.reached_by(dev, buffer, offset)


def _numpy(dev: Device, engine: SupportsSharing, x: np.ndarray[Any, Any], dtype: type[DType], rank: object) -> GlobalArray[Any, Any]:
    """A numpy array on the simulator: what it is a view of is borrowed, so that two views of one array are one memory here as well."""
    import numpy as np

    masked = isinstance(x, np.ma.MaskedArray)
    if masked:
        raise InputError(
            refusal(cuda_array.MASKED, "a masked array is not borrowed", got="a mask", required="every element to count", fix="x.filled(0)")
        )
    faults = [*array_faults(x), *_rank_faults(x.shape, rank)]
    if faults:
        raise InputError(*faults)
    root = x
    while isinstance(root.base, np.ndarray):
        root = root.base
    low, high = _bounds(root)
    start, stop = _bounds(x)
    inside = low <= start and stop <= high
    found = Foreign(
        address=as_stored(x, dtype).ctypes.data,
        shape=x.shape,
        strides_bytes=x.strides,
        element=dtype.info.numpy,
        element_bytes=x.itemsize,
        readonly=not x.flags.writeable,
        keep=root,
    )
    return _made(dev, engine, found, dtype, (low, high - low, not root.flags.writeable) if inside else None)


def _bounds(x: np.ndarray[Any, Any]) -> tuple[int, int]:
    low = high = x.ctypes.data
    for extent, stride in zip(x.shape, x.strides, strict=True):
        low, high = low + min(0, (extent - 1) * stride), high + max(0, (extent - 1) * stride)
    return low, high + x.itemsize


def _made(
    dev: Device, engine: SupportsSharing, found: Foreign, dtype: type[DType], whole_memory: tuple[int, int, bool] | None = None
) -> GlobalArray[Any, Any]:
    size = found.element_bytes
    strides = canonical(found.shape, found.strides_bytes, size)
    uneven = [(axis, stride) for axis, stride in enumerate(strides) if stride < 0 or stride % size]
    if uneven:
        raise InputError(
            *(
                refusal(
                    STRIDES,
                    f"the array runs backwards in dimension {axis}" if stride < 0 else f"dimension {axis} steps by parts of elements",
                    got=f"{stride} bytes from one index to the next",
                    required=f"0, or a positive multiple of {size} bytes, the size of an element",
                    fix="copy it first, so that it runs forwards: x.copy()" if stride < 0 else "make a dense copy of it",
                )
                for axis, stride in uneven
            )
        )
    if not found.address or found.address % size:
        got, required = f"address {found.address:#x}", f"a multiple of {size} bytes"
        raise InputError(refusal(NO_PLACE, "elements are not aligned", got=got, required=required, fix="make a copy of it: dev.array(x)"))
    nbytes = sum((n - 1) * s for n, s in zip(found.shape, strides, strict=True)) + size
    start, span, readonly = whole_memory or (found.address, nbytes, found.readonly)
    lead = 0 if whole_memory or engine.dlpack_device[0] == dlpack.CPU else start % GLOBAL_ADDRESS_ALIGN
    try:
        buffer, offset = _borrowed(engine, (start, span, lead), found, readonly=readonly)
    except ArgumentError as problem:  # the driver knows better where it lies: said at the user's line
        raise ArgumentError(*(_here(each) for each in problem.diagnostics)) from None
    return GlobalArray(
        dtype=dtype,
        shape=found.shape,
        strides_bytes=strides,
        buffer=buffer,
        device=dev,
        offset_bytes=offset + found.address - start,
        readonly=found.readonly,
    )


def _borrowed(engine: SupportsSharing, where: tuple[int, int, int], found: Foreign, *, readonly: bool) -> tuple[Buffer, int]:
    """The memory, and where in it the address lies. What the driver knows before it, back to where loads can begin, is part of it."""
    start, span, lead = where
    if lead:
        with suppress(ArgumentError):  # there is nothing: it begins where its owner's memory does
            buffer, offset = engine.borrow(start - lead, span + lead, keep=found.keep, readonly=readonly)
            return buffer, offset + lead
    return engine.borrow(start, span, keep=found.keep, readonly=readonly)


# ---- faults
def _check_device(dev: Device, engine: SupportsSharing, x: SupportsDLPack) -> None:
    at, here = dlpack.where(x), Where(*engine.dlpack_device)
    readable = at == here or (here.kind == dlpack.CPU and at.kind in (dlpack.CPU, dlpack.CUDA_HOST))
    if not readable:
        _elsewhere(dev, x, str(at))


def _elsewhere(dev: Device, x: object, got: str) -> NoReturn:
    device = getattr(dev.engine, "dlpack_device", (0, 0))
    if device[0] == dlpack.CUDA and "GPU" in got:
        fix = "borrow it on the device that it is on"
    elif hasattr(x, "cuda") and device[0] == dlpack.CUDA:
        fix = "x.cuda() is a tensor there; dev.array(x.numpy()) copies it into an array"
    elif hasattr(x, "cpu"):
        fix = f"Device.open({home_of(x)!r}) is where it is; x.cpu() is a tensor in host memory"
    else:
        fix = "dev.array(x) copies a numpy array there, a.numpy() an array back"
    raise InputError(
        refusal(ELSEWHERE, f"the memory of a {type(x).__name__} is not that of {dev.name}", got=got, required=str(Where(*device)), fix=fix)
    )


def _type_faults(found: Foreign, dtype: type[DType], x: object) -> list[Diagnostic]:
    wanted = dtype.info.numpy
    as_bytes = found.element == "uint8" and wanted in _BYTES_OF
    if found.element == wanted or as_bytes or wanted in _RAW.get(found.element, ()):
        return []
    fix = (
        f"x.view of {wanted} keeps the bits, x.astype or x.to converts"
        if found.element_bytes == dtype.info.nbytes
        else f"convert it to {wanted}"
    )
    said = f"the memory of a {type(x).__name__} does not hold {dtype.__name__}"
    return [refusal(OTHER_TYPE, said, got=found.element, required=wanted, fix=fix)]


def _rank_faults(shape: tuple[int, ...], rank: object) -> list[Diagnostic]:
    if rank is None or (type(rank) is int and rank == len(shape)):
        return []
    fix = f"rank={len(shape)}, or a view of rank {rank}" if type(rank) is int else f"rank={len(shape)}"
    return [refusal(OTHER_RANK, "the array is of another rank", got=f"shape {shape}", required=f"rank={rank!r}", fix=fix)]


def _place(what: str, got: str, required: str) -> Diagnostic:
    return refusal(NO_PLACE, what, got=got, required=required, fix="pass what the owner says: tensor.data_ptr(), tensor.stride() x bytes")


def _strides(value: object, rank: int) -> tuple[int, ...] | None:
    numbers = [whole(entry) for entry in value] if isinstance(value, tuple) else []
    known = tuple(n for n in numbers if n is not None)
    return known if len(known) == len(numbers) == rank else None


def _here(said: Diagnostic) -> Diagnostic:
    return refusal(said.rule, said.what, got=said.got, required=said.required, fix=said.fix)


def _dlpack_stream(stream: SupportsCudaStream | int | None) -> int:
    """The stream's number as DLPack and the CUDA array interface count: 1 is the default stream."""
    from oxidecopy.engines.cuda.stream import LEGACY, stream_handle

    return LEGACY if stream is None else stream_handle(getattr(stream, "inner", None) or stream) or LEGACY


def _sharing(dev: Device) -> SupportsSharing:
    engine: object = dev.engine
    if isinstance(engine, SupportsSharing):
        return engine
    raise InputError(
        refusal(
            ELSEWHERE,
            f"{dev.name} shares no memory",
            got=type(engine).__name__,
            required="a simulator or a GPU",
            fix="dev.array(x) copies it",
        )
    )

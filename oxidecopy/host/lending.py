"""Arrays handed to other libraries: by DLPack and by the CUDA array interface. Nothing is copied; the memory lives until they let go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

from oxidecopy.engines.base import SupportsSharing
from oxidecopy.errors import ExportError
from oxidecopy.interop import cuda_array, dlpack
from oxidecopy.interop.dlpack import Where
from oxidecopy.interop.foreign import Foreign
from oxidecopy.typed.refusal import refuse, whole
from oxidecopy.typed.sites import at_the_users_line

if TYPE_CHECKING:
    from typing_extensions import CapsuleType

    from oxidecopy.typed.global_array import GlobalArray

NOT_LENT: Final = "OX5039"
_NO_WAIT: Final = -1
_PAIR: Final = 2
_DEFAULT: Final = 1  # the default stream, as DLPack and the CUDA array interface count


def capsule(
    engine: SupportsSharing,
    a: GlobalArray[Any, Any],
    *,
    stream: object,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> CapsuleType:
    """As `GlobalArray.__dlpack__`."""
    at = Where(*engine.dlpack_device)
    pairs: dict[str, object] = {"max_version": max_version, "dl_device": dl_device}
    for name, pair in pairs.items():
        if pair is not None and not (isinstance(pair, tuple) and len(pair) == _PAIR and None not in map(whole, pair)):
            _refuse(f"`{name}` is no pair of integers", f"{name}={pair!r}", "a pair of integers, or None", f"leave `{name}` out")
    if copy:
        _refuse("an array is never copied on its way to another library", "copy=True", "copy=False, or nothing", "copy it there")
    if dl_device is not None and (int(dl_device[0]), int(dl_device[1])) != at:
        _refuse(
            "an array is handed out where it lies", str(Where(*map(int, dl_device))), str(at), "np.asarray(a.numpy()) copies it to the host"
        )
    if a.readonly and (max_version is None or max_version[0] < 1):
        required = "max_version=(1, 0) or newer"
        _refuse(
            "DLPack before 1.0 cannot say that memory is read-only", "no max_version", required, "pass a copy, or the library's own array"
        )
    waiting = _stream(stream)
    lent = _lent(engine, a, None if at.kind == dlpack.CPU else waiting)
    return dlpack.capsule_of(lent, at, max_version)


def cuda_array_interface(engine: SupportsSharing, a: GlobalArray[Any, Any]) -> dict[str, object]:
    """As `GlobalArray.__cuda_array_interface__`.

    Raises:
        AttributeError: as an array without it does: it is not on a GPU, or its element type has no word in it.
    """
    if engine.dlpack_device[0] != dlpack.CUDA:
        raise AttributeError("__cuda_array_interface__ is for arrays on a GPU")
    if a.dtype.info.packed or not cuda_array.has_typestr(a.dtype.info.numpy):
        raise AttributeError(f"__cuda_array_interface__ has no word for {a.dtype.__name__}: use __dlpack__")
    return cuda_array.written(_lent(engine, a, _DEFAULT))


def _lent(engine: SupportsSharing, a: GlobalArray[Any, Any], stream: int | None) -> Foreign:
    if a.dtype.info.packed:
        name = a.dtype.info.name
        _refuse(f"no other library knows packed {name}", name, "elements of whole bytes", "lend the bytes: a.bytes")
    with at_the_users_line():
        address, keep = engine.lend(a.buffer, stream)
    info = a.dtype.info
    return Foreign(
        address=address + a.offset_bytes,
        shape=a.shape,
        strides_bytes=a.strides_bytes,
        element=info.numpy,
        element_bytes=info.nbytes,
        readonly=a.readonly,
        keep=(keep, a),
        stream=stream,
    )


def _stream(stream: object) -> int | None:
    """The handle to wait on; None for no waiting."""
    number = _DEFAULT if stream is None else whole(stream)
    if number is None or number < _NO_WAIT or number == 0:
        required = "None or 1 for the default stream, 2 for the per-thread one, -1 for no waiting, or a handle"
        _refuse("DLPack has no such stream", f"stream={stream!r}", required, "stream=1")
    return None if number == _NO_WAIT else number


def _refuse(what: str, got: str, required: str, fix: str) -> NoReturn:
    refuse(ExportError, NOT_LENT, what, got=got, required=required, fix=fix)

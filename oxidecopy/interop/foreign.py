"""`Foreign`: what another library says of its memory, whichever protocol it speaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol, final, runtime_checkable

from typing_extensions import CapsuleType

from oxidecopy.errors import Diagnostic, InputError
from oxidecopy.typed.sites import caller_site

MALFORMED = "OX5035"


_IMMUTABLE: Final = frozenset({"jax", "jaxlib"})  # packages whose arrays never change, and whose capsules do not say so


def immutable(x: object) -> bool:
    """Its library relies on it that nothing writes to it, whatever it says of its memory."""
    return type(x).__module__.partition(".")[0] in _IMMUTABLE


@runtime_checkable
class SupportsDLPack(Protocol):
    """An array of any library that speaks DLPack."""

    def __dlpack_device__(self) -> tuple[Any, Any]:
        """Type and number of its device: integers, or enums of them."""

    # Any: before DLPack 1.0 it took `stream` alone, and libraries annotate it in their own ways.
    def __dlpack__(self, *, stream: Any = ...) -> CapsuleType:
        """Its memory, in a capsule."""


@runtime_checkable
class SupportsCudaArray(Protocol):
    """An array of any library that speaks the CUDA array interface."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:  # Any: what its entries are depends on their names
        """Shape, type, address and the like."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """Memory of another library.

    Attributes:
        address: of element 0.
        shape: extents, elements, outermost first.
        strides_bytes: bytes from one index to the next, one per dimension.
        element: the element type: a name such as "float32" or "bfloat16" (as numpy and ml_dtypes have them), or how the library calls
            it where we have none.
        element_bytes: of one element.
        readonly: nothing may write to it.
        keep: what keeps the memory alive.
        stream: handle of the stream whose work fills it, where the borrower has to wait for it.
    """

    address: int
    shape: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    element: str
    element_bytes: int
    readonly: bool
    keep: object
    stream: int | None = None


def dense_strides(shape: tuple[int, ...], element_bytes: int) -> tuple[int, ...]:
    """Row by row, in bytes."""
    strides = [element_bytes]
    for extent in reversed(shape[1:]):
        strides.append(strides[-1] * extent)
    return tuple(reversed(strides))[: len(shape)]


def malformed(what: str, got: str, required: str, fix: str = "dev.array(x) copies what numpy can read") -> InputError:
    """For an object that breaks the protocol it claims to speak."""
    return InputError(Diagnostic(rule=MALFORMED, what=what, got=got[:200], required=required, fix=fix, site=caller_site()))

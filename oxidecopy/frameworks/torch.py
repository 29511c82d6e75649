"""Pipelines as operators of torch: known to `torch.compile`, to its graphs and to its streams, without a copy.

    @torch_op("mylib::transposed_store", mutates=("out",))
    def transposed_store(on: On, x: torch.Tensor, out: torch.Tensor) -> None:
        src, dst = on.borrow(x, ox.f32, rank=2), on.borrow(out, ox.f32, rank=2)
        on.launch(copy[dst.shape[0] // 16], ox.TmaDescriptor.tiled(src, box=(16, 16)), dst.T)

    transposed_store(x, out)                     # or torch.ops.mylib.transposed_store(x, out)

Tensors on a GPU run there, on torch's current stream; tensors in host memory run on the simulator, so an operator is tested without a GPU.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from types import NoneType
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Protocol, TypeVar, final, get_type_hints

from oxidecopy.errors import UsageError
from oxidecopy.host.arrays import refusal
from oxidecopy.host.borrowing import borrow
from oxidecopy.host.device import Device
from oxidecopy.typed.refusal import described

if TYPE_CHECKING:
    import torch  # type: ignore[import-not-found,unused-ignore]

    from oxidecopy.typed.dtypes import DType
    from oxidecopy.typed.global_array import GlobalArray

NO_TORCH: Final = "OX5050"
NOT_AN_OP: Final = "OX5051"
NO_TENSOR: Final = "OX5052"
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Launched(Protocol):
    """A pipeline with its grid, such as `copy[4, 2]`."""

    def on(self, stream: Any, /) -> Any:  # Any: an object with `__cuda_stream__`, or its number
        """The same launch on a stream."""

    def __call__(self, *args: Any) -> None:
        """Launches it."""


@final
@dataclass(frozen=True, slots=True)
class On:
    """Where an operator runs.

    Attributes:
        device: the GPU of its tensors, or the simulator.
        stream: torch's current stream there, as a number; None on the simulator.
    """

    device: Device
    stream: int | None

    def borrow(self, x: torch.Tensor, dtype: type[DType], *, rank: int) -> GlobalArray[Any, Any]:
        """The tensor's memory, as `Device.borrow`; what filled it on the stream before comes first.

        While torch captures a graph nothing of the tensor is kept: memory that a graph uses is its owner's to keep, and torch refuses a
        graph of its own (`torch.compile(mode="reduce-overhead")`) whose tensors somebody else has.
        """
        plain: Any = x.detach()  # gradients are torch's business, and DLPack refuses tensors that have them
        kept = self.stream is None or not _torch().cuda.is_current_stream_capturing()
        return borrow(self.device, plain, dtype, rank, self.stream, kept=kept)

    def launch(self, launched: Launched, *args: Any) -> None:
        """Launches a pipeline with its grid on the stream; the host does not wait, unless it is the simulator's."""
        (launched if self.stream is None else launched.on(self.stream))(*args)


def torch_op(name: str, *, mutates: Sequence[str]) -> Callable[[Callable[Concatenate[On, P], None]], Callable[P, None]]:
    """Registers a function as an operator of torch that writes to some of its tensors and returns nothing.

    The function takes an `On`, then what the operator takes: tensors, numbers, strings, as torch's own `custom_op` does, all annotated.
    `torch.compile` does not look inside, and runs it where its other code leaves it; a graph captured by torch records its launches.

    Args:
        name: "namespace::name".
        mutates: the names of the tensors that it writes to.

    Returns:
        The operator, without the `On`.

    Raises:
        UsageError: torch is not installed (OX5050), or the function cannot be an operator (OX5051).
    """

    def register(function: Callable[Concatenate[On, P], None]) -> Callable[P, None]:
        custom_op, body = attrgetter("library.custom_op")(_torch()), _body(function)
        try:
            made: Callable[P, None] = custom_op(name, body, mutates_args=tuple(mutates))
        except (ValueError, TypeError, RuntimeError, AssertionError) as problem:
            required, fix = (
                "what torch's custom_op takes",
                "annotate each parameter; name tensors of it in `mutates`; namespace::name",
            )
            raise _refused(NOT_AN_OP, f"`{function.__name__}` cannot be an operator of torch", str(problem), required, fix) from problem
        made.register_fake(lambda *_args, **_more: None)  # type: ignore[attr-defined]  # it returns nothing, whatever it is given
        return made

    return register


def _body(function: Callable[..., None]) -> Callable[..., None]:
    """The function without its first parameter, with annotations as types: what torch reads a schema from."""
    if not hasattr(function, "__name__"):
        required, fix = "a function whose first parameter is an On", "@torch_op(...) above a def, once"
        raise _refused(NOT_AN_OP, "this is no function", described(function), required, fix)
    try:
        signature = inspect.signature(function)
        first, *rest = signature.parameters.values()
    except (TypeError, ValueError) as problem:
        required, fix = "a function whose first parameter is an On", "@torch_op(...) above a def"
        name: str = getattr(function, "__name__", described(function))
        raise _refused(NOT_AN_OP, f"`{name}` cannot be an operator of torch", str(problem), required, fix) from problem
    try:
        hints = get_type_hints(function, localns={"On": On})
    except (NameError, TypeError) as problem:
        required, fix = "names that exist when the operator is made", "import torch outside of `if TYPE_CHECKING:`"
        raise _refused(NOT_AN_OP, f"the annotations of `{function.__name__}` cannot be read", str(problem), required, fix) from problem
    if hints.get(first.name) is not On:
        required, fix = "On", f"def {function.__name__}({first.name}: On, ...)"
        raise _refused(NOT_AN_OP, f"`{function.__name__}` does not take an On first", str(hints.get(first.name)), required, fix)
    if hints.get("return") not in (None, NoneType):
        what, got = f"`{function.__name__}` returns something, which an operator that writes to tensors does not", str(hints["return"])
        raise _refused(NOT_AN_OP, what, got, "-> None", "write to a tensor that `mutates` names")

    def body(*args: Any, **more: Any) -> None:
        function(_where(signature.bind(None, *args, **more).arguments.values()), *args, **more)

    body.__name__ = function.__name__
    body.__doc__ = function.__doc__
    body.__module__ = function.__module__
    body.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [p.replace(annotation=hints.get(p.name, p.annotation)) for p in rest], return_annotation=None
    )
    body.__annotations__ = {p.name: hints[p.name] for p in rest if p.name in hints} | {"return": None}
    return body


def _where(arguments: Any) -> On:
    """The device of the first tensor among an operator's arguments, and torch's current stream on it."""
    torch = _torch()
    every = [each for value in arguments for each in (value if isinstance(value, (list, tuple)) else (value,))]
    tensors = [each for each in every if isinstance(each, torch.Tensor)]
    places = {str(tensor.device) for tensor in tensors}
    if len(places) != 1:
        required, fix = "tensors of one device", "x.to(device) before the call"
        raise _refused(NO_TENSOR, "the tensors of an operator lie in one memory", ", ".join(sorted(places)) or "no tensor", required, fix)
    device = tensors[0].device
    if device.type == "cuda":
        return On(_opened(f"cuda:{device.index}"), torch.cuda.current_stream(device).cuda_stream or _LEGACY)
    if device.type == "cpu":
        return On(_opened("sim-fast"), None)
    raise _refused(NO_TENSOR, "the memory of a tensor is neither a GPU's nor the host's", str(device), "cuda or cpu", "x.cuda()")


_LEGACY: Final = 1  # the default stream's number for those that take 0 for none


@cache
def _opened(name: str) -> Device:
    """One device for all operators of a GPU: what was recorded and proven is kept by it."""
    return Device.open(name)


@cache
def _torch() -> Any:
    """The framework (Any: the package does not depend on it)."""
    try:
        import torch
    except ImportError as problem:
        raise _refused(NO_TORCH, "torch is not installed", str(problem), "torch 2.4 or newer", "pip install torch") from problem
    return torch


def _refused(rule: str, what: str, got: str, required: str, fix: str) -> UsageError:
    return UsageError(refusal(rule, what, got=got, required=required, fix=fix))

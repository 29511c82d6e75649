"""As much of torch as operators need, over numpy: tests of them run where torch is not installed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

CPU = SimpleNamespace(type="cpu", index=None)


@dataclass
class Tensor:
    """Host memory, by numpy's DLPack. `wants_gradient` tensors refuse to be shared, as torch's do."""

    data: np.ndarray[Any, Any]
    device: Any = field(default_factory=lambda: CPU)
    wants_gradient: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        found: tuple[int, ...] = self.data.shape
        return found

    def detach(self) -> Tensor:
        return Tensor(self.data, self.device)

    def __dlpack__(self, **more: Any) -> Any:
        if self.wants_gradient:
            raise BufferError("it requires grad")
        return self.data.__dlpack__(**{name: value for name, value in more.items() if name != "stream"})

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.data.__dlpack_device__()


class CustomOp:
    """What `custom_op` gives: it calls the body, and is told how to pretend."""

    def __init__(self, name: str, body: Callable[..., None], mutates_args: Sequence[str]) -> None:
        parameters = inspect.signature(body).parameters
        if "::" not in name:
            raise ValueError(f"{name}: no namespace")
        for parameter in parameters.values():
            if parameter.annotation not in (Tensor, int, float, str, list[Tensor]):
                raise ValueError(f"{parameter}: unsupported type")
        if not set(mutates_args) <= parameters.keys():
            raise ValueError(f"{mutates_args}: not all are parameters")
        self.body, self.fake = body, None

    def register_fake(self, fake: Any) -> None:
        self.fake = fake

    def __call__(self, *args: Any, **more: Any) -> None:
        self.body(*args, **more)


def custom_op(name: str, body: Callable[..., None], *, mutates_args: Sequence[str]) -> CustomOp:
    """As torch has it."""
    return CustomOp(name, body, mutates_args)


library = SimpleNamespace(custom_op=custom_op)

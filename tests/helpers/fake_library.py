"""The driver's library as `ctypes` has it: the three encode calls, which write down what they are given."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


def plain(argument: Any) -> Any:
    """A C argument as a number or a list of numbers."""
    return list(argument) if isinstance(argument, ctypes.Array) else argument.value


@dataclass
class FakeLibrary:
    """Answers 1 where `refuse` says so; else the map becomes 128 bytes of 0x5A."""

    refuse: Callable[[str, Sequence[Any]], bool] = lambda _, __: False
    calls: list[tuple[str, list[Any]]] = field(default_factory=list)

    def _call(self, name: str, arguments: Sequence[Any]) -> int:
        values = [plain(argument) for argument in arguments]
        self.calls.append((name, values))
        if self.refuse(name, values):
            return 1
        ctypes.memset(values[0], 0x5A, 128)
        return 0

    def cuTensorMapEncodeTiled(self, *arguments: Any) -> int:
        return self._call("cuTensorMapEncodeTiled", arguments)

    def cuTensorMapEncodeIm2col(self, *arguments: Any) -> int:
        return self._call("cuTensorMapEncodeIm2col", arguments)

    def cuTensorMapEncodeIm2colWide(self, *arguments: Any) -> int:
        return self._call("cuTensorMapEncodeIm2colWide", arguments)

"""The parameters of an emitted kernel: what each is, and its bytes for one launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, final

from oxidecopy.engines.cuda.code.numbers import bits_of
from oxidecopy.program.program import Launch, extent_name

Kind: TypeAlias = Literal["map", "table", "extent", "array", "stride", "idx", "scalar", "counter"]
MAP_BYTES: Final = 128
POINTER_BYTES: Final = 8


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of the kernel.

    Attributes:
        kind: "map" (128 bytes by value), "table" (address of several), "extent" (elements, of a map or array), "array" (address), "stride"
            (bytes), "idx" and "scalar" (the program's own), or "counter" (address of one u32 that is 0 when the launch begins).
        name: in the source.
        of: the program's parameter that it belongs to; of a counter, its share.
        ctype: in the source.
        nbytes: of the argument.
        axis: of an extent or stride, counted from the outermost dimension.
        dtype: of an array's or scalar's elements.
        cast: a scalar is rounded as element expressions round, else as fills do.
    """

    kind: Kind
    name: str
    of: str
    ctype: str
    nbytes: int
    axis: int = 0
    dtype: str = ""
    cast: bool = True

    @property
    def declaration(self) -> str:
        """As it stands in the kernel's signature."""
        if self.kind == "map":
            return f"const __grid_constant__ TensorMap {self.name}"
        if self.kind == "table":
            return f"const TensorMap* {self.name}"
        pointer = self.kind in ("array", "counter")
        return f"{self.ctype}{'*' if pointer else ' '}{' ' if pointer else ''}{self.name}"

    def pack(
        self,
        launch: Launch,
        *,
        maps: Mapping[str, bytes],
        addresses: Mapping[str, int],
        scalars: Mapping[str, int | float],
        counters: Mapping[str, int],
    ) -> bytes:
        """The argument's bytes.

        Args:
            launch: the one that the program was verified for.
            maps: the encoded maps, by parameter.
            addresses: of element 0 of each array, and of each table of maps, by parameter.
            scalars: by parameter.
            counters: addresses, by `of`.
        """
        match self.kind:
            case "map":
                return maps[self.of]
            case "array" | "table":
                return self._integer(addresses[self.of])
            case "counter":
                return self._integer(counters[self.of])
            case "stride":
                return self._integer(dict(launch.arrays)[self.of].strides_bytes[self.axis])
            case "extent":
                return self._integer(launch.environment()[extent_name(self.of, self.axis)])
            case "idx":
                return self._integer(launch.environment()[self.of])
            case "scalar":
                return self._integer(bits_of(scalars[self.of], self.dtype, cast=self.cast))

    def _integer(self, value: int) -> bytes:
        return (value % (1 << 8 * self.nbytes)).to_bytes(self.nbytes, "little")

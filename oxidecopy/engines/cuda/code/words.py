"""The argument words of an image: arrays as the launch binds them, constants, and scalar parameters to be filled in."""

from __future__ import annotations

from typing import Final, final

from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.code.image import ScalarWord
from oxidecopy.engines.cuda.code.numbers import bits_of
from oxidecopy.program.program import ArrayInfo, Launch

_DIMENSIONS: Final = 5
_EXTENT_MAX: Final = (1 << 32) - 1  # beyond what a coordinate reaches


@final
class Words:
    """Collects words while code is made. Arrays come first, equally long, so that a record can name one by its position."""

    def __init__(self, launch: Launch, arrays: tuple[str, ...], *, wide: bool = False) -> None:
        self._size = abi.WIDE_ARRAY_WORDS if wide else abi.ARRAY_WORDS
        self.arrays = {name: i * self._size for i, name in enumerate(arrays)}
        infos = dict(launch.arrays)
        self.words = [word for name in arrays for word in _array(infos[name], wide=wide)]
        self.scalars: dict[tuple[str, str, bool], ScalarWord] = {}
        self._constants: dict[int, int] = {}

    def slot(self, array: str) -> int:
        """Which of the arrays it is."""
        return self.arrays[array] // self._size

    def number(self, value: float, dtype: str, *, cast: bool) -> int:
        """The word that holds a constant; equal bits share one."""
        bits = bits_of(value, dtype, cast=cast)
        if bits not in self._constants:
            self._constants[bits] = self._new(bits)
        return self._constants[bits]

    def scalar(self, name: str, dtype: str, *, cast: bool) -> int:
        """The word that will hold a scalar parameter as an element of `dtype`."""
        key = (name, dtype, cast)
        if key not in self.scalars:
            self.scalars[key] = ScalarWord(self._new(0), name, dtype, cast)
        return self.scalars[key].word

    def _new(self, bits: int) -> int:
        self.words.append(bits)
        return len(self.words) - 1


def _array(info: ArrayInfo, *, wide: bool) -> list[int]:
    """Address (filled in later), strides, and extents, in pairs but where they are `wide`; dimensions it does not have have extent 1."""
    strides = [*info.strides_bytes, *[0] * (_DIMENSIONS - len(info.shape))]
    if wide:
        return [0, *[s & (1 << 64) - 1 for s in strides], *info.shape, *[1] * (_DIMENSIONS - len(info.shape))]
    extents = [*[min(n, _EXTENT_MAX) for n in info.shape], *[1] * (_DIMENSIONS + 1 - len(info.shape))]
    pairs = [extents[i] | extents[i + 1] << 32 for i in (0, 2)]
    return [0, *[s & (1 << 64) - 1 for s in strides], *pairs, extents[4]]

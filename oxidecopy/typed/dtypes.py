"""Element types as users write them (`ox.f32`): marker classes, each naming a row of `isa.dtypes`.

What a type can do is a base class: a reduction asks for `HasAdd`, `HasMinMax`, `HasBits` or `HasIncDec`, so a wrong pair is a type error.
The classes are never instantiated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Never, final

from oxidecopy.errors import DTypeError
from oxidecopy.isa.dtypes import DTYPES, DTypeInfo
from oxidecopy.typed.refusal import refuse


class DType:
    """Base of all element types."""

    info: ClassVar[DTypeInfo]

    def __init__(self, _key: Never) -> None: ...

    if not TYPE_CHECKING:

        def __init__(self, *_: object, **__: object) -> None:
            name = type(self).__name__
            what, got = f"`{name}` is an element type to name, not to call", f"ox.{name}(...)"
            refuse(DTypeError, "OX1072", what, got=got, required="the class", fix="pass plain numbers: `cta.fill(tile, 0.5)` rounds them")

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__name__ in DTYPES:
            cls.info = DTYPES[cls.__name__]


def element_named(word: object) -> str:
    """`ox.f32` for what numpy, torch, jax and Python call so: np.float32, torch.float32, "float32", float. Empty for anything else."""
    name = word if isinstance(word, str) else getattr(word, "__name__", None) or str(word)
    name = {"float": "f32", "int": "i32"}.get(name, name.rpartition(".")[2])
    return next((f"ox.{info.name}" for info in DTYPES.values() if name in (info.name, info.numpy)), "")


class HasAdd(DType):
    """Types with reduce add."""


class HasMinMax(DType):
    """Types with reduce min and max."""


class HasBits(DType):
    """Types with reduce and, or, xor."""


class HasIncDec(DType):
    """Types with reduce inc and dec."""


class HasStore(DType):
    """Types that tensor copies store as they load them."""


class Packed(DType):
    """Types of parts of bytes (sm_100 and newer): only tensor copies know them; elsewhere they are the bytes that they lie in."""


@final
class u8(HasStore):
    """Unsigned 8-bit integer."""


@final
class u16(HasStore):
    """Unsigned 16-bit integer."""


@final
class u32(HasStore, HasAdd, HasMinMax, HasBits, HasIncDec):
    """Unsigned 32-bit integer."""


@final
class i32(HasStore, HasAdd, HasMinMax, HasBits):
    """Signed 32-bit integer."""


@final
class u64(HasStore, HasAdd, HasMinMax, HasBits):
    """Unsigned 64-bit integer."""


@final
class i64(HasStore, HasMinMax):
    """Signed 64-bit integer; it has no reduce add (use u64: the bits are the same)."""


@final
class f16(HasStore, HasAdd, HasMinMax):
    """IEEE half precision."""


@final
class bf16(HasStore, HasAdd, HasMinMax):
    """bfloat16."""


@final
class f32(HasStore, HasAdd):
    """IEEE single precision."""


@final
class f64(HasStore, HasAdd):
    """IEEE double precision."""


@final
class tf32(HasStore, HasAdd):
    """f32 in memory, rounded to 10 mantissa bits by loads; stores and reductions do not round (measured)."""


@final
class f32_ftz(HasStore, HasAdd):
    """f32 whose reduce add flushes subnormals; loads and stores keep every bit (measured)."""


@final
class tf32_ftz(HasStore, HasAdd):
    """tf32 whose reduce add flushes subnormals."""


@final
class e4m3(HasStore):
    """fp8 with 4 exponent bits, carried as bytes."""


@final
class e5m2(HasStore):
    """fp8 with 5 exponent bits, carried as bytes."""


@final
class u4x16_align8b(HasStore, Packed):
    """Packed 4-bit values, 16 of them in 8 bytes, in shared memory as well."""


@final
class u4x16_align16b(Packed):
    """Packed 4-bit values, 16 of them in 8 bytes, in shared memory with a gap of 8 behind them. There is no store of them."""


@final
class u6x16_align16b(Packed):
    """Packed 6-bit values, 16 of them in 12 bytes. Loads put a gap of 4 behind them; stores take one value from each byte instead."""

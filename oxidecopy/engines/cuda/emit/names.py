"""C++ identifiers for the user's names: as they are where C++ allows it, each once."""

from __future__ import annotations

import re
from typing import Final, final

# Words of C++, and what the emitted source and the compiler declare themselves.
_WORDS: Final = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const constexpr const_cast continue decltype
default delete do double dynamic_cast else enum explicit export extern false final float for friend goto if inline int long main mutable
namespace new noexcept not not_eq nullptr operator or or_eq override private protected public register reinterpret_cast return short
signed sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename union
unsigned using virtual void volatile wchar_t while xor xor_eq char8_t char16_t char32_t concept consteval constinit co_await co_return
co_yield requires linux unix
i8 i16 i32 i64 u8 u16 u32 u64 ptx num coop TensorMap Vec shared smem thread threads NAN INFINITY NULL threadIdx blockIdx blockDim
gridDim warpSize dim3 size_t printf clock assert atomicAdd load_index floor_div floor_mod minimum maximum
block_x block_y block_z grid_x grid_y grid_z cta_rank
"""
_TAKEN: Final = frozenset(re.findall(r"\w+", _WORDS))
# Functions that the compiler declares at the outermost level, where the kernel's own name stands.
_FUNCTIONS: Final = """
abort abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh cospi div erf erfc erfcinv erfcx erfinv exit exp exp10 exp2
expm1 fabs fdim fdivide floor fma fmax fmin fmod free frexp hypot ilogb index isfinite isinf isnan j0 j1 jn labs ldexp lgamma llabs llrint
llround log log10 log1p log2 logb lrint lround malloc max memcpy memmove memset min modf nan nearbyint nextafter norm norm3d norm4d
normcdf normcdfinv pow powi rand rcbrt remainder remquo rhypot rint rnorm round rsqrt saxpy scalbln scalbn signbit sin sincos sincospi
sinh sinpi sqrt strlen tan tanh tgamma time trunc y0 y1 yn mul24 mulhi mul64hi umin umax llmin llmax ullmin ullmax
"""
_DECLARED: Final = frozenset(re.findall(r"\w+", _FUNCTIONS))


@final
class Names:
    """Gives names out; the first who asks for one gets it plain, the next with a number."""

    def __init__(self) -> None:
        self._taken = set(_TAKEN)

    def kernel(self, wanted: str) -> str:
        """The kernel's name."""
        name = self.new(wanted)
        return self.new(f"{name}_kernel") if name in _DECLARED or (re.fullmatch(r"\w+[fl]", name) and name[:-1] in _DECLARED) else name

    def new(self, wanted: str) -> str:
        """An identifier like `wanted` that nobody has yet."""
        plain = re.sub(r"\W", "_", wanted, flags=re.ASCII).strip("_") or "it"
        plain = re.sub(r"__+", "_", plain)
        plain = f"n{plain}" if plain[0].isdigit() else plain
        name, number = plain, 1
        while name in self._taken or re.fullmatch(r"_[A-Z].*", name):
            number += 1
            name = f"{plain}_{number}"
        self._taken.add(name)
        return name


def comment(text: str) -> str:
    """`text` as it may stand behind `//`: one line that ends no comment and continues on no other."""
    return "".join(c if c.isprintable() else "?" for c in text).replace("\\", "/").replace("??/", "?/")

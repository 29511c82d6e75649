// Functions of f32, with the errors that oxidecopy/isa/elem.py states. A NaN that they make is 0x7fffffff.
#pragma once
#include "ptx.cuh"

namespace fn {

// NaN where one of the two is; -0 below +0.
OX_DEVICE f32 minimum(f32 a, f32 b) {
    f32 x;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(a), "f"(b));
    return x;
}

OX_DEVICE f32 maximum(f32 a, f32 b) {
    f32 x;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(a), "f"(b));
    return x;
}

// exp(-|x|) never overflows; where it is small, the quotient keeps all its digits.
OX_DEVICE f32 sigmoid(f32 x) {
    const f32 e = expf(-fabsf(x));
    return __fdiv_rn(x < 0.0f ? e : 1.0f, __fadd_rn(1.0f, e));
}

// Below -13.5 it is less than one 2**-23 of the smallest normal number.
OX_DEVICE f32 gelu(f32 x) {
    const f32 phi = __fmul_rn(0.5f, __fadd_rn(1.0f, erff(__fmul_rn(x, 0.70710678118654752f))));
    return x < -13.5f ? -0.0f : __fmul_rn(x, phi);
}

}  // namespace fn

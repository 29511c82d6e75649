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

// exp(-|x|) never overflows; where it is small, the product keeps all its digits.
OX_DEVICE f32 sigmoid(f32 x) {
    const f32 e = expf(-fabsf(x));
    f32 whole;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(whole) : "f"(__fadd_rn(1.0f, e)));
    return __fmul_rn(x < 0.0f ? e : 1.0f, whole);
}

// x * Phi(x) = max(x, 0) - y * Phi(-y), where y is |x|: one function for both signs, without a branch, so that several run side by side. Phi(-y)
// is 2**P(y), to 2**-25 of one, and to a fiftieth of itself up to 6; beyond that it is less than the last place of x says. At 14 it is 0, which
// is as far as P goes. The zero of max is -0, so that zeros keep their sign.
OX_DEVICE f32 gelu(f32 x) {
    const f32 y = minimum(fabsf(x), 14.0f);
    f32 p = -1.919446958709159e-06f;
    p = __fmaf_rn(p, y, 2.980224962811917e-05f);
    p = __fmaf_rn(p, y, -1.4702002226840705e-04f);
    p = __fmaf_rn(p, y, -2.1687406115233898e-04f);
    p = __fmaf_rn(p, y, 7.1495589800179005e-03f);
    p = __fmaf_rn(p, y, -5.254371836781502e-02f);
    p = __fmaf_rn(p, y, -4.591963291168213e-01f);
    p = __fmaf_rn(p, y, -1.1511061191558838f);
    p = __fmaf_rn(p, y, -1.0f);
    f32 q;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(q) : "f"(p));
    return __fmaf_rn(-y, q, maximum(x, -0.0f));
}

}  // namespace fn

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

// x * Phi(x), without a branch, so that several run side by side. Phi is 1/2 + x * R(x * x) in the middle, a polynomial fitted to an error below
// 2**-30; in the tails 2**P(|x|), to 2**-25 of one, and to a ten-thousandth of itself up to 14. Below -13.5 the result is less than one 2**-23 of
// the smallest normal number.
OX_DEVICE f32 gelu(f32 x) {
    const f32 y = fabsf(x), s = __fmul_rn(x, x);
    f32 r = 3.9959121522770147e-07f;
    r = __fmaf_rn(r, s, -8.6298796304618e-06f);
    r = __fmaf_rn(r, s, 1.1410449224058539e-04f);
    r = __fmaf_rn(r, s, -1.1861430248245597e-03f);
    r = __fmaf_rn(r, s, 9.973010048270226e-03f);
    r = __fmaf_rn(r, s, -6.649027019739151e-02f);
    r = __fmaf_rn(r, s, 3.9894226193428040e-01f);
    f32 p = -1.9089956282414278e-09f;
    p = __fmaf_rn(p, y, 1.4041611962056777e-07f);
    p = __fmaf_rn(p, y, -4.521170922089368e-06f);
    p = __fmaf_rn(p, y, 8.440917736152187e-05f);
    p = __fmaf_rn(p, y, -1.024691155180335e-03f);
    p = __fmaf_rn(p, y, 8.655265904963017e-03f);
    p = __fmaf_rn(p, y, -5.375129729509354e-02f);
    p = __fmaf_rn(p, y, -4.5961394906044006e-01f);
    p = __fmaf_rn(p, y, -1.1496669054031372f);
    p = __fmaf_rn(p, y, -1.0007340908050537f);
    f32 q;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(q) : "f"(p));
    const f32 tail = x < 0.0f ? q : __fsub_rn(1.0f, q), phi = y < 1.5f ? __fmaf_rn(r, x, 0.5f) : tail;
    return x < -13.5f ? -0.0f : __fmul_rn(x, phi);
}

}  // namespace fn

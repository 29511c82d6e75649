// Coordinates as quotients and remainders of one number, by multiplication: `Coordinate` records.
#pragma once
#include "ptx.cuh"

// x / divisor for 0 <= x < 2^31.
OX_DEVICE u32 quotient(u32 x, u32 magic, u32 shift) {
    return __umulhi(x, magic) >> shift;
}

// (x / divisor % modulus) * scale + base. What is divided is not negative.
OX_DEVICE i32 placed(u32 x, u32 magic, u32 shift, u32 modulus_magic, u32 modulus_shift, u32 modulus, u32 scale, u32 base) {
    const u32 q = magic == 0 ? x : quotient(x, magic, shift);
    const u32 r = q - quotient(q, modulus_magic, modulus_shift) * modulus;
    return static_cast<i32>(r * scale + base);
}

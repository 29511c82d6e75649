// Element types: values as stored, zero-extended to 64 bits, and their operations bit for bit as oxidecopy/isa/elem.py says. Every result is
// rounded once; nothing is contracted.
#pragma once
#include "functions.cuh"

namespace elem {

OX_DEVICE bool is_integer(u32 dtype) {
    return dtype <= DT_I64;
}

OX_DEVICE bool is_flushed(u32 dtype) {
    return dtype == DT_F32_FTZ || dtype == DT_TF32_FTZ;
}

OX_DEVICE bool is_tf32(u32 dtype) {
    return dtype == DT_TF32 || dtype == DT_TF32_FTZ;
}

// All bits of a type.
OX_DEVICE u64 mask_of(u32 dtype) {
    switch (dtype) {
        case DT_U8:
        case DT_E4M3:
        case DT_E5M2: return 0xff;
        case DT_U16:
        case DT_F16:
        case DT_BF16: return 0xffff;
        case DT_U64:
        case DT_I64:
        case DT_F64: return ~0ull;
        default: return 0xffffffff;
    }
}

// The one NaN of a float type.
OX_DEVICE u64 nan_of(u32 dtype) {
    if (is_tf32(dtype)) return 0x7fffe000;
    return mask_of(dtype) >> 1;
}

OX_DEVICE f64 as_f64(u64 bits) {
    return __longlong_as_double(static_cast<i64>(bits));
}

OX_DEVICE u64 bits_of(f64 value) {
    return static_cast<u64>(__double_as_longlong(value));
}

OX_DEVICE u32 flushed(u32 bits, u32 dtype) {
    return is_flushed(dtype) && (bits & 0x7f800000) == 0 ? bits & 0x80000000 : bits;
}

// ---- numbers: every float type but f64 is part of f32
OX_DEVICE f32 to_f32(u64 bits, u32 dtype) {
    f32 value;
    switch (dtype) {
        case DT_F16: asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(static_cast<u16>(bits))); return value;
        case DT_BF16: return __uint_as_float(static_cast<u32>(bits) << 16);
        case DT_E4M3:
        case DT_E5M2: {
            u32 halves;
            if (dtype == DT_E4M3) asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(static_cast<u16>(bits)));
            else asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(halves) : "h"(static_cast<u16>(bits)));
            asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(static_cast<u16>(halves)));
            return value;
        }
        default: return __uint_as_float(flushed(static_cast<u32>(bits), dtype));
    }
}

OX_DEVICE bool is_nan(f32 value) {
    return (__float_as_uint(value) & 0x7fffffff) > 0x7f800000;
}

OX_DEVICE bool is_nan(f64 value) {
    return (bits_of(value) & ~0ull >> 1) > 0x7ff0000000000000ull;
}

// ---- rounding to a type: to nearest even, from f32
OX_DEVICE u64 from_f32(f32 value, u32 dtype) {
    if (is_nan(value)) return nan_of(dtype);
    u16 half;
    switch (dtype) {
        case DT_F16: asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value)); return half;
        case DT_BF16: asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(half) : "f"(value)); return half;
        case DT_E4M3: asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(half) : "f"(0.0f), "f"(value)); return half & 0xff;
        case DT_E5M2: asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(half) : "f"(0.0f), "f"(value)); return half & 0xff;
        case DT_F64: return bits_of(static_cast<f64>(value));
        default: break;
    }
    u32 bits = __float_as_uint(value);
    if (is_tf32(dtype) && (bits & 0x7f800000) != 0x7f800000) bits = bits + 0xfff + (bits >> 13 & 1) & 0xffffe000;
    return flushed(bits, dtype);
}

// f32 cut off toward zero, its last bit set if anything was cut off: rounding that again is rounding once.
OX_DEVICE f32 to_odd(f64 value) {
    const f32 cut = __double2float_rz(value);
    if (is_nan(value) || static_cast<f64>(cut) == value) return cut;
    return __uint_as_float(__float_as_uint(cut) | 1);
}

OX_DEVICE u64 from_f64(f64 value, u32 dtype) {
    if (is_nan(value)) return nan_of(dtype);
    if (dtype == DT_F64) return bits_of(value);
    if (dtype == DT_F32 || dtype == DT_F32_FTZ) return flushed(__float_as_uint(__double2float_rn(value)), dtype);
    return from_f32(to_odd(value), dtype);
}

// ---- integers
OX_DEVICE bool is_signed(u32 dtype) {
    return dtype == DT_I32 || dtype == DT_I64;
}

OX_DEVICE u64 from_integer(u64 bits, u32 source, u32 target) {
    const i64 wide = source == DT_I32 ? static_cast<i64>(static_cast<i32>(bits)) : static_cast<i64>(bits);
    if (is_integer(target)) return static_cast<u64>(wide) & mask_of(target);
    const bool negative = is_signed(source) && wide < 0;
    if (target == DT_F64) return bits_of(negative ? __ll2double_rn(wide) : __ull2double_rn(static_cast<u64>(wide)));
    if (target == DT_F32 || target == DT_F32_FTZ) return __float_as_uint(negative ? __ll2float_rn(wide) : __ull2float_rn(static_cast<u64>(wide)));
    const u64 size = negative ? 0 - static_cast<u64>(wide) : static_cast<u64>(wide);
    const f32 cut = __ull2float_rz(size);
    const u32 odd = __float_as_uint(cut) | (__float2ull_rz(cut) != size) | (negative ? 0x80000000u : 0u);
    return from_f32(__uint_as_float(odd), target);
}

OX_DEVICE u64 to_integer(f64 value, u32 target) {
    if (is_nan(value)) return 0;
    if (target == DT_U64) return __double2ull_rz(value);
    const i64 whole = __double2ll_rz(value);  // holds to the range of i64
    switch (target) {
        case DT_U8: return static_cast<u64>(max(0ll, min(whole, 0xffll)));
        case DT_U16: return static_cast<u64>(max(0ll, min(whole, 0xffffll)));
        case DT_U32: return static_cast<u64>(max(0ll, min(whole, 0xffffffffll)));
        case DT_I32: return static_cast<u64>(max(-0x80000000ll, min(whole, 0x7fffffffll))) & 0xffffffff;
        default: return static_cast<u64>(whole);
    }
}

// ---- what programs can say
OX_DEVICE u64 cast(u64 bits, u32 source, u32 target) {
    if (source == target) return bits;
    if (is_integer(source)) return from_integer(bits, source, target);
    if (source == DT_F64) return is_integer(target) ? to_integer(as_f64(bits), target) : from_f64(as_f64(bits), target);
    const f32 value = to_f32(bits, source);
    return is_integer(target) ? to_integer(static_cast<f64>(value), target) : from_f32(value, target);
}

OX_DEVICE u64 negate(u64 bits, u32 dtype) {
    const u64 mask = mask_of(dtype);
    if (is_integer(dtype)) return 0 - bits & mask;
    const bool nan = dtype == DT_F64 ? is_nan(as_f64(bits)) : is_nan(to_f32(bits, dtype));
    return nan ? nan_of(dtype) : bits ^ (mask >> 1) + 1;
}

template <class T>
OX_DEVICE T combine_floats(u32 fn, T a, T b);

template <>
__device__ __forceinline__ f32 combine_floats(u32 fn, f32 a, f32 b) {
    switch (fn) {
        case ELEM_ADD: return __fadd_rn(a, b);
        case ELEM_SUB: return __fsub_rn(a, b);
        case ELEM_MUL: return __fmul_rn(a, b);
        default: return __fdiv_rn(a, b);
    }
}

template <>
__device__ __forceinline__ f64 combine_floats(u32 fn, f64 a, f64 b) {
    switch (fn) {
        case ELEM_ADD: return __dadd_rn(a, b);
        case ELEM_SUB: return __dsub_rn(a, b);
        case ELEM_MUL: return __dmul_rn(a, b);
        default: return __ddiv_rn(a, b);
    }
}

// The NaN of a float type for any of its NaNs.
OX_DEVICE u64 one_nan(u64 bits, u32 dtype) {
    if (is_integer(dtype)) return bits;
    return (dtype == DT_F64 ? is_nan(as_f64(bits)) : is_nan(to_f32(bits, dtype))) ? nan_of(dtype) : bits;
}

OX_DEVICE i64 signed_of(u64 bits, u32 dtype) {
    return dtype == DT_I32 ? static_cast<i64>(static_cast<i32>(bits)) : static_cast<i64>(bits);
}

template <class T>
OX_DEVICE bool compared(u32 fn, T a, T b) {
    switch (fn) {
        case ELEM_LT: return a < b;
        case ELEM_LE: return a <= b;
        case ELEM_GT: return a > b;
        case ELEM_GE: return a >= b;
        case ELEM_EQ: return a == b;
        default: return a != b;
    }
}

OX_DEVICE bool compare(u32 fn, u64 a, u64 b, u32 dtype) {
    if (is_signed(dtype)) return compared(fn, signed_of(a, dtype), signed_of(b, dtype));
    if (is_integer(dtype)) return compared(fn, a, b);
    if (dtype == DT_F64) return compared(fn, as_f64(a), as_f64(b));
    return compared(fn, to_f32(a, dtype), to_f32(b, dtype));
}

OX_DEVICE u64 shifted(u32 fn, u64 a, u64 n, u32 dtype) {
    const u64 mask = mask_of(dtype);
    const u32 bits = 64 - __clzll(static_cast<i64>(mask)), amount = n < bits ? static_cast<u32>(n) : bits - 1;
    if (fn == ELEM_SHR && is_signed(dtype)) return static_cast<u64>(signed_of(a, dtype) >> amount) & mask;
    if (n >= bits) return 0;
    return (fn == ELEM_SHL ? a << amount : a >> amount) & mask;
}

// The smaller or the larger: NaN where one of the two is, -0 below +0.
OX_DEVICE u64 extreme(u32 fn, u64 a, u64 b, u32 dtype) {
    if (!is_integer(dtype)) {
        const u64 first = one_nan(a, dtype), second = one_nan(b, dtype), nan = nan_of(dtype);
        if (first == nan || second == nan) return nan;
        if (compare(ELEM_EQ, a, b, dtype)) return fn == ELEM_MIN ? a | b : a & b;  // zeros: equal ones have equal bits else
    }
    return compare(fn == ELEM_MIN ? ELEM_LT : ELEM_GT, a, b, dtype) ? a : b;
}

OX_DEVICE u64 combine(u32 fn, u64 a, u64 b, u32 dtype) {
    switch (fn) {
        case ELEM_MIN:
        case ELEM_MAX: return extreme(fn, a, b, dtype);
        case ELEM_AND: return a & b;
        case ELEM_OR: return a | b;
        case ELEM_XOR: return a ^ b;
        case ELEM_SHL:
        case ELEM_SHR: return shifted(fn, a, b, dtype);
        default: break;
    }
    if (fn >= ELEM_LT) return compare(fn, a, b, dtype) ? ~0ull : 0;
    if (is_integer(dtype)) return (fn == ELEM_ADD ? a + b : fn == ELEM_SUB ? a - b : a * b) & mask_of(dtype);
    if (dtype == DT_F64) return from_f64(combine_floats(fn, as_f64(a), as_f64(b)), dtype);
    return from_f32(combine_floats(fn, to_f32(a, dtype), to_f32(b, dtype)), dtype);
}

OX_DEVICE f32 function_f32(u32 fn, f32 x) {
    switch (fn) {
        case ELEM_SQRT: return __fsqrt_rn(x);
        case ELEM_RSQRT: return rsqrtf(x);
        case ELEM_EXP: return expf(x);
        case ELEM_LOG: return logf(x);
        case ELEM_TANH: return tanhf(x);
        case ELEM_SIGMOID: return ::fn::sigmoid(x);
        default: return ::fn::gelu(x);
    }
}

OX_DEVICE u64 function(u32 fn, u64 bits, u32 dtype) {
    if (fn == ELEM_NOT) return ~bits & mask_of(dtype);
    if (fn == ELEM_ABS && is_integer(dtype)) return signed_of(bits, dtype) < 0 ? negate(bits, dtype) : bits;
    if (fn == ELEM_ABS) return one_nan(bits & mask_of(dtype) >> 1, dtype);
    if (dtype == DT_F64) return from_f64(__dsqrt_rn(as_f64(bits)), dtype);
    return from_f32(function_f32(fn, to_f32(bits, dtype)), dtype);
}

// An index below 1 << 24 as a plain store of the number: integers wrap around, and floats that are too large do not saturate.
OX_DEVICE u64 from_index(u32 index, u32 dtype) {
    if (dtype == DT_E4M3 && index > 464) return nan_of(dtype);
    if (dtype == DT_E5M2 && index >= 61440) return 0x7c;
    return from_integer(index, DT_U32, dtype);
}

}  // namespace elem

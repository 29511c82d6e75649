// COMPUTE: an element expression over tiles, as fast as memory gives them. An accumulator machine in the registers of each lane: vectors of
// 8 numbers (A, B and three more), so that what an instruction costs to read and to branch to is shared by 8 elements; and PLACE, which
// computes the scalars of a loop's iteration side by side.
//
// A unit is four elements of a row: 4 to 16 bytes that no swizzle tears apart. Lanes that follow each other take units that do, so all
// accesses are free of bank conflicts.
#pragma once
#include "coordinates.cuh"
#include "functions.cuh"
#include "tiles.cuh"

constexpr u32 UNIT = 4;
constexpr u32 MAP_INPUTS = 4;  // at most
constexpr u32 WIDTH = COMPUTE_UNITS * UNIT;
using Numbers = u32[WIDTH];

#define OX_EACH for (u32 i = 0; i < WIDTH; ++i)

// The units that a lane works on: row << 16 | place in the row. One that is not `there` is neither read nor written.
struct UnitsOf {
    u32 at[COMPUTE_UNITS];
    u32 there;

    // Hidden from the compiler, which would keep all that follows from it in registers, over all instructions.
    __device__ __forceinline__ u32 place(u32 j) const {
        u32 found = at[j];
        asm volatile("" : "+r"(found));
        return found;
    }

    __device__ __forceinline__ bool has(u32 j) const { return there >> j & 1; }
    __device__ __forceinline__ u32 row(u32 j) const { return place(j) >> 16; }

    __device__ __forceinline__ u32 address(u32 j, u32 tile, u32 pitch, u32 bytes, u32 mask) const {
        const u32 found = place(j), a = tile + (found >> 16) * pitch + (found & 0xffff) * bytes;
        return a ^ (a >> 7 & mask) << 4;
    }
};

// ---- elements as they lie in memory
OX_DEVICE f32 f32_of_f16(u32 bits) {
    f32 x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(static_cast<u16>(bits)));
    return x;
}

OX_DEVICE u32 f16x2_of_fp8x2(u32 pair, bool e4m3) {
    u32 halves;
    if (e4m3) asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(static_cast<u16>(pair)));
    else asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(halves) : "h"(static_cast<u16>(pair)));
    return halves;
}

OX_DEVICE u32 f16x2(f32 low, f32 high) {
    u32 pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

OX_DEVICE u32 bf16x2(f32 low, f32 high) {
    u32 pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

OX_DEVICE u32 fp8x2(f32 low, f32 high, bool e4m3) {
    u16 pair;
    if (e4m3) asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
    else asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
    return pair;
}

// Two elements of 16 bits each.
OX_DEVICE void unpack(u32 pair, u32 form, u32& a, u32& b) {
    if (form == FORM_BF16) {
        a = pair << 16, b = pair & 0xffff0000;
    } else if (form == FORM_F16) {
        a = __float_as_uint(f32_of_f16(pair)), b = __float_as_uint(f32_of_f16(pair >> 16));
    } else {
        a = pair & 0xffff, b = pair >> 16;
    }
}

OX_DEVICE u32 pack(u32 form, u32 a, u32 b) {
    if (form == FORM_BF16) return bf16x2(__uint_as_float(a), __uint_as_float(b));
    if (form == FORM_F16) return f16x2(__uint_as_float(a), __uint_as_float(b));
    return __byte_perm(a, b, 0x5410);
}

// A constant's bits as what vectors hold.
OX_DEVICE u32 number_of(u32 bits, u32 form) {
    u32 a, b;
    switch (form) {
        case FORM_F16:
        case FORM_BF16: unpack(bits & 0xffff, form, a, b); return a;
        case FORM_E4M3:
        case FORM_E5M2: unpack(f16x2_of_fp8x2(bits & 0xff, form == FORM_E4M3), FORM_F16, a, b); return a;
        default: return bits;
    }
}

OX_DEVICE void load(Numbers& v, const UnitsOf& units, u32 tile, u32 form, u32 mask, u32 pitch) {
    switch (form) {
        case FORM_BITS32:
#pragma unroll
            for (u32 j = 0; j < COMPUTE_UNITS; ++j) {
                uint4 q = make_uint4(0, 0, 0, 0);
                if (units.has(j)) q = ptx::ld_shared_v4(units.address(j, tile, pitch, 16, mask));
                v[4 * j] = q.x, v[4 * j + 1] = q.y, v[4 * j + 2] = q.z, v[4 * j + 3] = q.w;
            }
            break;
        case FORM_BITS16:
        case FORM_F16:
        case FORM_BF16: {
            uint2 q[COMPUTE_UNITS];
#pragma unroll
            for (u32 j = 0; j < COMPUTE_UNITS; ++j) {
                q[j] = make_uint2(0, 0);
                if (units.has(j)) q[j] = ptx::ld_shared_v2(units.address(j, tile, pitch, 8, mask));
            }
            if (form == FORM_BF16) {
#pragma unroll
                for (u32 j = 0; j < COMPUTE_UNITS; ++j) {
                    unpack(q[j].x, FORM_BF16, v[4 * j], v[4 * j + 1]);
                    unpack(q[j].y, FORM_BF16, v[4 * j + 2], v[4 * j + 3]);
                }
            } else if (form == FORM_F16) {
#pragma unroll
                for (u32 j = 0; j < COMPUTE_UNITS; ++j) {
                    unpack(q[j].x, FORM_F16, v[4 * j], v[4 * j + 1]);
                    unpack(q[j].y, FORM_F16, v[4 * j + 2], v[4 * j + 3]);
                }
            } else {
#pragma unroll
                for (u32 j = 0; j < COMPUTE_UNITS; ++j) {
                    unpack(q[j].x, FORM_BITS16, v[4 * j], v[4 * j + 1]);
                    unpack(q[j].y, FORM_BITS16, v[4 * j + 2], v[4 * j + 3]);
                }
            }
            break;
        }
        default: {
            u32 q[COMPUTE_UNITS];
#pragma unroll
            for (u32 j = 0; j < COMPUTE_UNITS; ++j) {
                q[j] = 0;
                if (units.has(j)) q[j] = ptx::ld_shared_u32(units.address(j, tile, pitch, 4, mask));
            }
            if (form == FORM_BITS8) {
#pragma unroll
                OX_EACH v[i] = q[i / UNIT] >> 8 * (i % UNIT) & 0xff;
            } else {
                const bool e4m3 = form == FORM_E4M3;
#pragma unroll
                for (u32 j = 0; j < COMPUTE_UNITS; ++j) {
                    unpack(f16x2_of_fp8x2(q[j], e4m3), FORM_F16, v[4 * j], v[4 * j + 1]);
                    unpack(f16x2_of_fp8x2(q[j] >> 16, e4m3), FORM_F16, v[4 * j + 2], v[4 * j + 3]);
                }
            }
        }
    }
}

// Of a vector: the elements of the units' columns lie as those of a tile's first row; of its rows there is one for each unit.
OX_DEVICE void load_columns(Numbers& v, UnitsOf units, u32 tile, u32 form, u32 mask) {
#pragma unroll
    for (u32 j = 0; j < COMPUTE_UNITS; ++j) units.at[j] &= 0xffff;
    load(v, units, tile, form, mask, 0);
}

OX_DEVICE void load_rows(Numbers& v, const UnitsOf& units, u32 tile, u32 form, u32 mask) {
    const u32 bytes = form == FORM_BITS32 ? 4 : form == FORM_BITS8 || form >= FORM_E4M3 ? 1 : 2;
#pragma unroll
    for (u32 j = 0; j < COMPUTE_UNITS; ++j) {
        const u32 a = tile + units.row(j) * bytes, address = a ^ (a >> 7 & mask) << 4;
        u32 bits = 0;
        if (units.has(j)) bits = bytes == 4 ? ptx::ld_shared_u32(address) : bytes == 2 ? ptx::ld_shared_u16(address) : ptx::ld_shared_u8(address);
        const u32 number = number_of(bits, form);
#pragma unroll
        for (u32 k = 0; k < UNIT; ++k) v[UNIT * j + k] = number;
    }
}

OX_DEVICE void store(const Numbers& v, const UnitsOf& units, u32 tile, u32 form, u32 mask, u32 pitch) {
    const u32 bytes = form == FORM_BITS32 ? 16 : form == FORM_BITS8 || form >= FORM_E4M3 ? 4 : 8;
#pragma unroll
    for (u32 j = 0; j < COMPUTE_UNITS; ++j) {
        const u32 address = units.address(j, tile, pitch, bytes, mask);
        const bool there = units.has(j);
        const u32 a = v[4 * j], b = v[4 * j + 1], c = v[4 * j + 2], d = v[4 * j + 3];
        if (bytes == 16) {
            if (there) ptx::st_shared_v4(address, make_uint4(a, b, c, d));
        } else if (bytes == 8) {
            uint2 q;
            if (form == FORM_BF16) q = make_uint2(pack(FORM_BF16, a, b), pack(FORM_BF16, c, d));
            else if (form == FORM_F16) q = make_uint2(pack(FORM_F16, a, b), pack(FORM_F16, c, d));
            else q = make_uint2(pack(FORM_BITS16, a, b), pack(FORM_BITS16, c, d));
            if (there) ptx::st_shared_v2(address, q);
        } else {
            u32 q;
            if (form == FORM_BITS8) {
                q = __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
            } else {
                const bool e4m3 = form == FORM_E4M3;
                q = fp8x2(__uint_as_float(a), __uint_as_float(b), e4m3) | fp8x2(__uint_as_float(c), __uint_as_float(d), e4m3) << 16;
            }
            if (there) ptx::st_shared_u32(address, q);
        }
    }
}

// To the nearest number of a narrower type, still as f32.
OX_DEVICE void round_to(Numbers& v, u32 form) {
    if (form == FORM_BF16) {
#pragma unroll
        for (u32 i = 0; i < WIDTH; i += 2) unpack(pack(FORM_BF16, v[i], v[i + 1]), FORM_BF16, v[i], v[i + 1]);
    } else if (form == FORM_F16) {
#pragma unroll
        for (u32 i = 0; i < WIDTH; i += 2) unpack(pack(FORM_F16, v[i], v[i + 1]), FORM_F16, v[i], v[i + 1]);
    } else {
        const bool e4m3 = form == FORM_E4M3;
#pragma unroll
        for (u32 i = 0; i < WIDTH; i += 2) {
            unpack(f16x2_of_fp8x2(fp8x2(__uint_as_float(v[i]), __uint_as_float(v[i + 1]), e4m3), e4m3), FORM_F16, v[i], v[i + 1]);
        }
    }
}

// ---- operations
OX_DEVICE u32 all_ones(bool holds) {
    return holds ? 0xffffffffu : 0;
}

// PTX holds amounts to 32: nothing is left but a sign.
OX_DEVICE u32 shl(u32 a, u32 n) {
    u32 x;
    asm("shl.b32 %0, %1, %2;" : "=r"(x) : "r"(a), "r"(n));
    return x;
}

OX_DEVICE u32 shr_u32(u32 a, u32 n) {
    u32 x;
    asm("shr.u32 %0, %1, %2;" : "=r"(x) : "r"(a), "r"(n));
    return x;
}

OX_DEVICE u32 shr_s32(u32 a, u32 n) {
    u32 x;
    asm("shr.s32 %0, %1, %2;" : "=r"(x) : "r"(a), "r"(n));
    return x;
}

OX_DEVICE u32 odd_of_u32(u32 a) {
    const f32 cut = __uint2float_rz(a);
    return __float_as_uint(cut) | (__float2uint_rz(cut) != a ? 1u : 0u);
}

// A copy that stays where it is written. Else the compiler makes those of all cases of the switch before it jumps, and then no vector can be
// changed in place: two dozen moves with each instruction.
OX_DEVICE u32 copied(u32 from) {
    u32 to;
    asm volatile("mov.b32 %0, %1;" : "=r"(to) : "r"(from));
    return to;
}

template <class L>
struct Machine {
    const L& launch;
    UnitsOf units;
    Parked tiles;  // lane i: address of input i; lane 4: of the output
    Numbers a, b, t0, t1, t2;

    __device__ __forceinline__ void put(u32 index) {
        if (index == 0) {
#pragma unroll
            OX_EACH t0[i] = copied(a[i]);
        } else if (index == 1) {
#pragma unroll
            OX_EACH t1[i] = copied(a[i]);
        } else {
#pragma unroll
            OX_EACH t2[i] = copied(a[i]);
        }
    }

    __device__ __forceinline__ void get(Numbers& v, u32 index) const {
        if (index == 0) {
#pragma unroll
            OX_EACH v[i] = copied(t0[i]);
        } else if (index == 1) {
#pragma unroll
            OX_EACH v[i] = copied(t1[i]);
        } else {
#pragma unroll
            OX_EACH v[i] = copied(t2[i]);
        }
    }

    // A where the vector's bits are set, else B; or the other way round.
    __device__ __forceinline__ void select(u32 index, bool reversed) {
        const u32 turn = reversed ? 0xffffffffu : 0;
        if (index == 0) {
#pragma unroll
            OX_EACH a[i] = b[i] ^ ((a[i] ^ b[i]) & (t0[i] ^ turn));
        } else if (index == 1) {
#pragma unroll
            OX_EACH a[i] = b[i] ^ ((a[i] ^ b[i]) & (t1[i] ^ turn));
        } else {
#pragma unroll
            OX_EACH a[i] = b[i] ^ ((a[i] ^ b[i]) & (t2[i] ^ turn));
        }
    }

// With B, and with the constant.
#define OX_FAST(FN, EXPRESSION)                     \
    case COMPUTE_##FN:                              \
        _Pragma("unroll") OX_EACH {                 \
            const u32 x = a[i], y = b[i];           \
            a[i] = EXPRESSION;                      \
        }                                           \
        break;                                      \
        OX_CONSTANT(FN##_C, EXPRESSION)
#define OX_CONSTANT(FN, EXPRESSION)                 \
    case COMPUTE_##FN:                              \
        _Pragma("unroll") OX_EACH {                 \
            const u32 x = a[i], y = word;           \
            a[i] = EXPRESSION;                      \
        }                                           \
        break;
#define OX_SLOW(FN, EXPRESSION)                     \
    case COMPUTE_##FN:                              \
        _Pragma("unroll") OX_EACH {                 \
            const u32 x = a[i], y = b[i];           \
            a[i] = EXPRESSION;                      \
        }                                           \
        break;
#define OX_ALONE(FN, EXPRESSION)                    \
    case COMPUTE_##FN:                              \
        _Pragma("unroll") OX_EACH {                 \
            const u32 x = a[i];                     \
            a[i] = EXPRESSION;                      \
        }                                           \
        break;
#define OX_F(X) __uint_as_float(X)
#define OX_B(X) __float_as_uint(X)
#define OX_S(X) static_cast<i32>(X)

    // One instruction. `word`: the constant, where it has one.
    __device__ __forceinline__ void step(u32 fn, u32 form, u32 index, u32 mask, u32 word) {
        switch (fn) {
            case COMPUTE_LOAD_A: load(a, units, tiles.take(index), form, mask, word); break;
            case COMPUTE_LOAD_B: load(b, units, tiles.take(index), form, mask, word); break;
            case COMPUTE_ROW_A: load_rows(a, units, tiles.take(index), form, mask); break;
            case COMPUTE_ROW_B: load_rows(b, units, tiles.take(index), form, mask); break;
            case COMPUTE_COLUMN_A: load_columns(a, units, tiles.take(index), form, mask); break;
            case COMPUTE_COLUMN_B: load_columns(b, units, tiles.take(index), form, mask); break;
            case COMPUTE_CONST_A:
#pragma unroll
                OX_EACH a[i] = copied(word);
                break;
            case COMPUTE_CONST_B:
#pragma unroll
                OX_EACH b[i] = copied(word);
                break;
            case COMPUTE_SCALAR_B: {
                const u32 number = number_of(static_cast<u32>(launch.argument(word)), form);
#pragma unroll
                OX_EACH b[i] = copied(number);
                break;
            }
            case COMPUTE_PUT: put(index); break;
            case COMPUTE_GET: get(b, index); break;
            case COMPUTE_TAKE: get(a, index); break;
            case COMPUTE_STORE: store(a, units, tiles.take(MAP_INPUTS), form, mask, word); break;
            OX_FAST(F_ADD, OX_B(__fadd_rn(OX_F(x), OX_F(y))))
            OX_FAST(F_SUB, OX_B(__fsub_rn(OX_F(x), OX_F(y))))
            OX_FAST(F_RSUB, OX_B(__fsub_rn(OX_F(y), OX_F(x))))
            OX_FAST(F_MUL, OX_B(__fmul_rn(OX_F(x), OX_F(y))))
            OX_SLOW(F_DIV, OX_B(__fdiv_rn(OX_F(x), OX_F(y))))
            OX_SLOW(F_RDIV, OX_B(__fdiv_rn(OX_F(y), OX_F(x))))
            OX_FAST(F_MIN, OX_B(fn::minimum(OX_F(x), OX_F(y))))
            OX_FAST(F_MAX, OX_B(fn::maximum(OX_F(x), OX_F(y))))
            OX_SLOW(F_LT, all_ones(OX_F(x) < OX_F(y)))
            OX_SLOW(F_LE, all_ones(OX_F(x) <= OX_F(y)))
            OX_SLOW(F_GT, all_ones(OX_F(x) > OX_F(y)))
            OX_SLOW(F_GE, all_ones(OX_F(x) >= OX_F(y)))
            OX_SLOW(F_EQ, all_ones(OX_F(x) == OX_F(y)))
            OX_SLOW(F_NE, all_ones(OX_F(x) != OX_F(y)))
            OX_FAST(I_ADD, x + y)
            OX_FAST(I_SUB, x - y)
            OX_FAST(I_RSUB, y - x)
            OX_FAST(I_MUL, x * y)
            OX_FAST(I_AND, x & y)
            OX_FAST(I_OR, x | y)
            OX_FAST(I_XOR, x ^ y)
            OX_SLOW(I_SHL, shl(x, y))
            OX_SLOW(I_RSHL, shl(y, x))
            OX_SLOW(U_SHR, shr_u32(x, y))
            OX_SLOW(U_RSHR, shr_u32(y, x))
            OX_SLOW(S_SHR, shr_s32(x, y))
            OX_SLOW(S_RSHR, shr_s32(y, x))
            OX_SLOW(U_MIN, min(x, y))
            OX_SLOW(U_MAX, max(x, y))
            OX_SLOW(S_MIN, static_cast<u32>(min(OX_S(x), OX_S(y))))
            OX_SLOW(S_MAX, static_cast<u32>(max(OX_S(x), OX_S(y))))
            OX_SLOW(I_EQ, all_ones(x == y))
            OX_SLOW(I_NE, all_ones(x != y))
            OX_SLOW(U_LT, all_ones(x < y))
            OX_SLOW(U_LE, all_ones(x <= y))
            OX_SLOW(U_GT, all_ones(x > y))
            OX_SLOW(U_GE, all_ones(x >= y))
            OX_SLOW(S_LT, all_ones(OX_S(x) < OX_S(y)))
            OX_SLOW(S_LE, all_ones(OX_S(x) <= OX_S(y)))
            OX_SLOW(S_GT, all_ones(OX_S(x) > OX_S(y)))
            OX_SLOW(S_GE, all_ones(OX_S(x) >= OX_S(y)))
            case COMPUTE_SELECT: select(index, false); break;
            case COMPUTE_RSELECT: select(index, true); break;
            OX_CONSTANT(F_ABS_C, OX_B(__fadd_rn(fabsf(OX_F(x)), OX_F(y))))
            OX_ALONE(F_SQRT, OX_B(__fsqrt_rn(OX_F(x))))
            OX_ALONE(F_RSQRT, OX_B(rsqrtf(OX_F(x))))
            OX_ALONE(F_EXP, OX_B(expf(OX_F(x))))
            OX_ALONE(F_LOG, OX_B(logf(OX_F(x))))
            OX_ALONE(F_TANH, OX_B(tanhf(OX_F(x))))
            OX_ALONE(F_SIGMOID, OX_B(fn::sigmoid(OX_F(x))))
            OX_ALONE(F_GELU, OX_B(fn::gelu(OX_F(x))))
            OX_ALONE(S_ABS, static_cast<u32>(abs(OX_S(x))))
            OX_ALONE(I_NOT, ~x)
            case COMPUTE_ROUND: round_to(a, form); break;
            OX_ALONE(F_TO_U, __float2uint_rz(OX_F(x)))
            OX_ALONE(F_TO_S, static_cast<u32>(__float2int_rz(OX_F(x))))
            OX_ALONE(U_TO_F, OX_B(__uint2float_rn(x)))
            OX_ALONE(S_TO_F, OX_B(__int2float_rn(OX_S(x))))
            OX_ALONE(U_TO_ODD, odd_of_u32(x))
            OX_ALONE(S_TO_ODD, odd_of_u32(static_cast<u32>(abs(OX_S(x)))) | (x & 0x80000000u))
            default: asm volatile("// no other"); break;
        }
    }
#undef OX_FAST
#undef OX_CONSTANT
#undef OX_SLOW
#undef OX_ALONE
#undef OX_F
#undef OX_B
#undef OX_S
};
#undef OX_EACH

// Records behind a COMPUTE: units, offsets, then the instructions.
template <class R>
OX_DEVICE u32 behind_compute(u32 pc, const R& r) {
    return pc + 3 + (static_cast<u32>(r.imm(1)) + 3) / 4;
}

template <class L, class W, class R>
OX_DEVICE void compute(const L& launch, const W& w, const R& r) {
    const Share share(launch, w, r);
    const u32 pc = w.pc + 1;
    const uint4 shape = launch.quad(pc, 0);  // units, per_row, down, right
    const uint2 by = launch.instr(pc, 2);    // magic, shift
    Machine<L> machine{launch};
    machine.tiles.put(lane_number(), MAP_INPUTS, w.address(r, 0));
#pragma unroll 1
    for (u32 i = 0; i < r.aux(); ++i) {
        machine.tiles.put(lane_number(), i, shared_base() + launch.word(pc + 1, i) + static_cast<u32>(w.or_zero(r.reg(1 + i))));
    }
#pragma unroll 1
    for (u32 rank = share.first; __any_sync(FULL_WARP, rank < share.high()); rank += share.lanes()) {
        u32 unit = rank < share.high() ? rank : shape.x;
        u32 row = by.x == 0 ? unit : quotient(unit, by.x, by.y), column = unit - row * shape.y;
#pragma unroll 1
        while (__any_sync(FULL_WARP, unit < shape.x)) {
            machine.units.there = 0;
#pragma unroll
            for (u32 j = 0; j < COMPUTE_UNITS; ++j) {
                const bool there = unit < shape.x;
                machine.units.at[j] = there ? row << 16 | column : 0;
                machine.units.there |= there ? 1u << j : 0;
                unit += share.total, row += shape.z, column += shape.w;
                if (column >= shape.y) column -= shape.y, ++row;
            }
            u64 at = launch.header().code + RECORD_BYTES * (pc + 2);  // the code of this family lies in memory
            uint2 in = __ldg(reinterpret_cast<const uint2*>(at)), now;
#pragma unroll 1
            do {
                now = in;
                at += sizeof(uint2);
                const uint2 following = __ldg(reinterpret_cast<const uint2*>(at));  // on its way while this one runs
                machine.step(now.x & 0xff, now.x >> 8 & 0xff, now.x >> 16 & 0xff, now.x >> 24, now.y);
                in = make_uint2(copied(following.x), copied(following.y));
            } while ((now.x & 0xff) != COMPUTE_STORE);
        }
    }
    __syncwarp();
}

// Each lane of the mask computes its own register, from up to three others: as long as one EVAL instruction takes.
template <class L, class R>
OX_DEVICE void place(const L& launch, Warp& w, const R& r) {
    const u32 mask = static_cast<u32>(r.imm(1));
    const bool mine = mask >> lane_number() & 1;
    const u32 part = mine ? __popc(mask & (1u << lane_number()) - 1) : 0;
    const uint4 moves = launch.quad(w.pc + 1, 3 * part), divides = launch.quad(w.pc + 1, 3 * part + 1), scales = launch.quad(w.pc + 1, 3 * part + 2);
    const u32 x = moves.w + moves.x * w.gather(divides.z >> 16 & 0xff) + moves.y * w.gather(divides.z >> 24) + moves.z * w.gather(scales.z & 0xff);
    const i32 value = placed(x, divides.x, divides.z & 0xff, divides.y, divides.z >> 8 & 0xff, divides.w, scales.x, scales.y);
    if (mine) w.low = static_cast<u32>(value);
}

template <class R>
OX_DEVICE u32 behind_place(u32 pc, const R& r) {
    return pc + 1 + (3 * static_cast<u32>(__popc(static_cast<u32>(r.imm(1)))) + 1) / 2;
}

// COMPUTE: an element expression over tiles, as fast as memory gives them. An accumulator machine in the registers of each lane: vectors of
// 16 numbers (A, B and one more; two others in local memory, for the few expressions that need them), so that what an instruction costs to
// read and to branch to is shared by 16 elements; and PLACE, which computes the scalars of a loop's iteration side by side.
//
// A unit is four elements of a row: 4 to 16 bytes that no swizzle tears apart. Lanes that follow each other take units that do, so all
// accesses are free of bank conflicts. A lane has four units. Where they are even (abi.py: UNITS) one address gives those of all.
#pragma once
#include "coordinates.cuh"
#include "functions.cuh"
#include "tiles.cuh"

constexpr u32 UNIT = 4;
constexpr u32 MAP_INPUTS = 4;  // at most
constexpr u32 WIDTH = COMPUTE_UNITS * UNIT;
constexpr u32 AT_ONCE = 2;  // numbers of a vector, for a function that needs many registers
using Numbers = u32[WIDTH];

#define OX_EACH for (u32 i = 0; i < WIDTH; ++i)

// The units that a lane works on: row << 16 | place in the row. One that is not `there` is neither read nor written.
struct UnitsOf {
    u32 at[COMPUTE_UNITS];
    u32 there;

    __device__ __forceinline__ u32 place(u32 j) const { return hidden(at[j]); }
    __device__ __forceinline__ bool has(u32 j) const { return hidden(there) >> j & 1; }
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

// ---- the same for EVEN units, of the types that are most common
struct Even {
    u32 at, step;

    __device__ __forceinline__ Even(const UnitsOf& units, u32 tile, u32 bytes, u32 mask, u32 word) {
        const u32 found = units.place(0), a = tile + (found >> 16) * (word & 0xffff) + (found & 0xffff) * bytes;
        at = a ^ (a >> 7 & mask) << 4;
        step = word >> 16 << 4;
    }
};

OX_DEVICE void load_even_32(Numbers& v, const UnitsOf& units, u32 tile, u32 mask, u32 word) {
    const Even even(units, tile, 16, mask, word);
#pragma unroll
    for (u32 j = 0; j < COMPUTE_UNITS; ++j) {
        const uint4 q = ptx::ld_shared_v4(even.at + j * even.step);
        v[4 * j] = q.x, v[4 * j + 1] = q.y, v[4 * j + 2] = q.z, v[4 * j + 3] = q.w;
    }
}

template <u32 FORM>
OX_DEVICE void load_even_16(Numbers& v, const UnitsOf& units, u32 tile, u32 mask, u32 word) {
    const Even even(units, tile, 8, mask, word);
    uint2 q[COMPUTE_UNITS];
#pragma unroll
    for (u32 j = 0; j < COMPUTE_UNITS; ++j) q[j] = ptx::ld_shared_v2(even.at + j * even.step);
#pragma unroll
    for (u32 j = 0; j < COMPUTE_UNITS; ++j) {
        unpack(q[j].x, FORM, v[4 * j], v[4 * j + 1]);
        unpack(q[j].y, FORM, v[4 * j + 2], v[4 * j + 3]);
    }
}

OX_DEVICE void store_even_32(const Numbers& v, const UnitsOf& units, u32 tile, u32 mask, u32 word) {
    const Even even(units, tile, 16, mask, word);
#pragma unroll
    for (u32 j = 0; j < COMPUTE_UNITS; ++j) {
        ptx::st_shared_v4(even.at + j * even.step, make_uint4(v[4 * j], v[4 * j + 1], v[4 * j + 2], v[4 * j + 3]));
    }
}

template <u32 FORM>
OX_DEVICE void store_even_16(const Numbers& v, const UnitsOf& units, u32 tile, u32 mask, u32 word) {
    const Even even(units, tile, 8, mask, word);
#pragma unroll
    for (u32 j = 0; j < COMPUTE_UNITS; ++j) {
        ptx::st_shared_v2(even.at + j * even.step, make_uint2(pack(FORM, v[4 * j], v[4 * j + 1]), pack(FORM, v[4 * j + 2], v[4 * j + 3])));
    }
}

// Of a vector: the elements of the units' columns lie as those of a tile's first row; of its rows there is one for each unit.
OX_DEVICE void load_columns(Numbers& v, UnitsOf units, u32 tile, u32 form, u32 mask) {
#pragma unroll
    for (u32 j = 0; j < COMPUTE_UNITS; ++j) units.at[j] = units.place(j) & 0xffff;
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
    Parked tiles;         // lane i: address of input i; lane 4: of the output
    Parked heads, words;  // lane i: instruction i of those that are at hand
    Numbers a, b, t0;
    volatile u32 t1[WIDTH], t2[WIDTH];  // volatile: in local memory

    __device__ __forceinline__ void put(u32 index) {
        if (index == 0) {
#pragma unroll
            OX_EACH t0[i] = copied(a[i]);
        } else if (index == 1) {
#pragma unroll
            OX_EACH t1[i] = a[i];
        } else {
#pragma unroll
            OX_EACH t2[i] = a[i];
        }
    }

    __device__ __forceinline__ void get(Numbers& v, u32 index) const {
        if (index == 0) {
#pragma unroll
            OX_EACH v[i] = copied(t0[i]);
        } else if (index == 1) {
#pragma unroll
            OX_EACH v[i] = t1[i];
        } else {
#pragma unroll
            OX_EACH v[i] = t2[i];
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

    static __device__ __forceinline__ void multiply(Numbers& v, u32 by) {
#pragma unroll
        OX_EACH v[i] = __float_as_uint(__fmul_rn(__uint_as_float(v[i]), __uint_as_float(by)));
    }

    // What stands in B goes to A.
    __device__ __forceinline__ void moved() {
#pragma unroll
        OX_EACH a[i] = copied(b[i]);
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
    case COMPUTE_##FN: {                            \
        const u32 y = word;                         \
        _Pragma("unroll") OX_EACH {                 \
            const u32 x = a[i];                     \
            a[i] = EXPRESSION;                      \
        }                                           \
        break;                                      \
    }
#define OX_ON_B(FN, EXPRESSION)                     \
    case COMPUTE_##FN: {                            \
        const u32 y = word;                         \
        _Pragma("unroll") OX_EACH {                 \
            const u32 x = b[i];                     \
            b[i] = EXPRESSION;                      \
        }                                           \
        break;                                      \
    }
#define OX_SLOW(FN, EXPRESSION)                     \
    case COMPUTE_##FN:                              \
        _Pragma("unroll") OX_EACH {                 \
            const u32 x = a[i], y = b[i];           \
            a[i] = EXPRESSION;                      \
        }                                           \
        break;
#define OX_EVERY(FN, EXPRESSION)                    \
    case COMPUTE_##FN:                              \
        _Pragma("unroll") OX_EACH {                 \
            const u32 x = a[i];                     \
            a[i] = EXPRESSION;                      \
        }                                           \
        break;
// Long ones: two at a time, which takes few registers and little code. The vectors go round, and are where they were in the end.
#define OX_LONG(FN, EXPRESSION)                                         \
    case COMPUTE_##FN:                                                  \
        _Pragma("unroll 1") for (u32 turn = 0; turn < WIDTH / AT_ONCE; ++turn) { \
            _Pragma("unroll") for (u32 i = 0; i < AT_ONCE; ++i) {       \
                const u32 x = a[i], y = b[i], made = EXPRESSION;        \
                _Pragma("unroll") for (u32 j = i; j + AT_ONCE < WIDTH; j += AT_ONCE) a[j] = a[j + AT_ONCE], b[j] = b[j + AT_ONCE]; \
                a[WIDTH - AT_ONCE + i] = made, b[WIDTH - AT_ONCE + i] = y; \
            }                                                           \
        }                                                               \
        break;
#define OX_ALONE(FN, EXPRESSION)                                        \
    case COMPUTE_##FN:                                                  \
        _Pragma("unroll 1") for (u32 turn = 0; turn < WIDTH / AT_ONCE; ++turn) { \
            _Pragma("unroll") for (u32 i = 0; i < AT_ONCE; ++i) {       \
                const u32 x = a[i], made = EXPRESSION;                  \
                _Pragma("unroll") for (u32 j = i; j + AT_ONCE < WIDTH; j += AT_ONCE) a[j] = a[j + AT_ONCE]; \
                a[WIDTH - AT_ONCE + i] = made;                          \
            }                                                           \
        }                                                               \
        break;
#define OX_F(X) __uint_as_float(X)
#define OX_B(X) __float_as_uint(X)
#define OX_S(X) static_cast<i32>(X)

    // Takes instructions of the COMPUTE at `pc` over into lanes, from number `first` on, with constants in place of arguments. The last lane
    // has `pc`.
    __device__ __forceinline__ void fetch(u32 pc, u32 first) {
        const bool there = lane_number() < COMPUTE_AT_HAND && first + lane_number() < launch.word(pc, 4);
        uint2 mine = make_uint2(0, pc);
        if (there) mine = launch.instr(pc + 3, first + lane_number());
        if (mine.x >> 8 & COMPUTE_ARGUMENT) mine.y = static_cast<u32>(launch.argument(mine.y));
        heads.lanes = mine.x, words.lanes = mine.y;
    }

    // Runs the instructions of a COMPUTE whose first ones are at hand, all of them or those from number `first` on.
    __device__ __forceinline__ void run(u32 first = 0) {
        if (more_than_at_hand(first)) fetch(words.take(COMPUTE_AT_HAND), 0);
    }

  private:
    static constexpr u32 OTHERS = 32;  // as the number of an instruction: of others than the first ones

    // As `run`; true when others are at hand in the end. What of an instruction is not needed to jump is looked at behind the jump.
    __device__ __forceinline__ bool more_than_at_hand(u32 first) {
        u32 i = first, head = heads.take(i), word = words.take(i);  // lanes count from 0 again every 32
#pragma unroll
        for (u32 j = 0; j < WIDTH; ++j) a[j] = b[j] = t0[j] = 0;  // so that their registers are free between two runs
#pragma unroll 1
        for (;;) {
            ++i;
            u32 next = heads.take(i), next_word = words.take(i);  // on its way while this one runs
            switch (head & 0xff) {
                case COMPUTE_LOAD_A_32: load_even_32(a, units, input_of(head), mask_of(head), word); break;
                case COMPUTE_LOAD_B_32: load_even_32(b, units, input_of(head), mask_of(head), word); break;
                case COMPUTE_LOAD_A_32_MUL: {  // the product is the next instruction
                    load_even_32(a, units, input_of(head), mask_of(head), word);
                    multiply(a, next_word);
                    ++i;
                    next = heads.take(i), next_word = words.take(i);
                    break;
                }
                case COMPUTE_LOAD_B_32_MUL: {
                    load_even_32(b, units, input_of(head), mask_of(head), word);
                    multiply(b, next_word);
                    ++i;
                    next = heads.take(i), next_word = words.take(i);
                    break;
                }
                case COMPUTE_LOAD_A_BF16: load_even_16<FORM_BF16>(a, units, input_of(head), mask_of(head), word); break;
                case COMPUTE_LOAD_B_BF16: load_even_16<FORM_BF16>(b, units, input_of(head), mask_of(head), word); break;
                case COMPUTE_LOAD_A_F16: load_even_16<FORM_F16>(a, units, input_of(head), mask_of(head), word); break;
                case COMPUTE_LOAD_B_F16: load_even_16<FORM_F16>(b, units, input_of(head), mask_of(head), word); break;
                case COMPUTE_STORE_32: store_even_32(a, units, tiles.take(MAP_INPUTS), mask_of(head), word); return i > OTHERS;
                case COMPUTE_STORE_BF16: store_even_16<FORM_BF16>(a, units, tiles.take(MAP_INPUTS), mask_of(head), word); return i > OTHERS;
                case COMPUTE_STORE_F16: store_even_16<FORM_F16>(a, units, tiles.take(MAP_INPUTS), mask_of(head), word); return i > OTHERS;
                case COMPUTE_PUT: put(index_of(head)); break;
                case COMPUTE_GET: get(b, index_of(head)); break;
                case COMPUTE_TAKE: get(a, index_of(head)); break;
                OX_FAST(F_ADD, OX_B(__fadd_rn(OX_F(x), OX_F(y))))
                OX_FAST(F_SUB, OX_B(__fsub_rn(OX_F(x), OX_F(y))))
                OX_FAST(F_RSUB, OX_B(__fsub_rn(OX_F(y), OX_F(x))))
                OX_FAST(F_MUL, OX_B(__fmul_rn(OX_F(x), OX_F(y))))
                OX_FAST(F_MIN, OX_B(fn::minimum(OX_F(x), OX_F(y))))
                OX_FAST(F_MAX, OX_B(fn::maximum(OX_F(x), OX_F(y))))
                OX_FAST(I_ADD, x + y)
                OX_FAST(I_SUB, x - y)
                OX_FAST(I_RSUB, y - x)
                OX_FAST(I_MUL, x * y)
                OX_FAST(I_AND, x & y)
                OX_FAST(I_OR, x | y)
                OX_FAST(I_XOR, x ^ y)
                OX_ON_B(F_ADD_CB, OX_B(__fadd_rn(OX_F(x), OX_F(y))))
                OX_ON_B(F_SUB_CB, OX_B(__fsub_rn(OX_F(x), OX_F(y))))
                OX_ON_B(F_RSUB_CB, OX_B(__fsub_rn(OX_F(y), OX_F(x))))
                OX_ON_B(F_MUL_CB, OX_B(__fmul_rn(OX_F(x), OX_F(y))))
                OX_ON_B(F_MIN_CB, OX_B(fn::minimum(OX_F(x), OX_F(y))))
                OX_ON_B(F_MAX_CB, OX_B(fn::maximum(OX_F(x), OX_F(y))))
                case COMPUTE_LOAD_A:
                    load(b, units, input_of(head), form_of(head), mask_of(head), word);
                    moved();
                    break;
                case COMPUTE_LOAD_B: load(b, units, input_of(head), form_of(head), mask_of(head), word); break;
                case COMPUTE_ROW_A:
                    load_rows(b, units, input_of(head), form_of(head), mask_of(head));
                    moved();
                    break;
                case COMPUTE_ROW_B: load_rows(b, units, input_of(head), form_of(head), mask_of(head)); break;
                case COMPUTE_COLUMN_A:
                    load_columns(b, units, input_of(head), form_of(head), mask_of(head));
                    moved();
                    break;
                case COMPUTE_COLUMN_B: load_columns(b, units, input_of(head), form_of(head), mask_of(head)); break;
                case COMPUTE_CONST_A:
#pragma unroll
                    OX_EACH a[i] = copied(word);
                    break;
                case COMPUTE_CONST_B:
#pragma unroll
                    OX_EACH b[i] = copied(word);
                    break;
                case COMPUTE_SCALAR_B: {
                    const u32 number = number_of(static_cast<u32>(launch.argument(word)), form_of(head));
#pragma unroll
                    OX_EACH b[i] = copied(number);
                    break;
                }
                case COMPUTE_STORE: store(a, units, tiles.take(MAP_INPUTS), form_of(head), mask_of(head), word); return i > OTHERS;
                OX_LONG(F_DIV, OX_B(__fdiv_rn(OX_F(x), OX_F(y))))
                OX_LONG(F_RDIV, OX_B(__fdiv_rn(OX_F(y), OX_F(x))))
                OX_SLOW(F_LT, all_ones(OX_F(x) < OX_F(y)))
                OX_SLOW(F_LE, all_ones(OX_F(x) <= OX_F(y)))
                OX_SLOW(F_GT, all_ones(OX_F(x) > OX_F(y)))
                OX_SLOW(F_GE, all_ones(OX_F(x) >= OX_F(y)))
                OX_SLOW(F_EQ, all_ones(OX_F(x) == OX_F(y)))
                OX_SLOW(F_NE, all_ones(OX_F(x) != OX_F(y)))
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
                case COMPUTE_SELECT: select(index_of(head), false); break;
                case COMPUTE_RSELECT: select(index_of(head), true); break;
                OX_CONSTANT(F_ABS_C, OX_B(__fadd_rn(fabsf(OX_F(x)), OX_F(y))))
                OX_ALONE(F_SQRT, OX_B(__fsqrt_rn(OX_F(x))))
                OX_ALONE(F_RSQRT, OX_B(rsqrtf(OX_F(x))))
                OX_ALONE(F_EXP, OX_B(expf(OX_F(x))))
                OX_ALONE(F_LOG, OX_B(logf(OX_F(x))))
                OX_ALONE(F_TANH, OX_B(tanhf(OX_F(x))))
                OX_ALONE(F_SIGMOID, OX_B(fn::sigmoid(OX_F(x))))
                OX_ALONE(F_GELU, OX_B(fn::gelu(OX_F(x))))
                OX_EVERY(S_ABS, static_cast<u32>(abs(OX_S(x))))
                OX_EVERY(I_NOT, ~x)
                case COMPUTE_ROUND: round_to(a, form_of(head)); break;
                OX_EVERY(F_TO_U, __float2uint_rz(OX_F(x)))
                OX_EVERY(F_TO_S, static_cast<u32>(__float2int_rz(OX_F(x))))
                OX_EVERY(U_TO_F, OX_B(__uint2float_rn(x)))
                OX_EVERY(S_TO_F, OX_B(__int2float_rn(OX_S(x))))
                OX_ALONE(U_TO_ODD, odd_of_u32(x))
                OX_ALONE(S_TO_ODD, odd_of_u32(static_cast<u32>(abs(OX_S(x)))) | (x & 0x80000000u))
                case COMPUTE_MORE:
                    fetch(words.take(COMPUTE_AT_HAND), word);
                    i = OTHERS, next = heads.take(0), next_word = words.take(0);
                    break;
                default: return i > OTHERS;
            }
            head = next, word = next_word;
        }
    }
#undef OX_FAST
#undef OX_CONSTANT
#undef OX_ON_B
#undef OX_SLOW
#undef OX_EVERY
#undef OX_LONG
#undef OX_ALONE
#undef OX_F
#undef OX_B
#undef OX_S

    static __device__ __forceinline__ u32 form_of(u32 head) { return byte_of<8>(head); }
    static __device__ __forceinline__ u32 index_of(u32 head) { return byte_of<16>(head); }
    static __device__ __forceinline__ u32 mask_of(u32 head) { return byte_of<24>(head); }
    __device__ __forceinline__ u32 input_of(u32 head) const { return tiles.take(index_of(head)); }

    // Taken out where it is needed: the compiler would do so for all cases before it jumps.
    template <u32 AT>
    static __device__ __forceinline__ u32 byte_of(u32 head) {
        u32 found;
        asm volatile("bfe.u32 %0, %1, %2, 8;" : "=r"(found) : "r"(head), "n"(AT));
        return found;
    }
};
#undef OX_EACH

// Records behind a COMPUTE: units, offsets, then the instructions.
template <class R>
OX_DEVICE u32 behind_compute(u32 pc, const R& r) {
    return pc + 3 + (static_cast<u32>(r.imm(1)) + 3) / 4;
}

// Which units a lane works on: it goes through those of rank after rank, each time as many as a lane has at once. How often it has, of a rank
// (`turns`), and of them all (`passes`, 2: more than one), and how many ranks it is through with: all in one register, beside a machine.
struct Walk {
    u32 state;  // turns | ranks << 16 | passes << 30

    __device__ __forceinline__ u32 passes() const { return state >> 30; }

    // Whether one pass is all of the COMPUTE at `pc`, whichever lane asks: a lane has its units at once, and nobody stands for two ranks.
    template <class L, class W>
    static __device__ __forceinline__ bool once(const L& launch, const W& w, u32 pc) {
        const u32 part = launch.word(pc, 5);
        return launch.word(pc + 1, 0) <= COMPUTE_UNITS * launch.word(pc, 6) && (part >> 16) - (part & 0xffff) <= w.entry(launch).y >> 16;
    }

    // The next ones of the COMPUTE at `pc`; false when no lane of the warp has any left.
    template <class L, class W>
    __device__ __forceinline__ bool next(const L& launch, const W& w, u32 pc, UnitsOf& units) {
        const u32 entry = w.entry(launch).y, part = launch.word(pc, 5), total = launch.word(pc, 6), high = part >> 16;
        const uint4 shape = launch.quad(pc + 1, 0);  // units, per_row, down, right
        const uint2 by = launch.instr(pc + 1, 2);    // magic, shift
        u32 turns = state & 0xffff, ranks = state >> 16 & 0x3fff, unit;
#pragma unroll 1
        for (;;) {
            const u32 rank = (part & 0xffff) + (entry & 0xffff) + lane_number() + ranks * (entry >> 16);
            unit = rank < high ? rank + turns * COMPUTE_UNITS * total : shape.x;
            if (__any_sync(FULL_WARP, unit < shape.x)) break;
            if (!__any_sync(FULL_WARP, rank < high)) return false;
            ++ranks, turns = 0;
        }
        state = turns + 1 | ranks << 16 | min(passes() + 1, 2u) << 30;
        u32 row = by.x == 0 ? unit : quotient(unit, by.x, by.y), column = unit - row * shape.y;
        units.there = 0;
#pragma unroll
        for (u32 j = 0; j < COMPUTE_UNITS; ++j) {
            const bool there = unit < shape.x;
            units.at[j] = there ? row << 16 | column : 0;
            units.there |= there ? 1u << j : 0;
            unit += total, row += shape.z, column += shape.w;
            if (column >= shape.y) column -= shape.y, ++row;
        }
        return true;
    }
};

// Each lane of the mask computes its own register, from up to three others: as long as one EVAL instruction takes. `pc`: of the PLACE.
template <class L>
OX_DEVICE void place(const L& launch, Warp& w, u32 pc, u32 mask) {
    const bool mine = mask >> lane_number() & 1;
    const u32 part = mine ? __popc(mask & (1u << lane_number()) - 1) : 0;
    const uint4 moves = launch.quad(pc + 1, 3 * part), divides = launch.quad(pc + 1, 3 * part + 1), scales = launch.quad(pc + 1, 3 * part + 2);
    u32 x = moves.w + moves.x * w.gather(divides.z >> 16 & 0xff);
    if (__any_sync(FULL_WARP, mine && (moves.y | moves.z) != 0)) {
        x += moves.y * w.gather(divides.z >> 24) + moves.z * w.gather(scales.z & 0xff);
    }
    const i32 value = placed(x, divides.x, divides.z & 0xff, divides.y, divides.z >> 8 & 0xff, divides.w, scales.x, scales.y);
    if (mine) w.low = static_cast<u32>(value);
}

template <class R>
OX_DEVICE u32 behind_place(u32 pc, const R& r) {
    return pc + 1 + (3 * static_cast<u32>(__popc(static_cast<u32>(r.imm(1)))) + 1) / 2;
}

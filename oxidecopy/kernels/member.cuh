// Families wide and many: a warp of the table with scalars of 64 bits, EVAL on them, and plain accesses that need them.
#pragma once
#include "map.cuh"
#include "store.cuh"

// As Warp. Number `number_` of the table runs on this hardware warp, maybe with others; `lane` issues its copies, as bulk groups are a
// thread's, and no other member's.
struct Member {
    static constexpr u32 WORDS = WIDE_ARRAY_WORDS;

    u64 low, high;
    u32 pc;
    bool skip;
    u32 number_, lane;

    __device__ __forceinline__ i64 get(u32 reg) const {
        return static_cast<i64>(__shfl_sync(FULL_WARP, reg & 32 ? high : low, reg));
    }

    __device__ __forceinline__ i64 gather(u32 reg) const {
        const u64 a = __shfl_sync(FULL_WARP, low, reg), b = __shfl_sync(FULL_WARP, high, reg);
        return static_cast<i64>(reg & 32 ? b : a);
    }

    __device__ __forceinline__ void set(u32 reg, u64 value) {
        if (lane_number() != (reg & 31)) return;
        if (reg & 32) high = value;
        else low = value;
    }

    __device__ __forceinline__ i64 or_zero(u32 reg) const {
        const i64 value = get(reg);
        return reg == NO_REG ? 0 : value;
    }

    template <class R>
    __device__ __forceinline__ i64 value(const R& r, u32 k) const { return r.imm(k) + or_zero(r.reg(k)); }

    template <class R>
    __device__ __forceinline__ u32 address(const R& r, u32 k) const { return shared_base() + static_cast<u32>(value(r, k)); }

    __device__ __forceinline__ u32 number() const { return number_; }
    __device__ __forceinline__ bool issues() const { return lane_number() == lane; }

    template <class L>
    __device__ __forceinline__ uint2 entry(const L& launch) const { return launch.instr(launch.header().records, number_); }
};

// ---- EVAL. Sums and products wrap; the encoder has proven of all else that it does not.
OX_DEVICE i64 wide_floor_div(i64 a, i64 b) {
    const i64 q = a / b;
    return q - (a - q * b < 0);
}

OX_DEVICE i64 wide_floor_mod(i64 a, i64 b) {
    const i64 m = a % b;
    return m < 0 ? m + b : m;
}

// The values below the accumulator.
struct WideStack {
    i64 s0, s1, s2, s3, s4;

    __device__ __forceinline__ void push(i64 v) { s4 = s3, s3 = s2, s2 = s1, s1 = s0, s0 = v; }

    __device__ __forceinline__ i64 pop() {
        const i64 v = s0;
        s0 = s1, s1 = s2, s2 = s3, s3 = s4;
        return v;
    }
};

OX_DEVICE i64 wrapping_add(i64 a, i64 b) {
    return static_cast<i64>(static_cast<u64>(a) + static_cast<u64>(b));
}

OX_DEVICE i64 wrapping_mul(i64 a, i64 b) {
    return static_cast<i64>(static_cast<u64>(a) * static_cast<u64>(b));
}

OX_DEVICE void wide_eval_step(Member& w, u32 fn, u32 reg, i32 imm, i64& acc, WideStack& stack) {
    switch (fn) {
        case EVAL_IMM: stack.push(acc), acc = imm; break;
        case EVAL_REG: stack.push(acc), acc = wrapping_add(w.get(reg), imm); break;
        case EVAL_ADD: acc = wrapping_add(acc, imm); break;
        case EVAL_MUL: acc = wrapping_mul(acc, imm); break;
        case EVAL_FLOORDIV: acc = wide_floor_div(acc, imm); break;
        case EVAL_MOD: acc = wide_floor_mod(acc, imm); break;
        case EVAL_MIN: acc = min(acc, static_cast<i64>(imm)); break;
        case EVAL_MAX: acc = max(acc, static_cast<i64>(imm)); break;
        case EVAL_SHR: acc >>= imm; break;
        case EVAL_AND: acc &= imm; break;
        case EVAL_LT: acc = acc < imm; break;
        case EVAL_LE: acc = acc <= imm; break;
        case EVAL_EQ: acc = acc == imm; break;
        case EVAL_NE: acc = acc != imm; break;
        case EVAL_ADD_REG: acc = wrapping_add(acc, w.get(reg)); break;
        case EVAL_MUL_REG: acc = wrapping_mul(acc, w.get(reg)); break;
        case EVAL_ADD_POP: acc = wrapping_add(stack.pop(), acc); break;
        case EVAL_MUL_POP: acc = wrapping_mul(stack.pop(), acc); break;
        case EVAL_MIN_POP: acc = min(stack.pop(), acc); break;
        case EVAL_MAX_POP: acc = max(stack.pop(), acc); break;
        case EVAL_LT_POP: acc = stack.pop() < acc; break;
        case EVAL_LE_POP: acc = stack.pop() <= acc; break;
        case EVAL_EQ_POP: acc = stack.pop() == acc; break;
        case EVAL_NE_POP: acc = stack.pop() != acc; break;
        case EVAL_AND_POP: acc = stack.pop() & acc; break;
        case EVAL_OR_POP: acc = stack.pop() | acc; break;
        case EVAL_NOT: acc = !acc; break;
        case EVAL_FLOORDIV_POP: acc = wide_floor_div(stack.pop(), acc); break;
        case EVAL_MOD_POP: acc = wide_floor_mod(stack.pop(), acc); break;
        case EVAL_HIGH: acc = static_cast<i64>(static_cast<u32>(acc) | static_cast<u64>(static_cast<u32>(imm)) << 32); break;
        case EVAL_STORE:
            w.set(reg, static_cast<u64>(acc));
            acc = stack.pop();
            break;
        default: break;
    }
}

template <class L>
OX_DEVICE void wide_eval(const L& launch, Member& w, u32 pc, u32 count) {
    i64 acc = 0;
    WideStack stack{};
#pragma unroll 1
    for (u32 i = 0; i < count; ++i) {
        const uint2 in = launch.instr(pc, i);
        wide_eval_step(w, in.x & 0xff, in.x >> 8 & 0xff, static_cast<i32>(in.y), acc, stack);
    }
}

// ---- plain accesses
// As Narrow: words 6 to 10 of the array hold the extents.
struct Far {
    i64 start;

    template <class L>
    static __device__ __forceinline__ i64 extent(const L& launch, u32 words, u32 outer) {
        return static_cast<i64>(launch.argument(words + 6 + outer));
    }
};

constexpr i64 FAR_AWAY = 1ll << 61;  // outside any array, in either direction, with room to add to it

template <class L>
OX_DEVICE void wide_store_global(const L& launch, const Member& w, const RecordAt<L>& r) {
    const LayoutOf layout(launch, w.pc + 1);
    const u32 reg = coordinate_reg(r, layout.rank());
    const i64 found = w.gather(reg), start = reg == NO_REG ? 0 : max(-FAR_AWAY, min(found, FAR_AWAY));
    store_tile(launch, w, r, WIDE_ARRAY_WORDS * r.map(), layout, Far{start});
}

template <class L>
OX_DEVICE Failure wide_load_index(const L& launch, Member& w, const RecordAt<L>& r) {
    const u32 words = WIDE_ARRAY_WORDS * r.map();
    const i64 index = w.value(r, 0);
    const u64 below = static_cast<u64>(w.value(r, 1)), extent = launch.argument(words + 6);
    const bool there = index >= 0 && static_cast<u64>(index) < extent;
    u64 value = 0;
    if (there) value = integer_at(launch.argument(words) + static_cast<u64>(index) * launch.argument(words + 1), r.aux());
    const bool good = there && value < below;
    w.set(r.reg(2), good ? value : 0);
    if (good) return no_failure();
    const u64 bound = min(there ? below : extent, static_cast<u64>(~0u));
    return Failure{REPORT_INDEX, 0, 0, !there, there ? value : static_cast<u64>(index), static_cast<u32>(bound)};
}

// A warp's state: scalar file, program counter, skip mode; operands; and EVAL.
#pragma once
#include "param.cuh"

// Register i lies in lane i % 32: in `low` for i < 32, else in `high`.
struct Warp {
    static constexpr u32 WORDS = ARRAY_WORDS;  // argument words of an array

    u32 low, high;
    u32 pc;     // of the record being run
    bool skip;  // ops and waits do nothing any more; control flow and barriers of threads go on

    __device__ __forceinline__ u32 get(u32 reg) const { return __shfl_sync(FULL_WARP, reg & 32 ? high : low, reg); }

    // As get, with a register of each lane's own choice.
    __device__ __forceinline__ u32 gather(u32 reg) const {
        const u32 a = __shfl_sync(FULL_WARP, low, reg), b = __shfl_sync(FULL_WARP, high, reg);
        return reg & 32 ? b : a;
    }

    __device__ __forceinline__ void set(u32 reg, u32 value) {
        if (lane_number() != (reg & 31)) return;
        if (reg & 32) high = value;
        else low = value;
    }

    // A register of a record, 0 for NO_REG.
    __device__ __forceinline__ i32 or_zero(u32 reg) const {
        const i32 value = static_cast<i32>(get(reg));
        return reg == NO_REG ? 0 : value;
    }

    template <class R>
    __device__ __forceinline__ i32 value(const R& r, u32 k) const { return r.imm(k) + or_zero(r.reg(k)); }

    // Shared address of operand k.
    template <class R>
    __device__ __forceinline__ u32 address(const R& r, u32 k) const { return shared_base() + static_cast<u32>(value(r, k)); }

    // What is otherwise where a hardware warp runs several of them (wide.cuh): its place in the warp table, and the lane that copies.
    __device__ __forceinline__ u32 number() const { return warp_number(); }
    __device__ __forceinline__ bool issues() const { return lane_number() == 0; }
    template <class L>
    __device__ __forceinline__ uint2 entry(const L& launch) const { return launch.warp_entry(warp_number()); }
};

// Hidden from the compiler, which would keep all that follows from it in registers of their own, over all turns of a loop.
OX_DEVICE u32 hidden(u32 found) {
    asm volatile("" : "+r"(found));
    return found;
}

// Values that are the same in all lanes, put away in the lanes of one register while much else is live.
struct Parked {
    u32 lanes;

    __device__ __forceinline__ void put(u32 lane, u32 place, u32 value) { lanes = lane == place ? value : lanes; }
    __device__ __forceinline__ u32 take(u32 place) const { return __shfl_sync(FULL_WARP, lanes, place); }
};

// Most divisors are powers of two, and division is the slowest thing here.
OX_DEVICE bool is_power_of_two(i32 b) {
    return (b & (b - 1)) == 0;
}

OX_DEVICE i32 floor_div(i32 a, i32 b) {
    if (is_power_of_two(b)) return a >> (31 - __clz(b));
    const i32 q = a / b;
    return q - (a - q * b < 0);
}

OX_DEVICE i32 floor_mod(i32 a, i32 b) {
    if (is_power_of_two(b)) return a & (b - 1);
    const i32 m = a % b;
    return m < 0 ? m + b : m;
}

// The four values below the accumulator.
struct Stack {
    i32 s0, s1, s2, s3;

    __device__ __forceinline__ void push(i32 v) {
        s3 = s2;
        s2 = s1;
        s1 = s0;
        s0 = v;
    }

    __device__ __forceinline__ i32 pop() {
        const i32 v = s0;
        s0 = s1;
        s1 = s2;
        s2 = s3;
        return v;
    }
};

// Runs one instruction that is neither STORE nor OUT.
OX_DEVICE void eval_step(const Warp& w, u32 fn, u32 reg, i32 imm, i32 iteration, i32 tile, i32& acc, Stack& stack) {
    switch (fn) {
        case EVAL_IMM: stack.push(acc), acc = imm; break;
        case EVAL_REG: stack.push(acc), acc = static_cast<i32>(w.get(reg)) + imm; break;
        case EVAL_COUNTER: stack.push(acc), acc = reg ? tile : iteration; break;
        case EVAL_ADD: acc += imm; break;
        case EVAL_MUL: acc *= imm; break;
        case EVAL_FLOORDIV: acc = floor_div(acc, imm); break;
        case EVAL_MOD: acc = floor_mod(acc, imm); break;
        case EVAL_MIN: acc = min(acc, imm); break;
        case EVAL_MAX: acc = max(acc, imm); break;
        case EVAL_SHR: acc >>= imm; break;
        case EVAL_AND: acc &= imm; break;
        case EVAL_LT: acc = acc < imm; break;
        case EVAL_LE: acc = acc <= imm; break;
        case EVAL_EQ: acc = acc == imm; break;
        case EVAL_NE: acc = acc != imm; break;
        case EVAL_ADD_REG: acc += static_cast<i32>(w.get(reg)); break;
        case EVAL_MUL_REG: acc *= static_cast<i32>(w.get(reg)); break;
        case EVAL_ADD_POP: acc = stack.pop() + acc; break;
        case EVAL_MUL_POP: acc = stack.pop() * acc; break;
        case EVAL_MIN_POP: acc = min(stack.pop(), acc); break;
        case EVAL_MAX_POP: acc = max(stack.pop(), acc); break;
        case EVAL_LT_POP: acc = stack.pop() < acc; break;
        case EVAL_LE_POP: acc = stack.pop() <= acc; break;
        case EVAL_EQ_POP: acc = stack.pop() == acc; break;
        case EVAL_NE_POP: acc = stack.pop() != acc; break;
        case EVAL_AND_POP: acc = stack.pop() & acc; break;
        case EVAL_OR_POP: acc = stack.pop() | acc; break;
        case EVAL_NOT: acc = !acc; break;
        default: break;
    }
}

// EVAL: instructions [0, count) of the records from `pc` on; count > 0.
template <class L>
OX_DEVICE void eval(const L& launch, Warp& w, u32 pc, u32 count) {
    i32 acc = 0;
    Stack stack{};
    uint2 in = launch.instr(pc, 0);
#pragma unroll 1
    for (u32 i = 0; i < count; ++i) {
        const u32 fn = in.x & 0xff, reg = in.x >> 8 & 0xff;
        const i32 imm = static_cast<i32>(in.y);
        in = launch.instr(pc, min(i + 1, count - 1));  // on its way while this one runs
        if (fn == EVAL_STORE) {
            w.set(reg, static_cast<u32>(acc));
            acc = stack.pop();
        } else {
            eval_step(w, fn, reg, imm, 0, 0, acc, stack);
        }
    }
}

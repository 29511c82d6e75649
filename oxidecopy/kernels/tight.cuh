// Tight loops: what a group of threads that computes does for each stage of a ring, wait, compute, store, release. Interpreting a record takes
// some ten jumps, and code that runs once for each tile comes from far caches, a jump at a time. So here are few ops, in little code, and a
// record is there as a whole before it is its turn.
#pragma once
#include "barriers.cuh"
#include "copies.cuh"
#include "drain.cuh"
#include "group_part.cuh"

// A record in registers, as RecordAt.
struct Held {
    uint4 a, b;

    __device__ __forceinline__ u32 op() const { return a.x & 0xff; }
    __device__ __forceinline__ u32 aux() const { return a.x >> 8 & 0xff; }
    __device__ __forceinline__ u32 map() const { return a.x >> 16 & 0xff; }
    __device__ __forceinline__ u32 flags() const { return a.x >> 24; }
    __device__ __forceinline__ u32 reg(u32 k) const { return (k < 4 ? a.y : a.z) >> 8 * (k % 4) & 0xff; }
    __device__ __forceinline__ i32 imm(u32 k) const {
        return static_cast<i32>(k == 0 ? a.w : k == 1 ? b.x : k == 2 ? b.y : k == 3 ? b.z : b.w);
    }
};

template <class L>
OX_DEVICE void tight_store(const L& launch, const Warp& w, const Held& r) {
    const u32 rank = r.aux(), tile = w.address(r, 0);
    ptx::Coords at;
#pragma unroll
    for (u32 i = 0; i < 5; ++i) at.c[i] = i < rank ? static_cast<i32>(w.or_zero(r.reg(2 + rank - i))) : 0;
    if (lane_number() == 0) store(rank, launch.map(r.map()), tile, at);
    __syncwarp();
}

template <class L>
OX_DEVICE Held held(const L& launch, u32 pc) {
    return Held{launch.quad(pc, 0), launch.quad(pc, 1)};
}

// Ops from `first` on, to the end of the loop that they are in; with `alone` one op. All that a loop has to keep is in its NEXT record and in
// the scalar file: registers belong to COMPUTE.
template <bool NAMED, class L>
OX_DEVICE void tight(const L& launch, Warp& w, u32 first, bool alone) {
    Held now = held(launch, first);
    w.pc = first;
#pragma unroll 1
    for (;;) {
        const u32 after = now.op() == OP_NEXT ? static_cast<u32>(now.imm(4)) : w.pc + 1 + now.flags();
        if (is_group_part(now.op())) {
            if (!w.skip) group_part(launch, w, now);
            if (alone) return;
            w.pc = after;
            now = held(launch, after);
            continue;
        }
        const Held following = held(launch, after);  // on its way while this one runs
        Failure why = no_failure();
        switch (now.op()) {
            case OP_PLACE:
                place(launch, w, now);
                if (alone) return;
                break;
            case OP_BAR_SYNC: bar_sync<NAMED>(static_cast<u32>(now.imm(0)), static_cast<u32>(now.imm(1))); break;
            case OP_MBARRIER_WAIT_PHASE:
                if (!w.skip) why = wait_op(launch.header(), w, now);
                break;
            case OP_NEXT_STAGE: {
                bool none = false;
                why = next_stage(launch, w, now, none);
                if (none && !why) return;
                break;
            }
            case OP_FENCE_PROXY_ASYNC: ptx::fence_proxy_async_shared_cta(); break;
            case OP_TENSOR_S2G:
                if (!w.skip) tight_store(launch, w, now);
                break;
            case OP_COMMIT_GROUP:
            case OP_WAIT_GROUP:
            case OP_WAIT_GROUP_READ:
                if (!w.skip) group_op(w, now);
                break;
            case OP_MBARRIER_ARRIVE: {
                const u32 bar = w.address(now, 0);
                __syncwarp();
                if (!w.skip && lane_number() == 0) ptx::mbarrier_arrive(bar, launch.warp_entry(warp_number()).x >> 16);
                break;
            }
            case OP_NEXT: {
                const i32 k = static_cast<i32>(w.get(now.reg(0))) + now.imm(3);
                if (k >= w.value(now, 2)) return;
                w.set(now.reg(0), static_cast<u32>(k));
                break;
            }
            default: __syncwarp(); break;  // WARP_SYNC
        }
        if (why && !w.skip) {
            give_up(launch.header(), w, why);
            if (now.op() == OP_NEXT_STAGE) continue;  // in skip mode it says how many stages there are
        }
        w.pc = after;
        now = following;
    }
}

// A tight loop, PLACE or the part of a group; false for any other op.
template <bool NAMED, class L>
OX_DEVICE bool tight_op(const L& launch, Warp& w, const RecordAt<L>& r, u32& next) {
    const bool loop = r.op() == OP_LOOP && r.flags() == LOOP_TIGHT;
    if (!loop && !is_group_part(r.op()) && r.op() != OP_PLACE) return false;
    if (loop) {
        next = static_cast<u32>(r.imm(4));
        const i32 k = w.value(r, 1);
        if (k >= w.value(r, 2)) return true;
        w.set(r.reg(0), static_cast<u32>(k));
    } else {
        next = r.op() == OP_PLACE ? behind_place(w.pc, r) : behind_group_part(w.pc, r);
    }
    tight<NAMED>(launch, w, loop ? w.pc + 1 : w.pc, !loop);
    return true;
}

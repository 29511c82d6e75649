// The interpreter: one warp runs the code of its agent.
#pragma once
#include "contract.cuh"
#include "drain.cuh"
#include "extra.cuh"
#include "map.cuh"
#include "produce.cuh"
#include "store.cuh"
#include "tight.cuh"

template <class L>
OX_DEVICE Warp begin(const L& launch) {
    Warp w{};
    w.pc = launch.warp_entry(warp_number()).x & 0xffff;
    if (lane_number() == REG_BLOCK_X) w.low = blockIdx.x;
    if (lane_number() == REG_BLOCK_Y) w.low = blockIdx.y;
    if (lane_number() == REG_BLOCK_Z) w.low = blockIdx.z;
    if (lane_number() == REG_RANK) w.low = ptx::cluster_ctarank();
    return w;
}

// Ops that go on elsewhere, or take so long that the next record is better read behind them: `next` is set. False for any other op.
template <bool MAP, bool NAMED, bool EXTRA, bool COMPUTE, bool MMA, class L>
OX_DEVICE bool long_op(const L& launch, Warp& w, const RecordAt<L>& r, u32& next, Failure& why) {
    // What comes with each tile of a product is asked first; `moved`, since the compiler would make one tree of all questions.
    if constexpr (L::PAIRS) {
        if (moved(r.op()) == OP_PLACE) {
            place(launch, w, w.pc, static_cast<u32>(r.imm(1)));
            next = behind_place(w.pc, r);
            return true;
        }
    }
    if constexpr (MMA) {
        if (moved(r.op()) == OP_CONTRACT) {
            why = contract(launch, w, r);
            next = ContractAt<L>{launch, w.pc + 1}.behind();
            return true;
        }
    }
    switch (r.op()) {
        case OP_EVAL: {
            const u32 count = static_cast<u32>(r.imm(0));
            eval(launch, w, w.pc + 1, count);
            next = w.pc + 1 + (count + 3) / 4;
            return true;
        }
        case OP_JUMP: next = static_cast<u32>(r.imm(0)); return true;
        case OP_PRODUCE:
            why = produce(launch, w, r);
            next = RingAt<L>{launch, w.pc + 1}.behind();
            return true;
        case OP_DRAIN:
            why = drain(launch, w, r);
            next = RingAt<L>{launch, w.pc + 1}.behind();
            return true;
        case OP_NEXT_STAGE: {
            bool none = false;
            why = next_stage(launch, w, r, none);
            next = why ? w.pc : none ? static_cast<u32>(r.imm(4)) : w.pc + 1;
            return true;
        }
        case OP_STORE_GLOBAL:
            if (!w.skip) store_global(launch, w, r);
            next = w.pc + 2;
            return true;
        case OP_FILL:
            if (!w.skip) fill(launch, w, r);
            next = w.pc + 2;
            return true;
        case OP_IOTA:
            if (!w.skip) iota(launch, w, r);
            next = w.pc + 2;
            return true;
        default: break;
    }
    if constexpr (EXTRA) {
        if (r.op() == OP_COPY_EXTRA) {
            if (!w.skip) why = copy_extra(launch, w, r);
            next = w.pc + 2;
            return true;
        }
    }
    if constexpr (COMPUTE) {
        if (tight_op<NAMED>(launch, w, r, next)) return true;
    }
    if constexpr (MAP) {
        if (r.op() == OP_MAP_TILES) {
            if (!w.skip) map_tiles(launch, w, r);
            next = behind_map(w.pc, r);
            return true;
        }
    }
    if constexpr (MMA) {
        if (r.op() == OP_CONTRACT_DRAIN) {
            drain_contract(r);
            return true;
        }
    }
    return false;
}

// Branches, loops and barriers of threads: what goes on in skip mode. True when `r` was one of them; `next` is the record to go on with.
template <bool NAMED, class L>
OX_DEVICE bool flow_op(const L& launch, Warp& w, const RecordAt<L>& r, u32& next, Failure& why) {
    switch (r.op()) {
        case OP_JUMP_UNLESS:
            if (w.value(r, 1) == 0) next = static_cast<u32>(r.imm(0));
            return true;
        case OP_LOOP: {
            const i32 value = w.value(r, 1), stop = w.value(r, 2);
            w.set(r.reg(0), static_cast<u32>(value));
            if (r.imm(3) < 0 ? value <= stop : value >= stop) next = static_cast<u32>(r.imm(4));
            return true;
        }
        case OP_NEXT: {
            const i32 value = static_cast<i32>(w.get(r.reg(0))) + r.imm(3), stop = w.value(r, 2);
            w.set(r.reg(0), static_cast<u32>(value));
            if (r.imm(3) < 0 ? value > stop : value < stop) next = static_cast<u32>(r.imm(4));
            return true;
        }
        case OP_WARP_SYNC: __syncwarp(); return true;
        case OP_BAR_SYNC:
            if (!bar_sync<NAMED>(static_cast<u32>(r.imm(0)), static_cast<u32>(r.imm(1)))) why = failure(REPORT_OPCODE);
            return true;
        case OP_CLUSTER_SYNC:
            __syncwarp();
            ptx::barrier_cluster_arrive_release();
            ptx::barrier_cluster_wait_acquire();
            return true;
        case OP_LOAD_INDEX: why = load_index(launch, w, r); return true;
        default: return false;
    }
}

// Everything else: left out in skip mode.
template <class L>
OX_DEVICE Failure work_op(const L& launch, Warp& w, const RecordAt<L>& r) {
    switch (r.op()) {
        case OP_MBARRIER_INIT:
        case OP_MBARRIER_INVAL:
        case OP_MBARRIER_ARRIVE:
        case OP_MBARRIER_ARRIVE_EXPECT_TX:
        case OP_MBARRIER_EXPECT_TX:
        case OP_MBARRIER_COMPLETE_TX:
        case OP_MBARRIER_ARRIVE_DROP:
        case OP_MBARRIER_ARRIVE_REMOTE:
        case OP_MBARRIER_ARRIVE_EXPECT_TX_REMOTE: {
            const uint2 entry = launch.warp_entry(warp_number());
            barrier_op(w, r, entry.x >> 16, (entry.y & 0xffff) == 0);
            break;
        }
        case OP_MBARRIER_WAIT_PHASE:
        case OP_MBARRIER_WAIT_PARITY: return wait_op(launch.header(), w, r);
        case OP_MBARRIER_TEST_PARITY: w.set(r.reg(2), test_parity(w, r)); break;
        case OP_TENSOR_G2S:
        case OP_TENSOR_G2S_MULTICAST:
        case OP_TENSOR_S2G:
        case OP_TENSOR_REDUCE: copy_op(launch, w, r); break;
        case OP_COMMIT_GROUP:
        case OP_WAIT_GROUP:
        case OP_WAIT_GROUP_READ: group_op(w, r); break;
        case OP_FENCE_PROXY_ASYNC: ptx::fence_proxy_async_shared_cta(); break;
        case OP_FENCE_MBARRIER_INIT: ptx::fence_mbarrier_init_release_cluster(); break;
        default: return failure(REPORT_OPCODE);
    }
    return no_failure();
}

template <bool MAP, bool NAMED, bool EXTRA, bool COMPUTE, bool MMA = false, class L>
OX_DEVICE void interpret(const L& launch) {
    ptx::griddepcontrol_wait();  // costs nothing unless the grid before it on the stream may still run
    const Header& header = launch.header();
    if (header.stage_slots != 0) {  // nobody reads it before a sync of the program's own, but then maybe in skip mode
        if (threadIdx.x == 0) ptx::atom_exch_shared_u32(slot_of(header, 0) - 4, NO_TILE);
        __syncthreads();
    }
    if (warp_number() >= header.warps) return;
    Warp w = begin(launch);
    const u32 last = header.records - 1;
    bool broken = w.pc > last;
    if constexpr (L::PAIRS || COMPUTE) broken |= launch.read_ahead(w.pc, last);
    Failure why = failure((shared_base() & 1023) != 0 ? REPORT_PLACE : broken ? REPORT_OPCODE : 0);
    u32 next = w.pc, head = launch.word(min(next, last), 0);
#pragma unroll 1
    for (;;) {
        if (why && !w.skip) give_up(header, w, why);  // with the pc of the op that failed
        w.pc = next;
        const RecordAt<L> r{launch, next, head};
        if (next > last || r.op() == OP_END) break;
        why = no_failure();
        next = w.pc + 1;
        if (long_op<MAP, NAMED, EXTRA, COMPUTE, MMA>(launch, w, r, next, why)) {
            head = launch.word(min(next, last), 0);
        } else {
            const u32 following = launch.word(min(next, last), 0);  // on its way while this one runs
            if (!flow_op<NAMED>(launch, w, r, next, why) && !w.skip) why = work_op(launch, w, r);
            head = next == w.pc + 1 ? following : launch.word(min(next, last), 0);
        }
        if (next > last && !why) why = failure(REPORT_OPCODE);
    }
    if (w.skip) ptx::nanosleep(LANDING_NS);
}

// An entry point.
#define OX_KERNEL(NAME, BOUNDS, MAP, NAMED, EXTRA, COMPUTE, PARAMETER, GLOBAL)                                \
    extern "C" __global__ void BOUNDS oxidecopy_##NAME(const __grid_constant__ PARAMETER parameter) {         \
        interpret<MAP, NAMED, EXTRA, COMPUTE>(Launch<PARAMETER, GLOBAL>(parameter));                          \
    }

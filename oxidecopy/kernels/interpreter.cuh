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

// Ops that some families alone have.
template <bool MAP, bool NAMED, bool EXTRA, bool COMPUTE, bool MMA, class L>
OX_DEVICE Failure rare_record(const L& launch, Warp& w, const RecordAt<L>& r, u32& next) {
    if constexpr (EXTRA) {
        if (r.op() == OP_COPY_EXTRA) {
            next = w.pc + 2;
            return w.skip ? no_failure() : copy_extra(launch, w, r);
        }
    }
    if constexpr (COMPUTE) {
        if (r.op() == OP_PLACE) {
            place(launch, w, w.pc, static_cast<u32>(r.imm(1)));
            next = behind_place(w.pc, r);
            return no_failure();
        }
    }
    if constexpr (MAP) {
        if (r.op() == OP_MAP_TILES) {
            if (!w.skip) map_tiles(launch, w, r);
            next = behind_map(w.pc, r);
            return no_failure();
        }
    }
    if constexpr (MMA) {
        if (r.op() == OP_CONTRACT_DRAIN) {
            drain_contract(r);
            return no_failure();
        }
    }
    return w.skip ? no_failure() : failure(REPORT_OPCODE);
}

// Runs one record; `next` is the one to go on with. One switch of all ops, each with what it does in its case: a tree of questions in a kernel this
// large is a walk through its code, and each step of it waits for that. In skip mode control flow and barriers of threads go on, and nothing else.
template <bool MAP, bool NAMED, bool EXTRA, bool COMPUTE, bool MMA, class L>
OX_DEVICE Failure run_record(const L& launch, Warp& w, const RecordAt<L>& r, u32& next) {
    // What comes with each tile of a product is asked first; `moved`, since the compiler would make one tree of all questions.
    if constexpr (L::PAIRS) {
        if (moved(r.op()) == OP_PLACE) {
            place(launch, w, w.pc, static_cast<u32>(r.imm(1)));
            next = behind_place(w.pc, r);
            return no_failure();
        }
    }
    if constexpr (MMA) {
        if (moved(r.op()) == OP_CONTRACT) {
            const Failure why = contract(launch, w, r);
            next = ContractAt<L>{launch, w.pc + 1}.behind();
            return why;
        }
    }
    if constexpr (COMPUTE) {
        if (tight_op<NAMED>(launch, w, r, next)) return no_failure();
    }
    const auto of_barrier = [&] {
        if (w.skip) return;
        const uint2 entry = launch.warp_entry(warp_number());
        barrier_op(w, r, entry.x >> 16, (entry.y & 0xffff) == 0);
    };
    const auto of_copy = [&] {
        if (!w.skip) copy_op(launch, w, r);
    };
    const auto of_group = [&] {
        if (!w.skip) group_op(w, r);
    };
    const auto of_wait = [&] { return w.skip ? no_failure() : wait_op(launch.header(), w, r); };
    switch (r.op()) {
        // ---- control flow
        case OP_EVAL: {
            const u32 count = static_cast<u32>(r.imm(0));
            eval(launch, w, w.pc + 1, count);
            next = w.pc + 1 + (count + 3) / 4;
            break;
        }
        case OP_JUMP: next = static_cast<u32>(r.imm(0)); break;
        case OP_JUMP_UNLESS:
            if (w.value(r, 1) == 0) next = static_cast<u32>(r.imm(0));
            break;
        case OP_LOOP: {
            const i32 value = w.value(r, 1), stop = w.value(r, 2);
            w.set(r.reg(0), static_cast<u32>(value));
            if (r.imm(3) < 0 ? value <= stop : value >= stop) next = static_cast<u32>(r.imm(4));
            break;
        }
        case OP_NEXT: {
            const i32 value = static_cast<i32>(w.get(r.reg(0))) + r.imm(3), stop = w.value(r, 2);
            w.set(r.reg(0), static_cast<u32>(value));
            if (r.imm(3) < 0 ? value > stop : value < stop) next = static_cast<u32>(r.imm(4));
            break;
        }
        case OP_NEXT_STAGE: {
            bool none = false;
            const Failure why = next_stage(launch, w, r, none);
            next = why ? w.pc : none ? static_cast<u32>(r.imm(4)) : w.pc + 1;
            return why;
        }
        case OP_WARP_SYNC: __syncwarp(); break;
        case OP_BAR_SYNC:
            if (!bar_sync<NAMED>(static_cast<u32>(r.imm(0)), static_cast<u32>(r.imm(1)))) return failure(REPORT_OPCODE);
            break;
        case OP_CLUSTER_SYNC:
            __syncwarp();
            ptx::barrier_cluster_arrive_release();
            ptx::barrier_cluster_wait_acquire();
            break;
        case OP_LOAD_INDEX: return load_index(launch, w, r);
        case OP_LOAD_ROWS:
            next = w.pc + 2;
            if (w.skip) break;
            return load_rows(launch, w, r);
        // ---- loops over the stages of a ring
        case OP_PRODUCE: {
            const Failure why = produce(launch, w, r);
            next = RingAt<L>{launch, w.pc + 1}.behind();
            return why;
        }
        case OP_DRAIN: {
            const Failure why = drain(launch, w, r);
            next = RingAt<L>{launch, w.pc + 1}.behind();
            return why;
        }
        // ---- barriers of memory
        case OP_MBARRIER_INIT: of_barrier(); break;
        case OP_MBARRIER_INVAL: of_barrier(); break;
        case OP_MBARRIER_ARRIVE: of_barrier(); break;
        case OP_MBARRIER_ARRIVE_EXPECT_TX: of_barrier(); break;
        case OP_MBARRIER_EXPECT_TX: of_barrier(); break;
        case OP_MBARRIER_COMPLETE_TX: of_barrier(); break;
        case OP_MBARRIER_ARRIVE_DROP: of_barrier(); break;
        case OP_MBARRIER_ARRIVE_REMOTE: of_barrier(); break;
        case OP_MBARRIER_ARRIVE_EXPECT_TX_REMOTE: of_barrier(); break;
        case OP_MBARRIER_WAIT_PHASE: return of_wait();
        case OP_MBARRIER_WAIT_PARITY: return of_wait();
        case OP_MBARRIER_TEST_PARITY:
            if (!w.skip) w.set(r.reg(2), test_parity(w, r));
            break;
        // ---- copies
        case OP_TENSOR_G2S: of_copy(); break;
        case OP_TENSOR_G2S_MULTICAST: of_copy(); break;
        case OP_TENSOR_S2G: of_copy(); break;
        case OP_TENSOR_REDUCE: of_copy(); break;
        case OP_COMMIT_GROUP: of_group(); break;
        case OP_WAIT_GROUP: of_group(); break;
        case OP_WAIT_GROUP_READ: of_group(); break;
        case OP_FENCE_PROXY_ASYNC:
            if (!w.skip) ptx::fence_proxy_async_shared_cta();
            break;
        case OP_FENCE_MBARRIER_INIT:
            if (!w.skip) ptx::fence_mbarrier_init_release_cluster();
            break;
        // ---- plain accesses
        case OP_STORE_GLOBAL:
            if (!w.skip) store_global(launch, w, r);
            next = w.pc + 2;
            break;
        case OP_FILL:
            if (!w.skip) fill(launch, w, r);
            next = w.pc + 2;
            break;
        case OP_IOTA:
            if (!w.skip) iota(launch, w, r);
            next = w.pc + 2;
            break;
        default: return rare_record<MAP, NAMED, EXTRA, COMPUTE, MMA>(launch, w, r, next);
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
        const u32 behind = w.pc + 1;  // a tight loop moves w.pc
        next = behind;
        u32 following = 0;
        if constexpr (COMPUTE) following = launch.word(min(behind, last), 0);  // on its way while this one runs; others lack the register
        why = run_record<MAP, NAMED, EXTRA, COMPUTE, MMA>(launch, w, r, next);
        head = COMPUTE && next == behind ? following : launch.word(min(next, last), 0);
        if (next > last && !why) why = failure(REPORT_OPCODE);
    }
    if (w.skip) ptx::nanosleep(LANDING_NS);
}

// An entry point.
#define OX_KERNEL(NAME, BOUNDS, MAP, NAMED, EXTRA, COMPUTE, PARAMETER, GLOBAL)                                \
    extern "C" __global__ void BOUNDS oxidecopy_##NAME(const __grid_constant__ PARAMETER parameter) {         \
        interpret<MAP, NAMED, EXTRA, COMPUTE>(Launch<PARAMETER, GLOBAL>(parameter));                          \
    }

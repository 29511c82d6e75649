// Ops on mbarriers. A warp stands for `threads` threads of its agent, and arrives once for each.
#pragma once
#include "wait.cuh"

// Announces `bytes` for each of the threads, and arrives for them.
OX_DEVICE void arrive_expect_tx(u32 bar, u32 bytes, u32 threads) {
    if (threads == 1) {
        ptx::mbarrier_arrive_expect_tx(bar, bytes);
    } else {
        ptx::mbarrier_expect_tx(bar, bytes * threads);
        ptx::mbarrier_arrive(bar, threads);
    }
}

OX_DEVICE void arrive_expect_tx_remote(u32 bar, u32 bytes, u32 threads) {
#pragma unroll 1
    for (u32 i = 0; i < threads; ++i) ptx::mbarrier_arrive_expect_tx_cluster(bar, bytes);
}

// All ops between MBARRIER_INIT and MBARRIER_ARRIVE_EXPECT_TX_REMOTE, after the whole warp has come; by one lane, but INIT by one for each
// barrier.
template <class W, class R>
OX_DEVICE void barrier_op(W& w, const R& r, u32 threads, bool first_warp) {
    const u32 bar = w.address(r, 0);
    const u32 value1 = static_cast<u32>(w.value(r, 1));
    const u32 value2 = static_cast<u32>(w.value(r, 2));
    __syncwarp();
    if (r.op() == OP_MBARRIER_INIT) {
        if (first_warp && lane_number() < value2) ptx::mbarrier_init(bar + 8 * lane_number(), static_cast<u32>(r.imm(1)));
    } else if (lane_number() == 0) {
        switch (r.op()) {
            case OP_MBARRIER_INVAL:
                if (first_warp) ptx::mbarrier_inval(bar);
                break;
            case OP_MBARRIER_ARRIVE: ptx::mbarrier_arrive(bar, threads); break;
            case OP_MBARRIER_ARRIVE_EXPECT_TX: arrive_expect_tx(bar, value1, threads); break;
            case OP_MBARRIER_EXPECT_TX: ptx::mbarrier_expect_tx(bar, value1 * threads); break;
            case OP_MBARRIER_COMPLETE_TX: ptx::mbarrier_complete_tx(bar, value1 * threads); break;
            case OP_MBARRIER_ARRIVE_DROP: ptx::mbarrier_arrive_drop(bar, threads); break;
            case OP_MBARRIER_ARRIVE_REMOTE: ptx::mbarrier_arrive_cluster(ptx::mapa(bar, value1), threads); break;
            default: arrive_expect_tx_remote(ptx::mapa(bar, value1), value2, threads); break;
        }
    }
    __syncwarp();
}

// MBARRIER_WAIT_PHASE, _PARITY: a negative phase is over.
template <class R>
OX_DEVICE Failure wait_op(const Header& header, const Warp& w, const R& r) {
    const i32 phase = w.value(r, 1);
    const u32 bar = w.address(r, 0);
    if (r.op() == OP_MBARRIER_WAIT_PHASE && phase < 0) return no_failure();
    return waited_for(wait_parity(header, bar, phase & 1), bar, phase & 1, 0);
}

// One answer for the warp: that of its first lane.
template <class W, class R>
OX_DEVICE bool test_parity(const W& w, const R& r) {
    const u32 bar = w.address(r, 0), parity = w.value(r, 1) & 1;
    const bool over = r.aux() ? ptx::mbarrier_test_wait_parity(bar, parity) : ptx::mbarrier_try_wait_parity(bar, parity);
    return __shfl_sync(FULL_WARP, over, 0);
}

// A kernel that can name any barrier has all sixteen reserved, and an SM has no more than 64: four CTAs. So most kernels name the first two
// alone, and only those that are NAMED for it have the others. False: there is no such barrier here.
//
// Where roles meet at different instructions, as in tight loops and beside them, barriers are not "aligned", as PTX has it. Their numbers are
// constants then: of those in registers the assembler does not tell synccheck which instruction they are, and it takes them for aligned ones.
template <bool NAMED>
constexpr u32 BARRIERS = NAMED ? 16 : FEW_BARRIERS;

// Barrier `number`, one of COUNT from FIRST on.
template <u32 FIRST, u32 COUNT>
OX_DEVICE void barrier_of(u32 number, u32 threads) {
    if constexpr (COUNT > 1) {
        if (number < FIRST + COUNT / 2) barrier_of<FIRST, COUNT / 2>(number, threads);
        else barrier_of<FIRST + COUNT / 2, COUNT / 2>(number, threads);
    } else {
#ifdef OX_BARRIER_UNALIGNED
        ptx::barrier_sync<FIRST>(threads);
#else
        ptx::bar_sync<FIRST>(threads);
#endif
    }
}

template <bool NAMED>
OX_DEVICE bool bar_sync(u32 number, u32 threads) {
    __syncwarp();
#ifndef OX_BARRIER_UNALIGNED
    if constexpr (NAMED) {
        ptx::bar_sync(number, threads);
        return true;
    }
#endif
    if (number >= BARRIERS<NAMED>) return false;
    barrier_of<0, BARRIERS<NAMED>>(number, threads);
    return true;
}

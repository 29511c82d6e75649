// Families wide and many: tokens as the states that arrivals returned, kept in registers or put where others find them.
#pragma once
#include "barriers.cuh"
#include "member.cuh"

// Puts a token into its history, for other members; by one lane.
OX_DEVICE void put_token(u32 history, u32 entries, u64 stamp, u64 state) {
    const u32 turn = ptx::atom_add_shared_u32(history, 1), at = history + 8 + 8 * HISTORY_WORDS * (turn % entries);
    ptx::st_shared_u64(at + OFFSET_OF(History, state), state);
    ptx::st_release_shared_u64(at + OFFSET_OF(History, stamp), stamp);
}

// A token that has been put there; false while it has not.
OX_DEVICE bool find_token(u32 history, u32 entries, u64 stamp, u64& state) {
#pragma unroll 1
    for (u32 i = 0; i < entries; ++i) {
        const u32 at = history + 8 + 8 * HISTORY_WORDS * i;
        if (ptx::ld_acquire_shared_u64(at + OFFSET_OF(History, stamp)) == stamp) {
            state = ptx::ld_shared_u64(at + OFFSET_OF(History, state));
            return true;
        }
    }
    return false;
}

// The stamp that a record names, as it is kept: 0 is for nobody.
template <class R>
OX_DEVICE u64 stamp_of(const Member& w, const R& r) {
    return static_cast<u64>(w.or_zero(r.reg(7))) + 1;
}

// MBARRIER_ARRIVE, _EXPECT_TX, _DROP with a token that somebody will wait for.
template <class R>
OX_DEVICE void arrive_for_token(Member& w, const R& r, u32 threads, bool first_warp) {
    const u32 bar = w.address(r, 0), bytes = static_cast<u32>(w.value(r, 1));
    const u64 stamp = stamp_of(w, r);
    u64 state = 0;
    __syncwarp();
    if (lane_number() == 0) {
        if (r.op() == OP_MBARRIER_ARRIVE_EXPECT_TX) ptx::mbarrier_expect_tx(bar, bytes * threads);
        state = r.op() == OP_MBARRIER_ARRIVE_DROP ? ptx::mbarrier_arrive_drop_state(bar, threads) : ptx::mbarrier_arrive(bar, threads);
        if ((r.flags() & TOKEN_SHARED) && first_warp)
            put_token(shared_base() + static_cast<u32>(r.imm(3)), static_cast<u32>(r.imm(4)), stamp, state);
    }
    __syncwarp();
    if (r.flags() & TOKEN_KEPT) {
        w.set(r.reg(5), stamp);
        w.set(r.reg(6), __shfl_sync(FULL_WARP, state, 0));
    }
}

// The state of the token that MBARRIER_WAIT_TOKEN or _TEST_TOKEN names; false when nobody has made it yet. One answer for the warp.
template <class R>
OX_DEVICE bool token_state(const Member& w, const R& r, u64& state) {
    const u64 stamp = stamp_of(w, r);
    bool made;
    if (r.flags() & TOKEN_KEPT) {
        made = static_cast<u64>(w.get(r.reg(5))) == stamp;
        state = static_cast<u64>(w.get(r.reg(6)));
    } else {
        made = find_token(shared_base() + static_cast<u32>(r.imm(3)), static_cast<u32>(r.imm(4)), stamp, state);
    }
    return __all_sync(FULL_WARP, made);
}

template <class R>
OX_DEVICE bool test_token(const Member& w, const R& r) {
    const u32 bar = w.address(r, 0);
    u64 state = 0;
    const bool over = token_state(w, r, state) && ptx::mbarrier_test_wait(bar, state);
    return __shfl_sync(FULL_WARP, over, 0);
}

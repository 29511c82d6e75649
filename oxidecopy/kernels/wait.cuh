// Bounded waits, the report to the host, and skip mode.
#pragma once
#include "warp.cuh"

constexpr u32 POLL_TRIES = 16;  // a try gives up after about 4 us: the host's word is read every 64 us

// What a warp says when it gives up.
struct Complaint {
    u32 kind, iteration, barrier, parity;
    u64 state, value;
    u32 bound;
};

// Appends to the report, and tells all other warps to give up too. By one lane; far from any fast path, so that a call costs nothing.
static __device__ __noinline__ void complain(u64 report, u32 pc, Complaint what) {
    const u32 number = ptx::atom_add_u32(report + OFFSET_OF(ReportHeader, count), 1);
    if (number < REPORT_ENTRIES) {
        ReportEntry entry;
        entry.kind = what.kind;
        entry.cta = cta_number();
        entry.warp = warp_number();
        entry.pc = pc;
        entry.iteration = what.iteration;
        entry.barrier = what.barrier;
        entry.parity = what.parity;
        entry.state_low = static_cast<u32>(what.state);
        entry.state_high = static_cast<u32>(what.state >> 32);
        entry.value_low = static_cast<u32>(what.value);
        entry.value_high = static_cast<u32>(what.value >> 32);
        entry.bound = what.bound;
        *reinterpret_cast<ReportEntry*>(report + sizeof(ReportHeader) + sizeof(ReportEntry) * number) = entry;
    }
    ptx::st_relaxed_sys_u32(report + OFFSET_OF(ReportHeader, skip), 1);
}

// Goes into skip mode, and says why.
OX_DEVICE void give_up(const Header& header, Warp& w, const Complaint& what) {
    if (w.lane == 0) complain(header.report, w.pc, what);
    w.skip = true;
    __syncwarp();
}

OX_DEVICE void give_up(const Header& header, Warp& w, u32 kind) {
    give_up(header, w, Complaint{kind, 0, 0, 0, 0, 0, 0});
}

// Address within the CTA's own window: the bits above say which CTA of the cluster.
OX_DEVICE u32 in_window(u32 address) {
    return address & 0xffffff;
}

// The first try has failed. Waits on, as long as the limit and the others allow: 0, or the ReportKind to give up with.
static __device__ __noinline__ u32 wait_longer(u64 report, u32 limit_us, u32 bar, u32 parity) {
    const u64 start = ptx::globaltimer();
    const u64 limit = 1000ull * limit_us;
#pragma unroll 1
    for (u32 tries = 1;; ++tries) {
        if (__all_sync(FULL_WARP, ptx::mbarrier_try_wait_parity(bar, parity))) return 0;
        if (__any_sync(FULL_WARP, ptx::globaltimer() - start > limit)) return REPORT_TIMEOUT;
        if (tries % POLL_TRIES == 0 && __any_sync(FULL_WARP, ptx::ld_relaxed_sys_u32(report))) return REPORT_TOLD;
    }
}

// True once the phase of that parity is over; false when the warp has gone into skip mode instead.
OX_DEVICE bool wait_parity(const Header& header, Warp& w, u32 bar, u32 parity, u32 iteration) {
    if (__all_sync(FULL_WARP, ptx::mbarrier_try_wait_parity(bar, parity))) return true;
    const u32 why = wait_longer(header.report, header.limit_us, bar, parity);
    if (why == 0) return true;
    // No arrivals, but the state that they find: plain loads of a live barrier show what it was at init.
    const u64 state = w.lane == 0 ? ptx::mbarrier_arrive(bar, 0) : 0;
    give_up(header, w, Complaint{why, iteration, in_window(bar), parity, state, 0, 0});
    return false;
}

// Bounded waits, the report to the host, and skip mode.
#pragma once
#include "warp.cuh"

constexpr u32 LANDING_NS = 100000;  // copies in flight land before the memory of a CTA that gave up is given away

// Why a warp gives up, as the report says it. Ops return it; the interpreter's loop has the one place that reports.
struct Failure {
    u32 kind;  // 0: none
    u32 iteration, barrier, parity;
    u64 value;
    u32 bound;

    __device__ __forceinline__ explicit operator bool() const { return kind != 0; }
};

OX_DEVICE Failure no_failure() {
    return Failure{};
}

OX_DEVICE Failure failure(u32 kind) {
    return Failure{kind, 0, 0, 0, 0, 0};
}

// Appends to the report, tells all other warps to give up too, and goes into skip mode.
template <class W>
OX_DEVICE void give_up(const Header& header, W& w, const Failure& why) {
    if (lane_number() == 0) {
        const u32 number = ptx::atom_add_u32(header.report + OFFSET_OF(ReportHeader, count), 1);
        if (number < REPORT_ENTRIES) {
            // No arrivals, but the state that they find: plain loads of a live barrier show what it was at init.
            const bool waited = why.kind == REPORT_TIMEOUT || why.kind == REPORT_TOLD;
            const u64 state = waited ? ptx::mbarrier_arrive(why.barrier, 0) : 0;
            ReportEntry* entry = reinterpret_cast<ReportEntry*>(header.report + sizeof(ReportHeader) + sizeof(ReportEntry) * number);
            entry->kind = why.kind;
            entry->cta = cta_number();
            entry->warp = w.number();
            entry->pc = w.pc;
            entry->iteration = why.iteration;
            entry->barrier = why.barrier & 0xffffff;  // the bits above say which CTA of the cluster
            entry->parity = why.parity;
            entry->state_low = static_cast<u32>(state);
            entry->state_high = static_cast<u32>(state >> 32);
            entry->value_low = static_cast<u32>(why.value);
            entry->value_high = static_cast<u32>(why.value >> 32);
            entry->bound = why.bound;
        }
        ptx::st_relaxed_sys_u32(header.report + OFFSET_OF(ReportHeader, skip), 1);
    }
    w.skip = true;
    __syncwarp();
}

// Time in units of 1.024 us.
OX_DEVICE u32 now() {
    return static_cast<u32>(ptx::globaltimer() >> 10);
}

// Waits until the phase of that parity is over: 0, or why the warp must give up. A try takes up to 4 us by itself, so counting the time
// costs nothing. About every millisecond it looks whether others have given up: that word lies in host memory, and all warps together can
// read it only a few million times a second, which must not hold up healthy waits.
OX_DEVICE u32 wait_parity(const Header& header, u32 bar, u32 parity) {
    if (__all_sync(FULL_WARP, ptx::mbarrier_try_wait_parity(bar, parity))) return 0;
    const u32 start = now();
#pragma unroll 1
    while (!__all_sync(FULL_WARP, ptx::mbarrier_try_wait_parity(bar, parity))) {
        const u32 waited = __shfl_sync(FULL_WARP, now() - start, 0);
        if (waited > header.limit_us) return REPORT_TIMEOUT;
        if (waited >= 1024 && (waited & 1023) < 8 && __any_sync(FULL_WARP, ptx::ld_relaxed_sys_u32(header.report))) return REPORT_TOLD;
    }
    return 0;
}

OX_DEVICE Failure waited_for(u32 why, u32 bar, u32 parity, u32 iteration) {
    return Failure{why, iteration, bar, parity, 0, 0};
}

// One function per PTX instruction, named as PTX. Shared addresses are 32 bits wide, maps and global memory 64.
// `memory` is clobbered wherever an instruction orders or makes accesses that the compiler does not see.
#pragma once
#include "abi.h"

using i64 = long long;
using f32 = float;
using f64 = double;

#define OX_DEVICE static __device__ __forceinline__

constexpr u32 FULL_WARP = 0xffffffffu;

namespace ptx {

// ---- mbarriers of the own CTA
OX_DEVICE void mbarrier_init(u32 bar, u32 count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

OX_DEVICE void mbarrier_inval(u32 bar) {
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(bar) : "memory");
}

OX_DEVICE u64 mbarrier_arrive(u32 bar, u32 count) {
    u64 state;
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 %0, [%1], %2;" : "=l"(state) : "r"(bar), "r"(count) : "memory");
    return state;
}

OX_DEVICE void mbarrier_arrive_drop(u32 bar, u32 count) {
    asm volatile("{\n.reg .b64 state;\nmbarrier.arrive_drop.release.cta.shared::cta.b64 state, [%0], %1;\n}" ::"r"(bar), "r"(count) : "memory");
}

// As above, where the state that the arrival found is asked for.
OX_DEVICE u64 mbarrier_arrive_drop_state(u32 bar, u32 count) {
    u64 state;
    asm volatile("mbarrier.arrive_drop.release.cta.shared::cta.b64 %0, [%1], %2;" : "=l"(state) : "r"(bar), "r"(count) : "memory");
    return state;
}

OX_DEVICE void mbarrier_arrive_expect_tx(u32 bar, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

OX_DEVICE void mbarrier_expect_tx(u32 bar, u32 bytes) {
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

OX_DEVICE void mbarrier_complete_tx(u32 bar, u32 bytes) {
    asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

OX_DEVICE bool mbarrier_try_wait_parity(u32 bar, u32 parity) {
    u32 over;
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
        : "=r"(over)
        : "r"(bar), "r"(parity)
        : "memory");
    return over != 0;
}

OX_DEVICE bool mbarrier_test_wait_parity(u32 bar, u32 parity) {
    u32 over;
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
        : "=r"(over)
        : "r"(bar), "r"(parity)
        : "memory");
    return over != 0;
}

// Of the phase that an arrival returned.
OX_DEVICE bool mbarrier_test_wait(u32 bar, u64 state) {
    u32 over;
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.test_wait.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
        : "=r"(over)
        : "r"(bar), "l"(state)
        : "memory");
    return over != 0;
}

// ---- mbarriers of the cluster
OX_DEVICE u32 mapa(u32 address, u32 rank) {
    u32 there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    return there;
}

OX_DEVICE void mbarrier_arrive_cluster(u32 bar, u32 count) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

OX_DEVICE void mbarrier_arrive_expect_tx_cluster(u32 bar, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

// ---- bulk groups
OX_DEVICE void cp_async_bulk_commit_group() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

template <int PENDING>
OX_DEVICE void cp_async_bulk_wait_group() {
    asm volatile("cp.async.bulk.wait_group %0;" ::"n"(PENDING) : "memory");
}

template <int PENDING>
OX_DEVICE void cp_async_bulk_wait_group_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

// ---- fences and barriers of threads
OX_DEVICE void fence_proxy_async_shared_cta() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

OX_DEVICE void fence_mbarrier_init_release_cluster() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

OX_DEVICE void bar_sync(u32 number, u32 threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

template <int NUMBER>
OX_DEVICE void bar_sync(u32 threads) {
    asm volatile("bar.sync %0, %1;" ::"n"(NUMBER), "r"(threads) : "memory");
}

template <int NUMBER>
OX_DEVICE void barrier_sync(u32 threads) {
    asm volatile("barrier.sync %0, %1;" ::"n"(NUMBER), "r"(threads) : "memory");
}

template <int NUMBER>
OX_DEVICE void barrier_arrive(u32 threads) {
    asm volatile("barrier.arrive %0, %1;" ::"n"(NUMBER), "r"(threads) : "memory");
}

OX_DEVICE void griddepcontrol_wait() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

OX_DEVICE void barrier_cluster_arrive_release() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

OX_DEVICE void barrier_cluster_wait_acquire() {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

OX_DEVICE void nanosleep(u32 nanoseconds) {
    asm volatile("nanosleep.u32 %0;" ::"r"(nanoseconds) : "memory");
}

// ---- special registers
OX_DEVICE u64 globaltimer() {
    u64 now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
}

// The extent of the grid along dimension 0 (x), 1 or 2: read where it is used, rarely, instead of being kept in registers from the start.
template <int D>
OX_DEVICE u32 nctaid() {
    u32 n;
    if constexpr (D == 0) asm volatile("mov.u32 %0, %nctaid.x;" : "=r"(n));
    if constexpr (D == 1) asm volatile("mov.u32 %0, %nctaid.y;" : "=r"(n));
    if constexpr (D == 2) asm volatile("mov.u32 %0, %nctaid.z;" : "=r"(n));
    return n;
}

OX_DEVICE u32 cluster_ctarank() {
    u32 rank;
    asm("mov.u32 %0, %cluster_ctarank;" : "=r"(rank));
    return rank;
}

// ---- shared memory
OX_DEVICE u32 atom_or_shared_u32(u32 address, u32 bits) {
    u32 old;
    asm volatile("atom.relaxed.cta.shared.or.b32 %0, [%1], %2;" : "=r"(old) : "r"(address), "r"(bits) : "memory");
    return old;
}

OX_DEVICE u32 atom_exch_shared_u32(u32 address, u32 value) {
    u32 old;
    asm volatile("atom.relaxed.cta.shared.exch.b32 %0, [%1], %2;" : "=r"(old) : "r"(address), "r"(value) : "memory");
    return old;
}

OX_DEVICE u32 atom_add_shared_u32(u32 address, u32 value) {
    u32 old;
    asm volatile("atom.acq_rel.cta.shared.add.u32 %0, [%1], %2;" : "=r"(old) : "r"(address), "r"(value) : "memory");
    return old;
}

OX_DEVICE u32 ld_acquire_shared_u32(u32 address) {
    u32 value;
    asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    return value;
}

OX_DEVICE u64 ld_acquire_shared_u64(u32 address) {
    u64 value;
    asm volatile("ld.acquire.cta.shared.u64 %0, [%1];" : "=l"(value) : "r"(address) : "memory");
    return value;
}

OX_DEVICE void st_release_shared_u32(u32 address, u32 value) {
    asm volatile("st.release.cta.shared.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

OX_DEVICE void st_release_shared_u64(u32 address, u64 value) {
    asm volatile("st.release.cta.shared.u64 [%0], %1;" ::"r"(address), "l"(value) : "memory");
}

OX_DEVICE u32 ld_shared_u8(u32 address) {
    u32 value;
    asm volatile("ld.shared.u8 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    return value;
}

OX_DEVICE u32 ld_shared_u16(u32 address) {
    u16 value;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(value) : "r"(address) : "memory");
    return value;
}

OX_DEVICE u32 ld_shared_u32(u32 address) {
    u32 value;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    return value;
}

OX_DEVICE u64 ld_shared_u64(u32 address) {
    u64 value;
    asm volatile("ld.shared.u64 %0, [%1];" : "=l"(value) : "r"(address) : "memory");
    return value;
}

OX_DEVICE uint4 ld_shared_v4(u32 address) {
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(address) : "memory");
    return v;
}

OX_DEVICE uint2 ld_shared_v2(u32 address) {
    uint2 v;
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(address) : "memory");
    return v;
}

OX_DEVICE void st_shared_v2(u32 address, uint2 v) {
    asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(address), "r"(v.x), "r"(v.y) : "memory");
}

OX_DEVICE void st_shared_u8(u32 address, u32 value) {
    asm volatile("st.shared.u8 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

OX_DEVICE void st_shared_u16(u32 address, u32 value) {
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(address), "h"(static_cast<u16>(value)) : "memory");
}

OX_DEVICE void st_shared_u32(u32 address, u32 value) {
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

OX_DEVICE void st_shared_u64(u32 address, u64 value) {
    asm volatile("st.shared.u64 [%0], %1;" ::"r"(address), "l"(value) : "memory");
}

OX_DEVICE void st_shared_v4(u32 address, uint4 v) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

// ---- global memory
OX_DEVICE u32 ld_relaxed_sys_u32(u64 address) {
    u32 value;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
    return value;
}

OX_DEVICE void st_relaxed_sys_u32(u64 address, u32 value) {
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

// What nobody writes while the kernel runs, asked for where it is written.
OX_DEVICE uint4 ld_nc_v4(u64 address) {
    uint4 v;
    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(address));
    return v;
}

OX_DEVICE uint2 ld_nc_v2(u64 address) {
    uint2 v;
    asm volatile("ld.global.nc.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(address));
    return v;
}

OX_DEVICE u32 atom_add_u32(u64 address, u32 value) {
    u32 old;
    asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(value));
    return old;
}

OX_DEVICE u32 atom_inc_u32(u64 address, u32 last) {
    u32 old;
    asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(old) : "l"(address), "r"(last) : "memory");
    return old;
}

OX_DEVICE void st_global_u32(u64 address, u32 value) {
    asm volatile("st.global.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

}  // namespace ptx

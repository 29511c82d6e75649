// ONCE: the whole program of a CTA that moves one set of boxes, one thread's straight line. Its code lies where it always does, so that
// all of it is read from known places of the constant bank.
#pragma once
#include "coordinates.cuh"
#include "copies.cuh"

template <class P>
struct OnceAt {
    const P& p;

    __device__ __forceinline__ const Once& head() const { return *reinterpret_cast<const Once*>(p.blob + ONCE_CODE); }

    __device__ __forceinline__ const Copy& copy(u32 j) const { return *reinterpret_cast<const Copy*>(p.blob + ONCE_CODE + RECORD_BYTES * (1 + j)); }

    __device__ __forceinline__ const Coordinate& coordinate(u32 i) const {
        const u32 copies = head().loads + head().stores;
        return *reinterpret_cast<const Coordinate*>(p.blob + ONCE_CODE + RECORD_BYTES * (1 + copies) + sizeof(Coordinate) * i);
    }
};

OX_DEVICE i32 value_of(const Coordinate& c) {
    const u32 x = c.offset + c.step_x * blockIdx.x + c.step_y * blockIdx.y + c.step_z * blockIdx.z;
    return placed(x, c.magic, c.shift, c.modulus_magic, c.modulus_shift, c.modulus, c.scale, c.base);
}

// Coordinates of the copies, computed anew where they are others than those of the copy before.
template <class P>
struct Placed {
    OnceAt<P> code;
    ptx::Coords at;
    u32 begin;

    __device__ __forceinline__ void go_to(const Copy& copy) {
        if (copy.eval_begin == begin) return;
        begin = copy.eval_begin;
#pragma unroll
        for (u32 d = 0; d < 5; ++d) {
            if (d < copy.rank) at.c[d] = value_of(code.coordinate(begin + d));
        }
    }
};

template <class P>
OX_DEVICE u32 load_and_wait(const P& p, Placed<P>& placed, u32 bar) {
    const Once& head = placed.code.head();
    ptx::mbarrier_init(bar, 1);
    ptx::mbarrier_arrive_expect_tx(bar, static_cast<u32>(head.nbytes));
#pragma unroll 1
    for (u32 j = 0; j < head.loads; ++j) {
        const Copy& copy = placed.code.copy(j);
        placed.go_to(copy);
        load(copy.rank, shared_base() + copy.tile, reinterpret_cast<u64>(&p.map[copy.map]), bar, placed.at);
    }
    return wait_parity(p.header, bar, 0);
}

template <class P>
OX_DEVICE void store_and_wait(const P& p, Placed<P>& placed) {
    const Once& head = placed.code.head();
#pragma unroll 1
    for (u32 j = 0; j < head.stores; ++j) {
        const Copy& copy = placed.code.copy(head.loads + j);
        placed.go_to(copy);
        const u64 map = reinterpret_cast<u64>(&p.map[copy.map]);
        const u32 from = shared_base() + copy.tile;
        if (copy.kind == OP_TENSOR_S2G) store(copy.rank, map, from, placed.at);
        else reduce(copy.reduce, copy.rank, map, from, placed.at);
    }
    ptx::cp_async_bulk_commit_group();
    if (head.flags & ONCE_FLAG_READ) ptx::cp_async_bulk_wait_group_read<0>();
    else ptx::cp_async_bulk_wait_group<0>();
}

template <class P>
OX_DEVICE void once(const P& p) {
    ptx::griddepcontrol_wait();
    if (threadIdx.x != 0) return;
    Placed<P> placed{OnceAt<P>{p}, {}, ~0u};
    const Once& head = placed.code.head();
    const u32 bar = shared_base() + static_cast<u32>(head.bar);
    Failure why = failure((shared_base() & 1023) != 0 ? REPORT_PLACE : 0);
    if (!why) why = waited_for(load_and_wait(p, placed, bar), bar, 0, 0);
    if (why) {
        Warp w{};
        give_up(p.header, w, why);
        ptx::nanosleep(LANDING_NS);
        return;
    }
    store_and_wait(p, placed);
    if (head.flags & ONCE_FLAG_INVAL) ptx::mbarrier_inval(bar);
}

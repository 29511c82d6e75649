// Tensor copies and bulk groups, with the rank, kind and number of groups of a record.
#pragma once
#include "ptx_tensor.cuh"
#include "wait.cuh"

OX_DEVICE void load(u32 rank, u32 to, u64 map, u32 bar, const ptx::Coords& at) {
    switch (rank) {
        case 1: ptx::cp_async_bulk_tensor_1d_g2s(to, map, bar, at); break;
        case 2: ptx::cp_async_bulk_tensor_2d_g2s(to, map, bar, at); break;
        case 3: ptx::cp_async_bulk_tensor_3d_g2s(to, map, bar, at); break;
        case 4: ptx::cp_async_bulk_tensor_4d_g2s(to, map, bar, at); break;
        default: ptx::cp_async_bulk_tensor_5d_g2s(to, map, bar, at); break;
    }
}

OX_DEVICE void load_multicast(u32 rank, u32 to, u64 map, u32 bar, const ptx::Coords& at, u32 mask) {
    switch (rank) {
        case 1: ptx::cp_async_bulk_tensor_1d_g2s_multicast(to, map, bar, at, mask); break;
        case 2: ptx::cp_async_bulk_tensor_2d_g2s_multicast(to, map, bar, at, mask); break;
        case 3: ptx::cp_async_bulk_tensor_3d_g2s_multicast(to, map, bar, at, mask); break;
        case 4: ptx::cp_async_bulk_tensor_4d_g2s_multicast(to, map, bar, at, mask); break;
        default: ptx::cp_async_bulk_tensor_5d_g2s_multicast(to, map, bar, at, mask); break;
    }
}

OX_DEVICE void store(u32 rank, u64 map, u32 from, const ptx::Coords& at) {
    switch (rank) {
        case 1: ptx::cp_async_bulk_tensor_1d_s2g(map, from, at); break;
        case 2: ptx::cp_async_bulk_tensor_2d_s2g(map, from, at); break;
        case 3: ptx::cp_async_bulk_tensor_3d_s2g(map, from, at); break;
        case 4: ptx::cp_async_bulk_tensor_4d_s2g(map, from, at); break;
        default: ptx::cp_async_bulk_tensor_5d_s2g(map, from, at); break;
    }
}

#define OX_BY_RANK(OP)                                                                  \
    switch (rank) {                                                                     \
        case 1: ptx::cp_reduce_async_bulk_tensor_1d_##OP(map, from, at); break;         \
        case 2: ptx::cp_reduce_async_bulk_tensor_2d_##OP(map, from, at); break;         \
        case 3: ptx::cp_reduce_async_bulk_tensor_3d_##OP(map, from, at); break;         \
        case 4: ptx::cp_reduce_async_bulk_tensor_4d_##OP(map, from, at); break;         \
        default: ptx::cp_reduce_async_bulk_tensor_5d_##OP(map, from, at); break;        \
    }                                                                                   \
    break;

// `op`: position in isa.dtypes.REDUCE_OPS.
OX_DEVICE void reduce(u32 op, u32 rank, u64 map, u32 from, const ptx::Coords& at) {
    switch (op) {
        case 0: OX_BY_RANK(add)
        case 1: OX_BY_RANK(min)
        case 2: OX_BY_RANK(max)
        case 3: OX_BY_RANK(inc)
        case 4: OX_BY_RANK(dec)
        case 5: OX_BY_RANK(and)
        case 6: OX_BY_RANK(or)
        default: OX_BY_RANK(xor)
    }
}
#undef OX_BY_RANK

// Waits until at most `pending` groups of this thread are unfinished (READ: have not read their shared memory).
template <bool READ, int PENDING>
OX_DEVICE void wait_group_of() {
    if constexpr (READ) ptx::cp_async_bulk_wait_group_read<PENDING>();
    else ptx::cp_async_bulk_wait_group<PENDING>();
}

template <bool READ>
OX_DEVICE void wait_group(u32 pending) {
    if (pending == 1) {  // the most common ones first
        wait_group_of<READ, 1>();
        return;
    }
    switch (pending) {
        case 0: wait_group_of<READ, 0>(); break;
        case 2: wait_group_of<READ, 2>(); break;
        case 3: wait_group_of<READ, 3>(); break;
        case 4: wait_group_of<READ, 4>(); break;
        case 5: wait_group_of<READ, 5>(); break;
        case 6: wait_group_of<READ, 6>(); break;
        case 7: wait_group_of<READ, 7>(); break;
        case 8: wait_group_of<READ, 8>(); break;
        case 9: wait_group_of<READ, 9>(); break;
        case 10: wait_group_of<READ, 10>(); break;
        case 11: wait_group_of<READ, 11>(); break;
        case 12: wait_group_of<READ, 12>(); break;
        case 13: wait_group_of<READ, 13>(); break;
        case 14: wait_group_of<READ, 14>(); break;
        default: wait_group_of<READ, 15>(); break;
    }
}

// The slot of a record's map: of a table that of the entry that a register says.
template <class W, class R>
OX_DEVICE u32 map_slot(const W& w, const R& r) {
    return r.map() + static_cast<u32>(r.imm(4) + w.or_zero(static_cast<u32>(r.imm(3) - 1) & 0xff));
}

// The four tensor ops, by one lane.
template <class L, class W>
OX_DEVICE void copy_op(const L& launch, const W& w, const RecordAt<L>& r) {
    const u32 rank = r.aux();
    ptx::Coords at;
    for (u32 i = 0; i < 5; ++i) at.c[i] = i < rank ? static_cast<i32>(w.or_zero(r.reg(2 + rank - i))) : 0;
    const u32 tile = w.address(r, 0), bar = w.address(r, 1);
    const u32 mask = static_cast<u32>(w.value(r, 2)), slot = map_slot(w, r);
    __syncwarp();
    if (w.issues()) {
        const u64 map = launch.map(slot);
        switch (r.op()) {
            case OP_TENSOR_G2S: load(rank, tile, map, bar, at); break;
            case OP_TENSOR_G2S_MULTICAST: load_multicast(rank, tile, map, bar, at, mask); break;
            case OP_TENSOR_S2G: store(rank, map, tile, at); break;
            default: reduce(r.flags(), rank, map, tile, at); break;
        }
    }
    __syncwarp();
}

template <class W, class R>
OX_DEVICE void group_op(const W& w, const R& r) {
    __syncwarp();
    if (w.issues()) {
        const u32 pending = static_cast<u32>(r.imm(0));
        switch (r.op()) {
            case OP_COMMIT_GROUP: ptx::cp_async_bulk_commit_group(); break;
            case OP_WAIT_GROUP: wait_group<false>(pending); break;
            default: wait_group<true>(pending); break;
        }
    }
    __syncwarp();
}

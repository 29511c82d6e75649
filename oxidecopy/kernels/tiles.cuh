// Plain accesses by all threads in scope together: how they share the work, how tiles lie, FILL and IOTA; LOAD_INDEX and LOAD_ROWS.
#pragma once
#include "copies.cuh"
#include "elem.cuh"

// Which units of work this lane does: u with low <= u % total < high, rank by rank.
struct Share {
    u32 first, total;      // this lane's first unit
    u32 high_and_lanes;    // the first rank that is not the agent's, lanes of the agent << 16

    template <class L, class W, class R>
    __device__ __forceinline__ Share(const L& launch, const W& w, const R& r) {
        const u32 entry = w.entry(launch).y, part = static_cast<u32>(r.imm(2));
        first = (part & 0xffff) + (entry & 0xffff) + lane_number();
        total = static_cast<u32>(r.imm(3));
        high_and_lanes = part >> 16 | (entry & 0xffff0000);
    }

    __device__ __forceinline__ u32 high() const { return high_and_lanes & 0xffff; }
    __device__ __forceinline__ u32 lanes() const { return high_and_lanes >> 16; }
};

// Calls f(row, column, mine) for this lane's units of `rows` x `columns`. The warp stays together: lanes that have none left come along
// with `mine` false.
template <class F>
OX_DEVICE void each_unit(const Share& share, u32 rows, u32 columns, F f) {
    const u32 down = share.total / columns, right = share.total - down * columns;
#pragma unroll 1
    for (u32 rank = share.first; __any_sync(FULL_WARP, rank < share.high()); rank += share.lanes()) {
        u32 row = rank < share.high() ? rank / columns : rows, column = rank - row * columns;
#pragma unroll 1
        while (__any_sync(FULL_WARP, row < rows)) {
            f(row, column, row < rows);
            row += down;
            column += right;
            if (column >= columns) column -= columns, ++row;
        }
    }
}

// How a tile lies in shared memory: the `Layout` record at `pc`. What is used once is read again.
struct LayoutOf {
    u32 inner, rows, pitch;
    u32 bytes;  // rank, element_bytes, swizzle_mask, dtype

    template <class L>
    __device__ __forceinline__ LayoutOf(const L& launch, u32 pc) {
        pitch = launch.word(pc, 5);
        bytes = launch.word(pc, 6);
        rows = 1;
#pragma unroll 1
        for (u32 d = 0; d + 1 < rank(); ++d) rows *= launch.word(pc, d);
        inner = launch.word(pc, rank() - 1);
    }

    __device__ __forceinline__ u32 rank() const { return bytes & 0xff; }
    __device__ __forceinline__ u32 element_bytes() const { return bytes >> 8 & 0xff; }
    __device__ __forceinline__ u32 swizzle_mask() const { return bytes >> 16 & 0xff; }
    __device__ __forceinline__ u32 dtype() const { return bytes >> 24; }

    // Address of byte `byte` of a row of the tile at `tile`.
    __device__ __forceinline__ u32 at(u32 tile, u32 row, u32 byte) const {
        const u32 address = tile + row * pitch + byte;
        return address ^ (address >> 7 & swizzle_mask()) << 4;
    }
};

// ---- FILL and IOTA
OX_DEVICE void put(u32 address, u32 element_bytes, u64 bits) {
    switch (element_bytes) {
        case 1: ptx::st_shared_u8(address, static_cast<u32>(bits)); break;
        case 2: ptx::st_shared_u16(address, static_cast<u32>(bits)); break;
        case 4: ptx::st_shared_u32(address, static_cast<u32>(bits)); break;
        default: ptx::st_shared_u64(address, bits); break;
    }
}

OX_DEVICE u64 get(u32 address, u32 element_bytes) {
    switch (element_bytes) {
        case 1: return ptx::ld_shared_u8(address);
        case 2: return ptx::ld_shared_u16(address);
        case 4: return ptx::ld_shared_u32(address);
        default: return ptx::ld_shared_u64(address);
    }
}

OX_DEVICE u64 repeated(u64 bits, u32 element_bytes) {
    if (element_bytes == 1) bits = (bits & 0xff) * 0x0101010101010101ull;
    if (element_bytes == 2) bits = (bits & 0xffff) * 0x0001000100010001ull;
    if (element_bytes == 4) bits = (bits & 0xffffffff) * 0x0000000100000001ull;
    return bits;
}

template <class L, class W>
OX_DEVICE void fill(const L& launch, const W& w, const RecordAt<L>& r) {
    const LayoutOf layout(launch, w.pc + 1);
    const Share share(launch, w, r);
    const u32 tile = w.address(r, 0), e = layout.element_bytes(), row_bytes = layout.inner * e;
    const u64 bits = repeated(launch.argument(static_cast<u32>(r.imm(1))), e);
    if (((tile | layout.pitch | row_bytes) & 15) == 0) {
        const u32 a = static_cast<u32>(bits), b = static_cast<u32>(bits >> 32);
        each_unit(share, layout.rows, row_bytes / 16, [&](u32 row, u32 column, bool mine) {
            if (mine) ptx::st_shared_v4(layout.at(tile, row, 16 * column), make_uint4(a, b, a, b));
        });
    } else {
        each_unit(share, layout.rows, layout.inner, [&](u32 row, u32 column, bool mine) {
            if (mine) put(layout.at(tile, row, column * e), e, bits);
        });
    }
    __syncwarp();
}

#ifdef OX_RESHAPE
// 16 bytes of elements with the indices first, first + step, ...
OX_DEVICE uint4 indices(u32 first, u32 step, u32 element_bytes, u32 dtype) {
    const u32 bits = 8 * element_bytes;
    u32 words[4];
    if (element_bytes == 8) {
#pragma unroll
        for (u32 k = 0; k < 4; k += 2) {
            const u64 wide = elem::from_index(first, dtype);
            words[k] = static_cast<u32>(wide), words[k + 1] = static_cast<u32>(wide >> 32);
            first += step;
        }
    } else {
#pragma unroll
        for (u32 k = 0; k < 4; ++k) {
            words[k] = 0;
#pragma unroll 1
            for (u32 shift = 0; shift < 32; shift += bits, first += step) {
                words[k] |= static_cast<u32>(elem::from_index(first, dtype)) << 32 - bits >> 32 - bits << shift;
            }
        }
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
}
#endif

template <class L, class W>
OX_DEVICE void iota(const L& launch, const W& w, const RecordAt<L>& r) {
    const LayoutOf layout(launch, w.pc + 1);
    const Share share(launch, w, r);
    const u32 tile = w.address(r, 0), axis = static_cast<u32>(r.imm(1)), e = layout.element_bytes();
    // The index along an outer axis is row / below % extent.
    const u32 extent = launch.word(w.pc + 1, axis);
    u32 below = 1;
#pragma unroll 1
    for (u32 d = axis + 1; d + 1 < layout.rank(); ++d) below *= launch.word(w.pc + 1, d);
#ifdef OX_RESHAPE  // elsewhere it takes few bytes of code, and time
    if (((tile | layout.pitch | layout.inner * e) & 15) == 0) {
        each_unit(share, layout.rows, layout.inner * e / 16, [&](u32 row, u32 column, bool mine) {
            const bool across = axis + 1 == layout.rank();
            const uint4 q = indices(across ? column * (16 / e) : row / below % extent, across, e, layout.dtype());
            if (mine) ptx::st_shared_v4(layout.at(tile, row, 16 * column), q);
        });
        __syncwarp();
        return;
    }
#endif
    each_unit(share, layout.rows, layout.inner, [&](u32 row, u32 column, bool mine) {
        const u32 index = axis + 1 == layout.rank() ? column : row / below % extent;
        if (mine) put(layout.at(tile, row, column * e), e, elem::from_index(index, layout.dtype()));
    });
    __syncwarp();
}

// ---- LOAD_INDEX: in skip mode too, so that warps agree on what depends on it
// Signed ones of fewer than 64 bits are extended: as unsigned numbers, negative ones are larger than any bound.
OX_DEVICE u64 integer_at(u64 address, u32 dtype) {
    switch (dtype) {
        case DT_U8: return *reinterpret_cast<const u8*>(address);
        case DT_U16: return *reinterpret_cast<const u16*>(address);
        case DT_U32: return *reinterpret_cast<const u32*>(address);
        case DT_I32: return static_cast<u64>(static_cast<i64>(*reinterpret_cast<const i32*>(address)));
        default: return *reinterpret_cast<const u64*>(address);
    }
}

// Reads what a lane's `index` names where it is `mine`; of those that are out of range the first one is told.
template <class L>
OX_DEVICE Failure read_index(const L& launch, u32 array, u32 dtype, bool mine, i32 index, u32 below, u64& value) {
    const u32 words = ARRAY_WORDS * array, extent = static_cast<u32>(launch.argument(words + 6));
    const bool there = index >= 0 && static_cast<u32>(index) < extent;
    value = static_cast<u64>(static_cast<i64>(index));
    if (mine && there) value = integer_at(launch.argument(words) + static_cast<u64>(index) * launch.argument(words + 1), dtype);
    const u32 bad = __ballot_sync(FULL_WARP, mine && !(there && value < below));
    if (!bad) return no_failure();
    const u32 who = __ffs(bad) - 1, position = __shfl_sync(FULL_WARP, !there, who);
    return Failure{REPORT_INDEX, 0, 0, position, __shfl_sync(FULL_WARP, value, who), position ? extent : below};
}

template <class L>
OX_DEVICE Failure load_index(const L& launch, Warp& w, const RecordAt<L>& r) {
    u64 value;
    const Failure why = read_index(launch, r.map(), r.aux(), true, w.value(r, 0), static_cast<u32>(w.value(r, 1)), value);
    w.set(r.reg(2), why ? 0 : static_cast<u32>(value));
    return why;
}

// ---- LOAD_ROWS: lane j reads the index of row j, and issues its load
template <class L>
OX_DEVICE Failure load_rows(const L& launch, const Warp& w, const RecordAt<L>& r) {
    const u32 tail = w.pc + 1, kinds = launch.word(tail, 0), rank = r.aux(), j = lane_number();
    const bool mine = j < launch.word(tail, 2);
    const i32 index = min(w.value(r, 2) + static_cast<i32>(launch.word(tail, 4) * j), static_cast<i32>(launch.word(tail, 5)));
    u64 value;
    const Failure why = read_index(launch, kinds & 0xff, kinds >> 8 & 0xff, mine, index, launch.word(tail, 6), value);
    if (why) return why;
    const u32 by = launch.word(tail, 1) * static_cast<u32>(value);
    const u32 tile = w.address(r, 0) + launch.word(tail, 3) * j, bar = w.address(r, 1), slot = map_slot(w, r);
    ptx::Coords at;
    for (u32 i = 0; i < 5; ++i) at.c[i] = (i < rank ? w.or_zero(r.reg(2 + rank - i)) : 0) + static_cast<i32>(i == (kinds >> 16 & 0xff) ? by : 0);
    __syncwarp();
    if (mine) load(rank, tile, launch.map(slot), bar, at);
    __syncwarp();
    return no_failure();
}

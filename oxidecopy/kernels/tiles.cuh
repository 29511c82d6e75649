// Plain accesses of tiles by all threads in scope together: STORE_GLOBAL, FILL, IOTA; and LOAD_INDEX.
#pragma once
#include "elem.cuh"
#include "ptx_tensor.cuh"
#include "wait.cuh"

// Which units of work this lane does: u with low <= u % total < high, rank by rank.
struct Share {
    u32 first, total;      // this lane's first unit
    u32 high_and_lanes;    // the first rank that is not the agent's, lanes of the agent << 16

    template <class L>
    __device__ __forceinline__ Share(const L& launch, const Warp& w, const RecordAt<L>& r) {
        const u32 entry = launch.warp_entry(warp_number()).y, part = static_cast<u32>(r.imm(2));
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

template <class L>
OX_DEVICE void fill(const L& launch, const Warp& w, const RecordAt<L>& r) {
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

template <class L>
OX_DEVICE void iota(const L& launch, const Warp& w, const RecordAt<L>& r) {
    const LayoutOf layout(launch, w.pc + 1);
    const Share share(launch, w, r);
    const u32 tile = w.address(r, 0), axis = static_cast<u32>(r.imm(1)), e = layout.element_bytes();
    // The index along an outer axis is row / below % extent.
    const u32 extent = launch.word(w.pc + 1, axis);
    u32 below = 1;
#pragma unroll 1
    for (u32 d = axis + 1; d + 1 < layout.rank(); ++d) below *= launch.word(w.pc + 1, d);
    each_unit(share, layout.rows, layout.inner, [&](u32 row, u32 column, bool mine) {
        const u32 index = axis + 1 == layout.rank() ? column : row / below % extent;
        if (mine) put(layout.at(tile, row, column * e), e, elem::from_index(index, layout.dtype()));
    });
    __syncwarp();
}

// ---- STORE_GLOBAL
// Moves 1 << log2 bytes.
OX_DEVICE void move(u32 log2, u64 to, u32 from) {
    switch (log2) {
        case 0: *reinterpret_cast<u8*>(to) = static_cast<u8>(ptx::ld_shared_u8(from)); break;
        case 1: *reinterpret_cast<u16*>(to) = static_cast<u16>(ptx::ld_shared_u16(from)); break;
        case 2: *reinterpret_cast<u32*>(to) = ptx::ld_shared_u32(from); break;
        case 3: *reinterpret_cast<u64*>(to) = ptx::ld_shared_u64(from); break;
        default: *reinterpret_cast<uint4*>(to) = ptx::ld_shared_v4(from); break;
    }
}

// The part of a tile that lies inside an array. Dimensions count from the innermost one, as for coordinates.
template <class L>
struct Target {
    const L& launch;
    u32 layout_at;  // record of the tile's layout
    u32 words;      // first argument word of the array
    LayoutOf layout;
    u32 tile;
    i32 start;         // lane d: coordinate d of the tile's first element
    u32 first, last;   // columns inside

    __device__ __forceinline__ u64 stride(u32 d) const { return launch.argument(words + layout.rank() - d); }

    // Words 6 to 8 hold the extents, two to a word, outermost first.
    __device__ __forceinline__ i64 extent(u32 d) const {
        const u32 outer = layout.rank() - 1 - d;
        const u64 pair = launch.argument(words + 6 + outer / 2);
        return static_cast<u32>(outer & 1 ? pair >> 32 : pair);
    }

    __device__ __forceinline__ i64 coordinate(u32 d) const { return __shfl_sync(FULL_WARP, start, d); }

    // Address of the row's column 0, which may lie outside; false when no element of the row is inside. All lanes, each with its row.
    __device__ __forceinline__ bool row_address(u32 row, u64& address) const {
        address = launch.argument(words) + static_cast<u64>(coordinate(0)) * stride(0);
        bool inside = true;
#pragma unroll 1
        for (u32 d = 1; d < layout.rank(); ++d) {
            u32 index = row;
            if (d + 1 < layout.rank()) {
                const u32 n = launch.word(layout_at, layout.rank() - 1 - d), above = row / n;
                index = row - above * n;
                row = above;
            }
            const i64 x = coordinate(d) + index;
            inside &= x >= 0 && x < extent(d);
            address += static_cast<u64>(x) * stride(d);
        }
        return inside;
    }

    // Largest power of two, at most 16, that divides all addresses and lengths: so many bytes are moved at once. Elements that do not lie
    // side by side are moved one by one.
    __device__ __forceinline__ u32 log2_bytes() const {
        const u32 e = layout.element_bytes();
        if (stride(0) != e) return __ffs(e) - 1;
        u32 all = 16 | tile | layout.pitch | first * e | last * e;
        all |= static_cast<u32>(launch.argument(words)) + static_cast<u32>(coordinate(0)) * e;
#pragma unroll 1
        for (u32 d = 1; d < layout.rank(); ++d) all |= static_cast<u32>(stride(d));
        return __ffs(all) - 1;
    }

    __device__ __forceinline__ void run(const Share& share) const {
        const u32 log2 = log2_bytes(), e = layout.element_bytes(), low = first * e;
        const bool dense = stride(0) == e;
        u32 known = ~0u;
        u64 address = 0;
        bool inside = false;
        each_unit(share, layout.rows, (last - first) * e >> log2, [&](u32 row, u32 column, bool mine) {
            if (__any_sync(FULL_WARP, row != known)) inside = row_address(row, address), known = row;
            if (!mine || !inside) return;
            const u32 byte = low + (column << log2);
            move(log2, address + (dense ? byte : (first + column) * stride(0)), layout.at(tile, row, byte));
        });
    }
};

template <class L>
OX_DEVICE void store_global(const L& launch, const Warp& w, const RecordAt<L>& r) {
    const LayoutOf layout(launch, w.pc + 1);
    const u32 rank = layout.rank(), reg = r.reg(lane_number() < rank ? 2 + rank - lane_number() : 3);
    const i32 start = static_cast<i32>(w.gather(reg));
    Target<L> target{launch, w.pc + 1, ARRAY_WORDS * r.map(), layout, w.address(r, 0), reg == NO_REG ? 0 : start, 0, 0};
    const i64 c = target.coordinate(0), inner = layout.inner, end = target.extent(0) - c;
    target.first = static_cast<u32>(c < 0 ? min(-c, inner) : 0);
    target.last = static_cast<u32>(end < 0 ? 0 : min(end, inner));
    if (target.first < target.last) target.run(Share(launch, w, r));
    __syncwarp();
}

// ---- LOAD_INDEX: in skip mode too, so that warps agree on what depends on it
template <class L>
OX_DEVICE Failure load_index(const L& launch, Warp& w, const RecordAt<L>& r) {
    const u32 words = ARRAY_WORDS * r.map();
    const i64 index = w.value(r, 0);
    const u32 below = static_cast<u32>(w.value(r, 1)), extent = static_cast<u32>(launch.argument(words + 6));
    const bool there = index >= 0 && index < extent;
    u64 value = 0;
    if (there) {
        const u64 address = launch.argument(words) + static_cast<u64>(index) * launch.argument(words + 1);
        switch (r.aux()) {
            case DT_U8: value = *reinterpret_cast<const u8*>(address); break;
            case DT_U16: value = *reinterpret_cast<const u16*>(address); break;
            case DT_U32: value = *reinterpret_cast<const u32*>(address); break;
            case DT_I32: value = static_cast<u64>(static_cast<i64>(*reinterpret_cast<const i32*>(address))); break;
            default: value = *reinterpret_cast<const u64*>(address); break;
        }
    }
    const bool good = there && value < below;  // as unsigned, negative ones are too large
    w.set(r.reg(2), good ? static_cast<u32>(value) : 0);
    if (good) return no_failure();
    return Failure{REPORT_INDEX, 0, 0, !there, there ? value : static_cast<u64>(index), there ? below : extent};
}

// STORE_GLOBAL: plain stores of a tile, clipped at the edges of the array, in pieces as large as all addresses allow.
#pragma once
#include "tiles.cuh"

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

// Where the tile starts in the array: lane d holds coordinate d. Words 6 to 8 of the array hold the extents, two to a word, outermost first.
struct Narrow {
    i32 start;

    template <class L>
    static __device__ __forceinline__ i64 extent(const L& launch, u32 words, u32 outer) {
        const u64 pair = launch.argument(words + 6 + outer / 2);
        return static_cast<u32>(outer & 1 ? pair >> 32 : pair);
    }
};

// The part of a tile that lies inside an array. Dimensions count from the innermost one, as for coordinates. P: Narrow, or its 64-bit twin.
template <class L, class P>
struct Target {
    const L& launch;
    u32 layout_at;  // record of the tile's layout
    u32 words;      // first argument word of the array
    LayoutOf layout;
    u32 tile;
    P place;
    u32 first, last;   // columns inside

    __device__ __forceinline__ u64 stride(u32 d) const { return launch.argument(words + layout.rank() - d); }

    __device__ __forceinline__ i64 extent(u32 d) const { return P::extent(launch, words, layout.rank() - 1 - d); }

    __device__ __forceinline__ i64 coordinate(u32 d) const { return __shfl_sync(FULL_WARP, place.start, d); }

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

    // Rows of the tile's outer dimension that lie inside, for ranks of at most two.
    __device__ __forceinline__ void flat_rows(i64& low, i64& high) const {
        low = 0;
        high = layout.rows;
        if (layout.rank() < 2) return;
        const i64 c = coordinate(1);
        low = max(low, -c);
        high = min(high, extent(1) - c);
    }

    // Up to rank two a row's address is one product away; FLAT: that is so.
    template <bool FLAT>
    __device__ __forceinline__ void run(const Share& share) const {
        const u32 log2 = log2_bytes(), e = layout.element_bytes(), low = first * e;
        const u64 step = stride(0) == e ? 1ull << log2 : stride(0);  // from one unit to the next
        u64 pitch = 0, address = 0;
        u32 known = ~0u, low_row = 0, rows = 0;
        bool inside = false;
        if constexpr (FLAT) {
            i64 from = 0, to = 0;
            flat_rows(from, to);
            low_row = static_cast<u32>(from);
            rows = to > from ? static_cast<u32>(to - from) : 0;
            const bool two = layout.rank() == 2;
            pitch = two ? stride(1) : 0;
            address = launch.argument(words) + static_cast<u64>(coordinate(0) + first) * stride(0);
            if (two) address += static_cast<u64>(coordinate(1)) * pitch;
        }
        each_unit(share, layout.rows, (last - first) * e >> log2, [&](u32 row, u32 column, bool mine) {
            u64 to = address + row * pitch;
            if constexpr (FLAT) {
                inside = row - low_row < rows;
            } else {
                if (__any_sync(FULL_WARP, row != known)) inside = row_address(row, address), known = row;
                to = address + static_cast<u64>(first) * stride(0);
            }
            if (mine && inside) move(log2, to + column * step, layout.at(tile, row, low + (column << log2)));
        });
    }
};

// The register that holds this lane's coordinate.
template <class L>
OX_DEVICE u32 coordinate_reg(const RecordAt<L>& r, u32 rank) {
    return r.reg(lane_number() < rank ? 2 + rank - lane_number() : 3);
}

// `words`: of the array.
template <class L, class W, class P>
OX_DEVICE void store_tile(const L& launch, const W& w, const RecordAt<L>& r, u32 words, const LayoutOf& layout, const P& place) {
    Target<L, P> target{launch, w.pc + 1, words, layout, w.address(r, 0), place, 0, 0};
    const u32 rank = layout.rank();
    const i64 c = target.coordinate(0), inner = layout.inner, end = target.extent(0) - c;
    target.first = static_cast<u32>(c < 0 ? min(-c, inner) : 0);
    target.last = static_cast<u32>(end < 0 ? 0 : min(end, inner));
    if (target.first < target.last) {
        const Share share(launch, w, r);
        if (rank <= 2) target.template run<true>(share);
        else target.template run<false>(share);
    }
    __syncwarp();
}

template <class L>
OX_DEVICE void store_global(const L& launch, const Warp& w, const RecordAt<L>& r) {
    const LayoutOf layout(launch, w.pc + 1);
    const u32 reg = coordinate_reg(r, layout.rank());
    const i32 start = static_cast<i32>(w.gather(reg));
    store_tile(launch, w, r, ARRAY_WORDS * r.map(), layout, Narrow{reg == NO_REG ? 0 : start});
}

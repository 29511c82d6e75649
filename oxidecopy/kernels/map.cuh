// MAP_TILES: an element expression over tiles, each in its own layout. A stack machine; element by element.
#pragma once
#include "tiles.cuh"

// The newest value is `s0`.
struct Values {
    u64 s0, s1, s2, s3, s4, s5, s6, s7;

    __device__ __forceinline__ void push(u64 v) {
        s7 = s6, s6 = s5, s5 = s4, s4 = s3, s3 = s2, s2 = s1, s1 = s0, s0 = v;
    }

    // Takes the two newest away and puts one value there.
    __device__ __forceinline__ void replace_two(u64 v) {
        s0 = v, s1 = s2, s2 = s3, s3 = s4, s4 = s5, s5 = s6, s6 = s7;
    }

    // As above, of three.
    __device__ __forceinline__ void replace_three(u64 v) {
        replace_two(v);
        replace_two(v);
    }
};

template <class L>
struct Mapper {
    const L& launch;
    u32 layouts_at;
    Parked tiles;  // lane i: address of input i

    // The warp stays together in here. A lane that is not `mine` reads nothing: another one may be writing there.
    __device__ __forceinline__ u64 input(u32 number, u32 row, u32 column, bool mine) const {
        const u32 pitch = launch.word(layouts_at + 1 + number, 5), bytes = launch.word(layouts_at + 1 + number, 6);
        const u32 element_bytes = bytes >> 8 & 0xff, mask = bytes >> 16 & 0xff;
        const u32 address = tiles.take(number) + row * pitch + column * element_bytes;
        return mine ? get(address ^ (address >> 7 & mask) << 4, element_bytes) : 0;
    }

    // The expression's `count` instructions at record `at`, for one element of each lane.
    __device__ __forceinline__ u64 element(u32 at, u32 count, u32 row, u32 column, bool mine) const {
        Values stack{};
#pragma unroll 1
        for (u32 i = 0; i < count; ++i) {
            const uint2 in = launch.instr(at, i);
            const u32 fn = in.x & 0xff, dtype = in.x >> 8 & 0xff, source = in.x >> 16 & 0xff;
            switch (fn) {
                case ELEM_INPUT: {
                    const u32 along = in.x >> 24;  // of a vector, that of the row or of the column: its elements lie in its first row
                    stack.push(input(source, along == 0 ? row : 0, along == 1 ? row : column, mine));
                    break;
                }
                case ELEM_WORD: stack.push(launch.argument(in.y)); break;
                case ELEM_NEG: stack.s0 = elem::negate(stack.s0, dtype); break;
                case ELEM_CAST: stack.s0 = elem::cast(stack.s0, source, dtype); break;
                case ELEM_SELECT: stack.replace_three(elem::one_nan(stack.s2 ? stack.s1 : stack.s0, dtype)); break;
                default:
                    if (fn >= ELEM_ABS) stack.s0 = elem::function(fn, stack.s0, dtype);
                    else stack.replace_two(elem::combine(fn, stack.s1, stack.s0, dtype));
                    break;
            }
        }
        return stack.s0;
    }
};

// Records behind a MAP_TILES: layouts of out and inputs, then the instructions.
template <class L>
OX_DEVICE u32 behind_map(u32 pc, const RecordAt<L>& r) {
    return pc + 2 + r.aux() + (static_cast<u32>(r.imm(1)) + 3) / 4;
}

template <class L, class W>
OX_DEVICE void map_tiles(const L& launch, const W& w, const RecordAt<L>& r) {
    const u32 inputs = r.aux(), out = w.address(r, 0);
    const LayoutOf layout(launch, w.pc + 1);
    const Share share(launch, w, r);
    Mapper<L> mapper{launch, w.pc + 1, {}};
#pragma unroll 1
    for (u32 i = 0; i < inputs; ++i) {
        const u32 tile = shared_base() + launch.word(w.pc + 2 + i, 7) + static_cast<u32>(w.or_zero(r.reg(1 + i)));
        mapper.tiles.put(lane_number(), i, tile);
    }
    const u32 at = w.pc + 2 + inputs, count = static_cast<u32>(r.imm(1));
    each_unit(share, layout.rows, layout.inner, [&](u32 row, u32 column, bool mine) {
        const u64 value = mapper.element(at, count, row, column, mine);
        if (mine) put(layout.at(out, row, column * layout.element_bytes()), layout.element_bytes(), value);
    });
    __syncwarp();
}

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
};

template <class L>
struct Mapper {
    const L& launch;
    u32 layouts_at, code_at, instructions;
    u32 tile[4];  // of each input

    __device__ __forceinline__ u64 input(u32 number, u32 row, u32 column) const {
        const uint4 a = launch.quad(RECORD_BYTES * (layouts_at + 1 + number) + 16);  // shape4, pitch, the bytes, tile
        const u32 element_bytes = a.z >> 8 & 0xff, mask = a.z >> 16 & 0xff;
        const u32 start = number == 0 ? tile[0] : number == 1 ? tile[1] : number == 2 ? tile[2] : tile[3];
        const u32 address = start + row * a.y + column * element_bytes;
        return get(address ^ (address >> 7 & mask) << 4, element_bytes);
    }

    __device__ __forceinline__ u64 element(u32 row, u32 column) const {
        Values stack{};
#pragma unroll 1
        for (u32 i = 0; i < instructions; ++i) {
            const uint2 in = launch.instr(code_at, i);
            const u32 fn = in.x & 0xff, dtype = in.x >> 8 & 0xff, source = in.x >> 16 & 0xff;
            switch (fn) {
                case ELEM_INPUT: stack.push(input(source, row, column)); break;
                case ELEM_WORD: stack.push(launch.argument(in.y)); break;
                case ELEM_NEG: stack.s0 = elem::negate(stack.s0, dtype); break;
                case ELEM_CAST: stack.s0 = elem::cast(stack.s0, source, dtype); break;
                default: stack.replace_two(elem::combine(fn, stack.s1, stack.s0, dtype)); break;
            }
        }
        return stack.s0;
    }
};

// Records behind a MAP_TILES: layouts of out and inputs, then the instructions.
OX_DEVICE u32 behind_map(u32 pc, const Words& r) {
    return pc + 2 + r.aux() + (static_cast<u32>(r.imm(1)) + 3) / 4;
}

template <class L>
OX_DEVICE void map_tiles(const L& launch, const Warp& w, const Words& r) {
    const u32 inputs = r.aux(), out = w.address(r, 0);
    const LayoutOf layout(launch, w.pc + 1);
    const Share share(launch, w, r);
    Mapper<L> mapper{launch, w.pc + 1, w.pc + 2 + inputs, static_cast<u32>(r.imm(1)), {}};
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
        const i32 more = w.or_zero(r.reg(1 + i));
        if (i < inputs) mapper.tile[i] = shared_base() + static_cast<u32>(more) + launch.word(w.pc + 2 + i, 7);
    }
    each_unit(share, layout.rows, layout.inner, [&](u32 row, u32 column, bool mine) {
        if (mine) put(layout.at(out, row, column * layout.element_bytes()), layout.element_bytes(), mapper.element(row, column));
    });
    __syncwarp();
}

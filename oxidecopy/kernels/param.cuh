// The launch parameter, and where things lie in it: maps, header, warp table, argument words, code.
#pragma once
#include "ptx.cuh"

constexpr u32 READ_AHEAD = 128;  // records

OX_DEVICE u32 warp_number() {
    return threadIdx.x >> 5;
}

OX_DEVICE u32 lane_number() {
    return threadIdx.x & 31;
}

struct alignas(128) Map {
    u8 bytes[MAP_BYTES];
};

// MAPS inline ones; BYTES in all. The blob: warp table, argument words, code (unless that lies in global memory).
template <u32 MAPS_, u32 BYTES>
struct alignas(128) Parameter {
    static constexpr u32 MAPS = MAPS_;
    Map map[MAPS];
    Header header;
    alignas(16) u8 blob[BYTES - MAPS * MAP_BYTES - HEADER_BYTES];
};
using Small = Parameter<INLINE_MAPS_SMALL, PARAM_BYTES_SMALL>;
using Medium = Parameter<INLINE_MAPS_MEDIUM, PARAM_BYTES_MEDIUM>;
using Large = Parameter<INLINE_MAPS_LARGE, PARAM_BYTES_LARGE>;
static_assert(sizeof(Small) == PARAM_BYTES_SMALL && sizeof(Medium) == PARAM_BYTES_MEDIUM && sizeof(Large) == PARAM_BYTES_LARGE);

// The launch as a warp sees it. P: the parameter's type; GLOBAL: the code lies in global memory, not in the blob; PAIRS_: loops of two loads
// are run by code of their own.
template <class P, bool GLOBAL, bool PAIRS_ = false>
struct Launch {
    static constexpr bool PAIRS = PAIRS_;
    const P& p;

    __device__ __forceinline__ explicit Launch(const P& parameter) : p(parameter) {}

    __device__ __forceinline__ const Header& header() const { return p.header; }

    // Word `k` of record `pc`.
    __device__ __forceinline__ u32 word(u32 pc, u32 k) const {
        const u32 offset = RECORD_BYTES * pc + 4 * k;
        if constexpr (GLOBAL) return __ldg(reinterpret_cast<const u32*>(p.header.code + offset));
        else return *reinterpret_cast<const u32*>(p.blob + p.header.code_offset + offset);
    }

    // Words 4 * `k` to 4 * `k` + 3 behind the start of record `pc`.
    __device__ __forceinline__ uint4 quad(u32 pc, u32 k) const {
        const u32 offset = RECORD_BYTES * pc + 16 * k;
        if constexpr (GLOBAL) return __ldg(reinterpret_cast<const uint4*>(p.header.code + offset));
        else return *reinterpret_cast<const uint4*>(p.blob + p.header.code_offset + offset);
    }

    // Instruction `i` of a list that starts with record `pc`.
    __device__ __forceinline__ uint2 instr(u32 pc, u32 i) const {
        const u32 offset = RECORD_BYTES * pc + 8 * i;
        if constexpr (GLOBAL) return __ldg(reinterpret_cast<const uint2*>(p.header.code + offset));
        else return *reinterpret_cast<const uint2*>(p.blob + p.header.code_offset + offset);
    }

    // Brings in the records from `pc` to at most `last`, READ_AHEAD of them: otherwise each is waited for when it is read first, as memory comes by
    // sectors of 32 bytes, which are records. True where there is no code, but ones.
    __device__ __forceinline__ bool read_ahead(u32 pc, u32 last) const {
        u32 all = ~0u;
#pragma unroll
        for (u32 i = 0; i < READ_AHEAD; i += 32) all &= word(min(pc + i + lane_number(), last), 0);
        return __all_sync(FULL_WARP, all == ~0u);
    }

    __device__ __forceinline__ u64 argument(u32 word) const {
        return *reinterpret_cast<const u64*>(p.blob + p.header.args_offset + 8 * word);
    }

    // Generic address of a map.
    __device__ __forceinline__ u64 map(u32 slot) const {
        if (slot < P::MAPS) return reinterpret_cast<u64>(&p.map[slot]);
        return p.header.table + MAP_BYTES * (slot - P::MAPS);
    }

    // The warp table's entry: entry | threads << 16, first_lane | lanes << 16.
    __device__ __forceinline__ uint2 warp_entry(u32 warp) const { return *reinterpret_cast<const uint2*>(p.blob + 8 * warp); }
};

// A record of the code. Its words are read where they are used: they lie in the constant bank or the first-level cache, and registers are
// what is scarce.
template <class L>
struct RecordAt {
    const L& launch;
    u32 at;
    u32 head;  // word 0

    __device__ __forceinline__ u32 op() const { return head & 0xff; }
    __device__ __forceinline__ u32 aux() const { return head >> 8 & 0xff; }
    __device__ __forceinline__ u32 map() const { return head >> 16 & 0xff; }
    __device__ __forceinline__ u32 flags() const { return head >> 24; }
    __device__ __forceinline__ u32 reg(u32 k) const { return launch.word(at, 1 + k / 4) >> 8 * (k % 4) & 0xff; }
    __device__ __forceinline__ i32 imm(u32 k) const { return static_cast<i32>(launch.word(at, 3 + k)); }
};

// First byte of dynamic shared memory, as an address in the shared window.
extern __shared__ __align__(1024) u8 dynamic_shared[];

OX_DEVICE u32 shared_base() {
    return static_cast<u32>(__cvta_generic_to_shared(dynamic_shared));
}

OX_DEVICE u32 cta_number() {
    return blockIdx.x + ptx::nctaid<0>() * (blockIdx.y + ptx::nctaid<1>() * blockIdx.z);
}

OX_DEVICE u32 cta_count() {
    return ptx::nctaid<0>() * ptx::nctaid<1>() * ptx::nctaid<2>();
}

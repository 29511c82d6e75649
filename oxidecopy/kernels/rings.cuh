// What fused loops over the stages of a ring have in common: their records, coordinates, the counter that gives tiles.
//
// The warp works in batches. Lane l stands for copy l / per of iteration l % per of the batch, per = 32 / copies: all coordinates of a
// batch are computed at once, then its iterations run one by one.
#pragma once
#include "barriers.cuh"
#include "copies.cuh"

// The `Ring` record at `at`, read where it is used.
template <class L>
struct RingAt {
    const L& launch;
    u32 at;

    __device__ __forceinline__ u32 full(u32 stage) const { return shared_base() + launch.word(at, 0) + 8 * stage; }
    __device__ __forceinline__ u32 empty(u32 stage) const { return shared_base() + launch.word(at, 1) + 8 * stage; }
    __device__ __forceinline__ u32 nbytes() const { return launch.word(at, 2); }
    __device__ __forceinline__ i32 offset() const { return static_cast<i32>(launch.word(at, 3)); }
    __device__ __forceinline__ u32 stages() const { return launch.word(at, 4) & 0xffff; }
    __device__ __forceinline__ u32 copies() const { return launch.word(at, 4) >> 16 & 0xff; }
    __device__ __forceinline__ bool read() const { return (launch.word(at, 4) >> 24 & RING_FLAG_READ) != 0; }
    __device__ __forceinline__ bool counter() const { return (launch.word(at, 4) >> 24 & RING_FLAG_COUNTER) != 0; }
    __device__ __forceinline__ u32 evals() const { return launch.word(at, 5) & 0xffff; }
    __device__ __forceinline__ u32 empty_behind() const { return launch.word(at, 5) >> 16; }
    __device__ __forceinline__ i32 first() const { return static_cast<i32>(launch.word(at, 6)); }
    __device__ __forceinline__ u32 peers() const { return launch.word(at, 7); }
    __device__ __forceinline__ u32 copy(u32 j) const { return at + 1 + j; }
    __device__ __forceinline__ u32 behind() const { return at + 1 + copies() + (evals() + 3) / 4; }

    // Iterations of a batch.
    __device__ __forceinline__ u32 per() const {
        const u32 n = copies();
        return n == 1 ? 32 : n == 2 ? 16 : n == 3 ? 10 : 8;
    }

    // Of a batch, the copy that a lane stands for; for three copies two lanes stand for a fourth that is none.
    __device__ __forceinline__ u32 mine(u32 lane) const {
        const u32 p = per();
        return (lane >= p) + (lane >= 2 * p) + (lane >= 3 * p);
    }

    __device__ __forceinline__ u32 which(u32 lane) const { return lane - mine(lane) * per(); }
};

// What is needed to issue a copy: words of its record, with registers read.
struct CopyOf {
    u32 bytes;  // map, rank, kind, reduce
    u32 tile, stride, mask;

    // Each lane may have a record of its own.
    template <class L>
    __device__ __forceinline__ CopyOf(const L& launch, const Warp& w, u32 at) {
        const u32 regs = launch.word(at, 5), more = w.gather(regs & 0xff), bits = w.gather(regs >> 8 & 0xff);
        bytes = launch.word(at, 0);
        tile = shared_base() + launch.word(at, 1) + ((regs & 0xff) == NO_REG ? 0 : more);
        stride = launch.word(at, 2);
        mask = launch.word(at, 3) + ((regs >> 8 & 0xff) == NO_REG ? 0 : bits);
    }

    __device__ __forceinline__ u32 map() const { return bytes & 0xff; }
    __device__ __forceinline__ u32 rank() const { return bytes >> 8 & 0xff; }
    __device__ __forceinline__ u32 kind() const { return bytes >> 16 & 0xff; }
    __device__ __forceinline__ u32 op() const { return bytes >> 24; }
};

// Position in the ring: iteration k is stage k % stages of round k / stages.
struct Place {
    u32 stage, round;

    __device__ __forceinline__ Place(i32 k, u32 stages) : stage(static_cast<u32>(k) % stages), round(static_cast<u32>(k) / stages) {}

    __device__ __forceinline__ void step(u32 stages) {
        if (++stage == stages) stage = 0, ++round;
    }
};

// Coordinates of copy `mine` for this lane's iteration, or tile. Which of the loop's instructions are a copy's is said in its record.
template <class L>
OX_DEVICE void coordinates(const RingAt<L>& ring, const Warp& w, u32 mine, i32 iteration, i32 tile, ptx::Coords& at) {
    const u32 copies = ring.copies();
#pragma unroll 1
    for (u32 j = 0; j < copies; ++j) {
        const u32 range = ring.launch.word(ring.copy(j), 4), end = range >> 16;
        i32 acc = 0;
        Stack stack{};
        uint2 in = ring.launch.instr(ring.copy(copies), range & 0xffff);
#pragma unroll 1
        for (u32 i = range & 0xffff; i < end; ++i) {
            const u32 fn = in.x & 0xff, reg = in.x >> 8 & 0xff;
            const i32 imm = static_cast<i32>(in.y);
            in = ring.launch.instr(ring.copy(copies), min(i + 1, end - 1));  // on its way while this one runs
            if (fn != EVAL_OUT) {
                eval_step(w, fn, reg, imm, iteration, tile, acc, stack);
                continue;
            }
#pragma unroll
            for (u32 d = 0; d < 5; ++d) at.c[d] = mine == j && reg == d ? acc : at.c[d];
            acc = stack.pop();
        }
    }
}

// ---- the counter: two u32 in global memory, the next tile and how many CTAs are done. Shared memory at stage_slots: how many tiles
// this CTA was given (NO_TILE: not known yet), then the tile of each stage, with the parity of its round in bit 31: who looks ahead, before
// the stage's barrier has ordered anything, sees by it whether the tile is there yet.
constexpr u32 TILE_BITS = NO_TILE >> 1;

OX_DEVICE u32 tile_of(u32 slot) {
    return (slot & TILE_BITS) == TILE_BITS ? NO_TILE : slot & TILE_BITS;
}

OX_DEVICE u32 slot_with(u32 tile, u32 round) {
    return (tile & TILE_BITS) | (round & 1) << 31;
}

OX_DEVICE u32 slot_of(const Header& header, u32 stage) {
    return shared_base() + header.stage_slots + 4 + 4 * stage;
}

// Several small tiles at once hide the counter's latency. Large ones hide it themselves, and are best asked for in the order in which they
// lie; so are all towards the end, when all CTAs should end together.
OX_DEVICE u32 tiles_at_once(u32 left, u32 nbytes) {
    const u32 share = nbytes >= 16384 ? 1u : left / (4 * cta_count());
    return share >= 4 ? 4 : share >= 2 ? 2 : 1;
}

// Lane 0 takes tiles; the others' result means nothing.
OX_DEVICE u32 take(const Header& header, const Warp& w, u32 count) {
    return lane_number() == 0 ? ptx::atom_add_u32(header.counter, count) : 0;
}

// This CTA takes no more, and was given `k` tiles. The last CTA makes the counter ready for the next launch.
OX_DEVICE void counter_done(const Header& header, const Warp& w, u32 k) {
    if (lane_number() == 0) {
        ptx::st_volatile_shared_u32(slot_of(header, 0) - 4, k);
        const u32 last = cta_count() - 1;
        if (ptx::atom_inc_u32(header.counter + 4, last) == last) ptx::st_global_u32(header.counter, 0);
    }
    __syncwarp();
}

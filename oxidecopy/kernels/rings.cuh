// What fused loops over the stages of a ring have in common: their records, coordinates, the counter that gives tiles.
#pragma once
#include "barriers.cuh"
#include "coordinates.cuh"
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
    __device__ __forceinline__ bool by_records() const { return (launch.word(at, 4) >> 24 & RING_FLAG_PLACED) != 0; }
    __device__ __forceinline__ u32 evals() const { return launch.word(at, 5) & 0xffff; }
    __device__ __forceinline__ u32 empty_behind() const { return launch.word(at, 5) >> 16; }
    __device__ __forceinline__ i32 first() const { return static_cast<i32>(launch.word(at, 6)); }
    __device__ __forceinline__ u32 peers() const { return launch.word(at, 7); }
    __device__ __forceinline__ u32 copy(u32 j) const { return at + 1 + j; }
    __device__ __forceinline__ u32 behind() const { return at + 1 + copies() + (evals() + 3) / 4; }

    // One copy of kind `op`.
    __device__ __forceinline__ bool one(u32 op) const { return copies() == 1 && (launch.word(copy(0), 0) >> 16 & 0xff) == op; }
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

// ---- coordinates of the iterations that come next: `compute` them for some, then ask `of` for each. `number` is the tile where a counter
// gives tiles, else the iteration. There are two ways, which are told apart before the loop starts. COPIES: of the loop, 0 where only its
// record knows.

// A record for each coordinate. Lane 8 * u + d has coordinate d of unit u, which is copy u / PER of a number that leaves u % PER when divided
// by PER; there are four units.
template <class L>
struct ByRecords {
    static constexpr bool BATCHES = false;  // they are computed on the way
    uint4 magic;  // of this lane's record: magic, modulus_magic, shifts, modulus
    u32 step, offset, scale, base;
    i32 at;

    static constexpr __device__ __forceinline__ u32 per(u32 copies) { return copies == 1 ? 4 : copies == 2 ? 2 : 1; }

    template <u32 COPIES>
    static __device__ __forceinline__ u32 per(const RingAt<L>& ring) { return per(COPIES ? COPIES : ring.copies()); }

    __device__ __forceinline__ ByRecords(const RingAt<L>& ring, const Warp& w) {
        constexpr u32 QUADS = COORDINATE_BYTES / 16;
        const u32 copies = ring.copies(), range = ring.launch.word(ring.copy(min(lane_number() / (8 * per(copies)), copies - 1)), 4);
        const u32 begin = range & 0xffff, k = QUADS * (begin + min(lane_number() % 8, (range >> 16) - begin - 1));
        const uint4 steps = ring.launch.quad(ring.copy(copies), k);
        magic = ring.launch.quad(ring.copy(copies), k + 1);
        const uint4 rest = ring.launch.quad(ring.copy(copies), k + 2);
        const u32 reg = magic.z >> 16 & 0xff, base_reg = magic.z >> 24, x = w.gather(reg), y = w.gather(base_reg);
        step = steps.x;
        offset = steps.w + (reg == NO_REG ? 0 : x);
        scale = rest.x;
        base = rest.y + (base_reg == NO_REG ? 0 : y);
    }

    template <u32 COPIES>
    __device__ __forceinline__ void compute(const RingAt<L>& ring, const Warp&, i32, u32 number) {
        const u32 p = per<COPIES>(ring), x = offset + step * ((number & ~(p - 1)) + lane_number() / 8 % p);
        at = placed(x, magic.x, magic.z & 0xff, magic.y, magic.z >> 8 & 0xff, magic.w, scale, base);
    }

    // True where all coordinates grow by as much each time: by how much, and what they are for `number`, of copy j in lanes 8 * per * j on.
    __device__ __forceinline__ bool grows(u32 number, i32& first, i32& growth) const {
        first = static_cast<i32>((offset + step * number) * scale + base);
        growth = static_cast<i32>(step * scale);
        return __all_sync(FULL_WARP, magic.x == 0 && magic.y == 0);
    }

    // True where `number` has not been computed, but the one before it.
    template <u32 COPIES>
    static __device__ __forceinline__ bool ends(const RingAt<L>& ring, u32 number) {
        return (number & (per<COPIES>(ring) - 1)) == 0;
    }

    // Of copy j. `begin` is where the batch began.
    template <u32 COPIES>
    __device__ __forceinline__ ptx::Coords of(const RingAt<L>& ring, u32 j, u32, u32 number, u32 rank) const {
        const u32 p = per<COPIES>(ring), lane = 8 * (j * p + (number & (p - 1)));
        ptx::Coords its{};
#pragma unroll
        for (u32 d = 0; d < 5; ++d) {
            if (d < 2 || d < rank) its.c[d] = __shfl_sync(FULL_WARP, at, lane + d);
        }
        return its;
    }
};

// Instructions. Lane l has copy l / PER of iteration l % PER: a batch is computed at once.
template <class L>
struct ByInstructions {
    static constexpr bool BATCHES = true;
    ptx::Coords at;

    static __device__ __forceinline__ u32 per(u32 copies) { return copies == 1 ? 32 : copies == 2 ? 16 : copies == 3 ? 10 : 8; }

    template <u32 COPIES>
    static __device__ __forceinline__ u32 per(const RingAt<L>& ring) { return per(COPIES ? COPIES : ring.copies()); }

    __device__ __forceinline__ ByInstructions(const RingAt<L>&, const Warp&) : at{} {}

    // Which of the loop's instructions are a copy's is said in its record. For three copies two lanes stand for a fourth that is none.
    template <u32 COPIES>
    __device__ __forceinline__ void compute(const RingAt<L>& ring, const Warp& w, i32 iteration, u32 number) {
        const u32 copies = ring.copies(), p = per(copies), lane = lane_number();
        const u32 mine = (lane >= p) + (lane >= 2 * p) + (lane >= 3 * p), which = lane - mine * p;
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
                    eval_step(w, fn, reg, imm, iteration + static_cast<i32>(which), static_cast<i32>(number + which), acc, stack);
                    continue;
                }
#pragma unroll
                for (u32 d = 0; d < 5; ++d) at.c[d] = mine == j && reg == d ? acc : at.c[d];
                acc = stack.pop();
            }
        }
    }

    template <u32 COPIES>
    __device__ __forceinline__ ptx::Coords of(const RingAt<L>& ring, u32 j, u32 begin, u32 number, u32 rank) const {
        const u32 lane = j * per<COPIES>(ring) + number - begin;
        ptx::Coords its{};
#pragma unroll
        for (u32 d = 0; d < 5; ++d) {
            if (d < 2 || d < rank) its.c[d] = __shfl_sync(FULL_WARP, at.c[d], lane);
        }
        return its;
    }
};

// ---- the counter: two u32 in global memory, the next tile and how many CTAs are done. Shared memory at stage_slots: how many tiles
// this CTA was given (NO_TILE: not known yet), then a slot for each stage: its tile, how many tiles after it come in the next stages, and in
// bit 31 the parity of its round. Who looks ahead, before the stage's barrier has ordered anything, sees by it whether the tile is there yet.
// So slots are read and written by atomics.
OX_DEVICE u32 tile_of(u32 slot) {
    return slot & NO_TILE;
}

// The tile's own one included.
OX_DEVICE u32 tiles_from(u32 slot) {
    return (slot >> TILE_BITS & TILES_AT_ONCE - 1) + 1;
}

OX_DEVICE u32 slot_with(u32 tile, u32 tiles, u32 round) {
    return tile | (tiles - 1) << TILE_BITS | round << 31;
}

OX_DEVICE u32 slot_of(const Header& header, u32 stage) {
    return shared_base() + header.stage_slots + 4 + 4 * stage;
}

// A stage's slot, for the whole warp.
OX_DEVICE u32 slot_at(const Header& header, u32 stage) {
    const u32 slot = lane_number() == 0 ? ptx::atom_or_shared_u32(slot_of(header, stage), 0) : 0;
    return __shfl_sync(FULL_WARP, slot, 0);
}

// Several small tiles at once hide the counter's latency. Large ones hide it themselves, and are best asked for in the order in which they
// lie; so are all towards the end, when all CTAs should end together.
OX_DEVICE u32 tiles_at_once(u32 left, u32 nbytes) {
    static_assert(TILES_AT_ONCE == 8);
    const u32 ctas = cta_count();
    const u32 most = nbytes >= 16384 ? 1 : nbytes >= 8192 ? 2 : nbytes >= 4096 ? 4 : 8;
    return min(most, left >> 5 >= ctas ? 8u : left >> 4 >= ctas ? 4u : left >> 3 >= ctas ? 2u : 1u);
}

// Lane 0 takes tiles; the others' result means nothing.
OX_DEVICE u32 take(const Header& header, const Warp& w, u32 count) {
    return lane_number() == 0 ? ptx::atom_add_u32(header.counter, count) : 0;
}

// How many tiles this CTA was given, NO_TILE where the producer never says so: for warps in skip mode, that have no other way to learn it.
OX_DEVICE u32 tiles_given(const Header& header) {
    const u32 start = now();
    u32 end = NO_TILE;
#pragma unroll 1
    while (__any_sync(FULL_WARP, now() - start <= 4 * header.limit_us)) {
        end = __shfl_sync(FULL_WARP, ptx::atom_or_shared_u32(slot_of(header, 0) - 4, 0), 0);
        if (end != NO_TILE) break;
        ptx::nanosleep(1000);
    }
    return end;
}

// This CTA takes no more, and was given `k` tiles. The last CTA makes the counter ready for the next launch.
OX_DEVICE void counter_done(const Header& header, const Warp& w, u32 k) {
    if (lane_number() == 0) {
        ptx::atom_exch_shared_u32(slot_of(header, 0) - 4, k);
        const u32 last = cta_count() - 1;
        if (ptx::atom_inc_u32(header.counter + 4, last) == last) ptx::st_global_u32(header.counter, 0);
    }
    __syncwarp();
}

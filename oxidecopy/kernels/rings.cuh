// Fused loops over the stages of a ring: PRODUCE, DRAIN, and NEXT_STAGE, the head of loops whose tiles a counter gives.
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
        const u32 range = ring.launch.word(ring.copy(j), 4);
        i32 acc = 0;
        Stack stack{};
#pragma unroll 1
        for (u32 i = range & 0xffff; i < range >> 16; ++i) {
            const uint2 in = ring.launch.instr(ring.copy(copies), i);
            const u32 fn = in.x & 0xff, reg = in.x >> 8 & 0xff;
            if (fn != EVAL_OUT) {
                eval_step(w, fn, reg, static_cast<i32>(in.y), iteration, tile, acc, stack);
                continue;
            }
#pragma unroll
            for (u32 d = 0; d < 5; ++d) at.c[d] = mine == j && reg == d ? acc : at.c[d];
            acc = stack.pop();
        }
    }
}

// ---- the counter: two u32 in global memory, the next tile and how many CTAs are done. Shared memory at stage_slots: how many tiles
// this CTA was given (NO_TILE: not known yet), then the tile of each stage.
OX_DEVICE u32 slot_of(const Header& header, u32 stage) {
    return shared_base() + header.stage_slots + 4 + 4 * stage;
}

// Several tiles at once hide the counter's latency; towards the end one by one, so that all CTAs end together.
OX_DEVICE u32 tiles_at_once(u32 left) {
    const u32 share = left / (4 * cta_count());
    return share >= 4 ? 4 : share >= 2 ? 2 : 1;
}

// Lane 0 takes tiles; the others' result means nothing.
OX_DEVICE u32 take(const Header& header, const Warp& w, u32 count) {
    return w.lane == 0 ? ptx::atom_add_u32(header.counter, count) : 0;
}

// This CTA takes no more, and was given `k` tiles. The last CTA makes the counter ready for the next launch.
OX_DEVICE void counter_done(const Header& header, const Warp& w, u32 k) {
    if (w.lane == 0) {
        ptx::st_volatile_shared_u32(slot_of(header, 0) - 4, k);
        const u32 last = cta_count() - 1;
        if (ptx::atom_inc_u32(header.counter + 4, last) == last) ptx::st_global_u32(header.counter, 0);
    }
    __syncwarp();
}

// ---- PRODUCE
template <class L>
struct Producer {
    RingAt<L> ring;
    const Warp& w;
    Place place;
    i32 k;  // the iteration

    __device__ __forceinline__ const Header& header() const { return ring.launch.header(); }

    // Waits until the stage is free: phase round - 1 of `empty`.
    __device__ __forceinline__ u32 wait_empty() const {
        return place.round == 0 ? 0 : wait_parity(header(), ring.empty(place.stage), place.round & 1 ^ 1);
    }

    // Announces the stage's bytes and issues its copies, each by the lane that has its coordinates. `tile` is handed on.
    __device__ __forceinline__ void issue(const CopyOf& copy, bool mine, u32 tile, const ptx::Coords& at) const {
        const u32 full = ring.full(place.stage);
        if (w.lane == 0) {
            if (ring.counter()) ptx::st_volatile_shared_u32(slot_of(header(), place.stage), tile);
            if (ring.nbytes()) ptx::mbarrier_arrive_expect_tx(full, ring.nbytes());
        }
        if (mine) {
            const u32 to = copy.tile + copy.stride * place.stage;
            const u64 map = ring.launch.map(copy.map());
            if (copy.kind() == OP_TENSOR_G2S) load(copy.rank(), to, map, full, at);
            else load_multicast(copy.rank(), to, map, full, at, copy.mask);
        }
        __syncwarp();
    }

    // Iterations, or tiles, `base` to `end` - 1. While coordinates are computed all that is common to the lanes is put away.
    __device__ __forceinline__ u32 batch(u32 base, u32 end) {
        Parked parked{};
        parked.put(w.lane, 0, place.stage);
        parked.put(w.lane, 1, place.round);
        parked.put(w.lane, 2, base);
        parked.put(w.lane, 3, end);
        parked.put(w.lane, 4, static_cast<u32>(k));
        ptx::Coords at{};
        {
            const u32 mine = w.lane / ring.per(), which = w.lane - mine * ring.per();
            coordinates(ring, w, mine, k + static_cast<i32>(which), static_cast<i32>(base + which), at);
        }
        place.stage = parked.take(0);
        place.round = parked.take(1);
        base = parked.take(2);
        end = parked.take(3);
        k = static_cast<i32>(parked.take(4));
        const u32 mine = w.lane / ring.per();
        const CopyOf copy(ring.launch, w, ring.copy(min(mine, ring.copies() - 1)));
        u32 until = mine < ring.copies() ? w.lane - mine * ring.per() : ~0u;  // iterations until this lane's
#pragma unroll 1
        for (; base < end; ++base, ++k, --until) {
            const u32 why = wait_empty();
            if (why) return why;
            issue(copy, until == 0, base, at);
            place.step(ring.stages());
        }
        return 0;
    }

    // Counter mode: as many iterations as there are tiles. Returns why it gave up; `k` says how far it came.
    __device__ __forceinline__ u32 run(u32 stop) {
        const bool counter = ring.counter();
        u32 count = counter ? tiles_at_once(stop) : ring.per();
        u32 taken = counter ? take(header(), w, count) : static_cast<u32>(k);
#pragma unroll 1
        for (;;) {
            const u32 base = __shfl_sync(FULL_WARP, taken, 0);
            if (static_cast<i32>(base) >= static_cast<i32>(stop)) return 0;
            const u32 left = stop - base, end = base + min(count, left);
            if (counter) {
                count = tiles_at_once(left);
                taken = take(header(), w, count);  // on its way while these are issued
            } else {
                taken = end;
            }
            Parked parked{taken};  // in lane 0
            parked.put(w.lane, 1, count);
            parked.put(w.lane, 2, stop);
            const u32 why = batch(base, end);
            if (why) return why;
            taken = parked.lanes;
            count = parked.take(1);
            stop = parked.take(2);
        }
    }

    // No tile, with an extra stage.
    __device__ __forceinline__ u32 hand_on_end() const {
        const u32 why = wait_empty();
        if (why == 0 && w.lane == 0) {
            ptx::st_volatile_shared_u32(slot_of(header(), place.stage), NO_TILE);
            ptx::mbarrier_arrive(ring.full(place.stage), 1);
        }
        __syncwarp();
        return why;
    }
};

template <class L>
OX_DEVICE Failure produce(const L& launch, const Warp& w, const Words& r) {
    const RingAt<L> ring{launch, w.pc + 1};
    const i32 start = w.value(r, 0);
    const u32 stop = static_cast<u32>(max(w.value(r, 1), 0));
    if (w.skip) {
        if (ring.counter()) counter_done(launch.header(), w, start + ring.offset());
        return no_failure();
    }
    Producer<L> loop{ring, w, Place(start + ring.offset(), ring.stages()), start};
    u32 why = loop.run(stop);
    if (ring.counter()) {
        counter_done(launch.header(), w, loop.k + ring.offset());
        if (why == 0) why = loop.hand_on_end();
    }
    return waited_for(why, ring.empty(loop.place.stage), loop.place.round & 1 ^ 1, loop.k);
}

// ---- DRAIN
template <class L>
struct Drainer {
    RingAt<L> ring;
    const Warp& w;
    Place place;
    u32 behind;  // the stage that is released next

    __device__ __forceinline__ const Header& header() const { return ring.launch.header(); }

    __device__ __forceinline__ u32 wait_full() const { return wait_parity(header(), ring.full(place.stage), place.round & 1); }

    // Stores what has landed in the stage: lane 0 issues, as bulk groups are a thread's own. Lane j * per + n has copy j's coordinates.
    __device__ __forceinline__ void issue(u32 n, const ptx::Coords& at) const {
#pragma unroll 1
        for (u32 j = 0; j < ring.copies(); ++j) {
            const CopyOf copy(ring.launch, w, ring.copy(j));
            ptx::Coords its;
#pragma unroll
            for (u32 d = 0; d < 5; ++d) its.c[d] = __shfl_sync(FULL_WARP, at.c[d], j * ring.per() + n);
            if (w.lane == 0) {
                const u32 from = copy.tile + copy.stride * place.stage;
                const u64 map = ring.launch.map(copy.map());
                if (copy.kind() == OP_TENSOR_S2G) store(copy.rank(), map, from, its);
                else reduce(copy.op(), copy.rank(), map, from, its);
            }
            __syncwarp();
        }
        if (w.lane == 0) {
            ptx::cp_async_bulk_commit_group();
            if (ring.read()) wait_group<true>(ring.nbytes());
            else wait_group<false>(ring.nbytes());
        }
        __syncwarp();
    }

    __device__ __forceinline__ void release() const {
        const u32 bar = ring.empty(behind);
        if (ring.peers() == 0) {
            if (w.lane == 0) ptx::mbarrier_arrive(bar, 1);
        } else if (w.lane < ring.peers()) {
            ptx::mbarrier_arrive_cluster(ptx::mapa(bar, w.lane), 1);
        }
        __syncwarp();
    }

    // Coordinates of the iterations from `i` on, or of one tile. All that is common to the lanes is put away meanwhile.
    __device__ __forceinline__ void batch(i32& i, i32& stop, u32 tile, ptx::Coords& at) {
        Parked parked{};
        parked.put(w.lane, 0, place.stage);
        parked.put(w.lane, 1, place.round);
        parked.put(w.lane, 2, behind);
        parked.put(w.lane, 3, static_cast<u32>(i));
        parked.put(w.lane, 4, static_cast<u32>(stop));
        {
            const u32 mine = w.lane / ring.per();
            const i32 its = ring.counter() ? i : i + static_cast<i32>(w.lane - mine * ring.per());
            coordinates(ring, w, mine, its, static_cast<i32>(tile), at);
        }
        place.stage = parked.take(0);
        place.round = parked.take(1);
        behind = parked.take(2);
        i = static_cast<i32>(parked.take(3));
        stop = static_cast<i32>(parked.take(4));
    }

    // Iterations from `i` on; a tile that a counter gave is a batch of its own. Returns why it gave up.
    __device__ __forceinline__ u32 run(i32& i, i32 stop) {
        const bool counter = ring.counter();
        ptx::Coords at{};
        u32 n = ring.per();  // position in the batch
#pragma unroll 1
        for (; counter || i < stop; ++i, ++n) {
            u32 tile = 0, why = 0;
            if (counter) {
                why = wait_full();
                if (why) return why;
                tile = ptx::ld_volatile_shared_u32(slot_of(header(), place.stage));
                if (tile == NO_TILE) return 0;
                n = ring.per();
            }
            if (n == ring.per()) {
                n = 0;
                batch(i, stop, tile, at);
            }
            if (!counter) {
                why = wait_full();
                if (why) return why;
            }
            issue(n, at);
            if (i + ring.offset() >= ring.first()) release();
            if (++behind == ring.stages()) behind = 0;
            place.step(ring.stages());
        }
        return 0;
    }
};

template <class L>
OX_DEVICE Failure drain(const L& launch, const Warp& w, const Words& r) {
    if (w.skip) return no_failure();
    const RingAt<L> ring{launch, w.pc + 1};
    i32 i = w.value(r, 0);
    const i32 stop = w.value(r, 1), k = i + ring.offset();
    const u32 behind = static_cast<u32>(floor_mod(k - static_cast<i32>(ring.empty_behind()), static_cast<i32>(ring.stages())));
    Drainer<L> loop{ring, w, Place(k, ring.stages()), behind};
    const u32 why = loop.run(i, stop);
    return waited_for(why, ring.full(loop.place.stage), loop.place.round & 1, i);
}

// ---- NEXT_STAGE. `none`: there is no tile left.
template <class L>
OX_DEVICE Failure next_stage(const L& launch, Warp& w, const Words& r, bool& none) {
    const i32 k = w.value(r, 0);
    const Place place(k, static_cast<u32>(r.imm(2)));
    const u32 full = shared_base() + static_cast<u32>(r.imm(1)) + 8 * place.stage;
    u32 why = 0;
    if (!w.skip) {
        why = wait_parity(launch.header(), full, place.round & 1);
        if (why == 0) {
            const u32 tile = ptx::ld_volatile_shared_u32(slot_of(launch.header(), place.stage));
            w.set(r.reg(2), tile);
            none = tile == NO_TILE;
            return no_failure();
        }
    }
    // Skip mode: warps that sync in this loop must leave it after the same trip, so all go on to the end that the producer says.
    const u32 start = now();
    u32 end = NO_TILE;
#pragma unroll 1
    while (__any_sync(FULL_WARP, now() - start <= 4 * launch.header().limit_us)) {
        end = __shfl_sync(FULL_WARP, ptx::ld_volatile_shared_u32(slot_of(launch.header(), 0) - 4), 0);
        if (end != NO_TILE) break;
        ptx::nanosleep(1000);
    }
    w.set(r.reg(2), 0);
    none = end == NO_TILE || k >= static_cast<i32>(end);
    return waited_for(why, full, place.round & 1, k);
}

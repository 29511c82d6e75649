// Fused loops over the stages of a ring: PRODUCE, DRAIN, and NEXT_STAGE, the head of loops whose tiles a counter gives.
//
// The warp works in batches. Lane l stands for copy l / per of iteration l % per of the batch, per = 32 / copies: all coordinates of a
// batch are computed at once, then its iterations run one by one.
#pragma once
#include "barriers.cuh"
#include "copies.cuh"

struct RingWords {
    Words r;

    __device__ __forceinline__ u32 full() const { return shared_base() + r.w[0]; }
    __device__ __forceinline__ u32 empty() const { return shared_base() + r.w[1]; }
    __device__ __forceinline__ u32 nbytes() const { return r.w[2]; }
    __device__ __forceinline__ i32 offset() const { return static_cast<i32>(r.w[3]); }
    __device__ __forceinline__ u32 stages() const { return r.w[4] & 0xffff; }
    __device__ __forceinline__ u32 copies() const { return r.w[4] >> 16 & 0xff; }
    __device__ __forceinline__ bool read() const { return (r.w[4] >> 24 & RING_FLAG_READ) != 0; }
    __device__ __forceinline__ bool counter() const { return (r.w[4] >> 24 & RING_FLAG_COUNTER) != 0; }
    __device__ __forceinline__ u32 evals() const { return r.w[5] & 0xffff; }
    __device__ __forceinline__ u32 empty_behind() const { return r.w[5] >> 16; }
    __device__ __forceinline__ i32 first() const { return static_cast<i32>(r.w[6]); }
    __device__ __forceinline__ u32 peers() const { return r.w[7]; }
};

// What is needed to issue a copy: its record, with registers read.
struct CopyOf {
    u32 tile, stride, mask, map, rank, kind, op;

    __device__ __forceinline__ CopyOf(const Warp& w, const Words& r) {
        map = r.w[0] & 0xff;
        rank = r.w[0] >> 8 & 0xff;
        kind = r.w[0] >> 16 & 0xff;
        op = r.w[0] >> 24;
        const u32 tile_reg = r.w[5] & 0xff, mask_reg = r.w[5] >> 8 & 0xff;
        const u32 more = w.gather(tile_reg), bits = w.gather(mask_reg);
        tile = shared_base() + r.w[1] + (tile_reg == NO_REG ? 0 : more);
        stride = r.w[2];
        mask = r.w[3] + (mask_reg == NO_REG ? 0 : bits);
    }
};

// Position in the ring: iteration k is stage k % stages of round k / stages.
struct Place {
    u32 stage, round;

    __device__ __forceinline__ Place(i32 k, u32 stages) : stage(static_cast<u32>(k) % stages), round(static_cast<u32>(k) / stages) {}

    __device__ __forceinline__ void step(u32 stages) {
        if (++stage == stages) stage = 0, ++round;
    }
};

// Coordinates of copy `mine` for this lane's iteration, or tile; a record's worth of instructions at `evals`, those of copy j in its record.
template <class L>
OX_DEVICE void coordinates(const L& launch, const Warp& w, u32 copies_at, u32 copies, u32 mine, i32 iteration, i32 tile, ptx::Coords& at) {
    const u32 evals_at = copies_at + copies;
#pragma unroll 1
    for (u32 j = 0; j < copies; ++j) {
        const u32 range = launch.word(copies_at + j, 4);
        i32 acc = 0;
        Stack stack{};
#pragma unroll 1
        for (u32 i = range & 0xffff; i < range >> 16; ++i) {
            const uint2 in = launch.instr(evals_at, i);
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
    const L& launch;
    Warp& w;
    RingWords ring;
    CopyOf copy;
    u32 mine, which;  // of the batch, this lane's copy and iteration
    Place place;

    __device__ __forceinline__ bool free(i32 iteration) {
        return place.round == 0 || wait_parity(launch.header(), w, ring.empty() + 8 * place.stage, place.round & 1 ^ 1, iteration);
    }

    // Waits for the stage, announces its bytes and issues its copies: those of iteration `n` of the batch. `tile` is handed on.
    __device__ __forceinline__ bool stage(u32 n, i32 iteration, u32 tile, const ptx::Coords& at) {
        if (!free(iteration)) return false;
        const u32 full = ring.full() + 8 * place.stage;
        if (w.lane == 0) {
            if (ring.counter()) ptx::st_volatile_shared_u32(slot_of(launch.header(), place.stage), tile);
            if (ring.nbytes()) ptx::mbarrier_arrive_expect_tx(full, ring.nbytes());
        }
        if (which == n && mine < ring.copies()) {
            const u32 to = copy.tile + copy.stride * place.stage;
            const u64 map = launch.map(copy.map);
            if (copy.kind == OP_TENSOR_G2S) load(copy.rank, to, map, full, at);
            else load_multicast(copy.rank, to, map, full, at, copy.mask);
        }
        __syncwarp();
        place.step(ring.stages());
        return true;
    }

    // Returns how far it came.
    __device__ __forceinline__ i32 run(u32 per, i32 start, u32 stop) {
        const bool counter = ring.counter();
        i32 k = start;
        u32 count = counter ? tiles_at_once(stop) : per;
        u32 taken = counter ? take(launch.header(), w, count) : static_cast<u32>(start);
#pragma unroll 1
        for (;;) {
            const i32 base = static_cast<i32>(__shfl_sync(FULL_WARP, taken, 0));
            if (base >= static_cast<i32>(stop)) return k;
            const u32 left = stop - static_cast<u32>(base), now = min(count, left);
            if (counter) {
                count = tiles_at_once(left);
                taken = take(launch.header(), w, count);  // on its way while these are issued
            } else {
                taken = static_cast<u32>(base) + per;
            }
            ptx::Coords at{};
            coordinates(launch, w, w.pc + 2, ring.copies(), mine, k + static_cast<i32>(which), base + static_cast<i32>(which), at);
#pragma unroll 1
            for (u32 n = 0; n < now; ++n, ++k) {
                if (!stage(n, k, static_cast<u32>(base) + n, at)) return k;
            }
        }
    }

    // No tile, with an extra stage.
    __device__ __forceinline__ void end(i32 k) {
        if (!free(k)) return;
        if (w.lane == 0) {
            ptx::st_volatile_shared_u32(slot_of(launch.header(), place.stage), NO_TILE);
            ptx::mbarrier_arrive(ring.full() + 8 * place.stage, 1);
        }
        __syncwarp();
    }
};

// Returns the record behind the loop.
template <class L>
OX_DEVICE u32 produce(const L& launch, Warp& w, const Words& r) {
    const i32 start = w.value(r, 0), stop = w.value(r, 1);
    const RingWords ring{launch.record(w.pc + 1)};
    const u32 copies = ring.copies();
    const u32 next = w.pc + 2 + copies + (ring.evals() + 3) / 4;
    if (w.skip) {
        if (ring.counter()) counter_done(launch.header(), w, start + ring.offset());
        return next;
    }
    const u32 per = copies == 1 ? 32 : copies == 2 ? 16 : copies == 3 ? 10 : 8;
    const u32 mine = w.lane / per;
    const CopyOf copy(w, launch.record(w.pc + 2 + min(mine, copies - 1)));
    Producer<L> loop{launch, w, ring, copy, mine, w.lane - mine * per, Place(start + ring.offset(), ring.stages())};
    const i32 k = loop.run(per, start, static_cast<u32>(max(stop, 0)));
    if (ring.counter()) {
        counter_done(launch.header(), w, k + ring.offset());
        if (!w.skip) loop.end(k);
    }
    return next;
}

// ---- DRAIN
template <class L>
struct Drainer {
    const L& launch;
    Warp& w;
    RingWords ring;
    u32 per, mine;
    Place place;
    u32 behind;  // the stage that is released next

    // Stores what has landed in the stage: lane 0 issues, as bulk groups are a thread's own. Lane j * per + n has copy j's coordinates.
    __device__ __forceinline__ void stage(u32 n, i32 k, const ptx::Coords& at) {
#pragma unroll 1
        for (u32 j = 0; j < ring.copies(); ++j) {
            const CopyOf copy(w, launch.record(w.pc + 2 + j));
            ptx::Coords its;
#pragma unroll
            for (u32 d = 0; d < 5; ++d) its.c[d] = __shfl_sync(FULL_WARP, at.c[d], j * per + n);
            if (w.lane == 0) {
                const u32 from = copy.tile + copy.stride * place.stage;
                const u64 map = launch.map(copy.map);
                if (copy.kind == OP_TENSOR_S2G) store(copy.rank, map, from, its);
                else reduce(copy.op, copy.rank, map, from, its);
            }
            __syncwarp();
        }
        if (w.lane == 0) {
            ptx::cp_async_bulk_commit_group();
            if (ring.read()) wait_group<true>(ring.nbytes());
            else wait_group<false>(ring.nbytes());
        }
        __syncwarp();
        if (k >= ring.first()) release();
        if (++behind == ring.stages()) behind = 0;
        place.step(ring.stages());
    }

    __device__ __forceinline__ void release() {
        const u32 bar = ring.empty() + 8 * behind;
        if (ring.peers() == 0) {
            if (w.lane == 0) ptx::mbarrier_arrive(bar, 1);
        } else if (w.lane < ring.peers()) {
            ptx::mbarrier_arrive_cluster(ptx::mapa(bar, w.lane), 1);
        }
        __syncwarp();
    }

    __device__ __forceinline__ bool landed(i32 iteration) {
        return wait_parity(launch.header(), w, ring.full() + 8 * place.stage, place.round & 1, iteration);
    }

    __device__ __forceinline__ void run(i32 start, i32 stop) {
        const bool counter = ring.counter();
        ptx::Coords at{};
        u32 n = per;  // of the batch; a tile that a counter gave is a batch of its own
#pragma unroll 1
        for (i32 iteration = start; counter || iteration < stop; ++iteration, ++n) {
            u32 tile = 0;
            if (counter) {
                if (!landed(iteration)) return;
                tile = ptx::ld_volatile_shared_u32(slot_of(launch.header(), place.stage));
                if (tile == NO_TILE) return;
                n = per;
            }
            if (n == per) {
                n = 0;
                const i32 its = counter ? iteration : iteration + static_cast<i32>(w.lane - mine * per);
                coordinates(launch, w, w.pc + 2, ring.copies(), mine, its, static_cast<i32>(tile), at);
            }
            if (!counter && !landed(iteration)) return;
            stage(n, iteration + ring.offset(), at);
        }
    }
};

template <class L>
OX_DEVICE u32 drain(const L& launch, Warp& w, const Words& r) {
    const i32 start = w.value(r, 0), stop = w.value(r, 1);
    const RingWords ring{launch.record(w.pc + 1)};
    const u32 copies = ring.copies();
    const u32 next = w.pc + 2 + copies + (ring.evals() + 3) / 4;
    if (w.skip) return next;
    const u32 per = copies == 1 ? 32 : copies == 2 ? 16 : copies == 3 ? 10 : 8;
    const i32 k = start + ring.offset();
    // Counted up from iteration `first` on: its stage is first - empty_behind, of whatever round.
    const u32 behind = static_cast<u32>(floor_mod(k - static_cast<i32>(ring.empty_behind()), static_cast<i32>(ring.stages())));
    Drainer<L> loop{launch, w, ring, per, w.lane / per, Place(k, ring.stages()), behind};
    loop.run(start, stop);
    return next;
}

// ---- NEXT_STAGE. Returns the record to go on with.
template <class L>
OX_DEVICE u32 next_stage(const L& launch, Warp& w, const Words& r) {
    const i32 k = w.value(r, 0);
    const Place place(k, static_cast<u32>(r.imm(2)));
    const u32 full = shared_base() + static_cast<u32>(r.imm(1)) + 8 * place.stage;
    const u32 none = static_cast<u32>(r.imm(4));
    if (!w.skip && wait_parity(launch.header(), w, full, place.round & 1, static_cast<u32>(k))) {
        const u32 tile = ptx::ld_volatile_shared_u32(slot_of(launch.header(), place.stage));
        if (tile == NO_TILE) return none;
        w.set(r.reg(2), tile);
        return w.pc + 1;
    }
    // Skip mode: warps that sync in this loop must leave it after the same trip, so all go on to the end that the producer says.
    const u64 begin = ptx::globaltimer();
    u32 end = NO_TILE;
    do {
        end = __shfl_sync(FULL_WARP, ptx::ld_volatile_shared_u32(slot_of(launch.header(), 0) - 4), 0);
        if (end != NO_TILE) break;
        ptx::nanosleep(1000);
    } while (!__any_sync(FULL_WARP, ptx::globaltimer() - begin > 4000ull * launch.header().limit_us));
    w.set(r.reg(2), 0);
    return end != NO_TILE && k < static_cast<i32>(end) ? w.pc + 1 : none;
}

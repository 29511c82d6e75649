// DRAIN, the fused loop that stores what lands in a ring; and NEXT_STAGE, the head of any other loop whose tiles a counter gives.
#pragma once
#include "rings.cuh"

constexpr u32 LOOKS = 64;  // about 3 us

template <class L>
struct Drainer {
    RingAt<L> ring;
    const Warp& w;
    Place place;
    u32 behind;  // the stage that is released next
    i32 i, stop;

    __device__ __forceinline__ const Header& header() const { return ring.launch.header(); }

    __device__ __forceinline__ u32 wait_full() const { return wait_parity(header(), ring.full(place.stage), place.round & 1); }

    // Stores what has landed in the stage: lane 0 issues, as bulk groups are a thread's own. Lane j * per + n has copy j's coordinates.
    __device__ __forceinline__ void issue(u32 n, const ptx::Coords& at) const {
#pragma unroll 1
        for (u32 j = 0; j < ring.copies(); ++j) {
            const CopyOf copy(ring.launch, w, ring.copy(j));
            ptx::Coords its{};
#pragma unroll
            for (u32 d = 0; d < 5; ++d) its.c[d] = __shfl_sync(FULL_WARP, at.c[d], j * ring.per() + n);
            if (lane_number() == 0) {
                const u32 from = copy.tile + copy.stride * place.stage;
                const u64 map = ring.launch.map(copy.map());
                if (copy.kind() == OP_TENSOR_S2G) store(copy.rank(), map, from, its);
                else reduce(copy.op(), copy.rank(), map, from, its);
            }
            __syncwarp();
        }
        if (lane_number() == 0) {
            ptx::cp_async_bulk_commit_group();
            if (ring.read()) wait_group<true>(ring.nbytes());
            else wait_group<false>(ring.nbytes());
        }
        __syncwarp();
    }

    __device__ __forceinline__ void release() const {
        const u32 bar = ring.empty(behind);
        if (ring.peers() == 0) {
            if (lane_number() == 0) ptx::mbarrier_arrive(bar, 1);
        } else if (lane_number() < ring.peers()) {
            ptx::mbarrier_arrive_cluster(ptx::mapa(bar, lane_number()), 1);
        }
        __syncwarp();
    }

    // Coordinates of the iterations from `i` on. All that is common to the lanes is put away meanwhile.
    __device__ __forceinline__ void batch(u32 tile, ptx::Coords& at, u32& count) {
        Parked parked{};
        parked.put(lane_number(), 0, place.stage);
        parked.put(lane_number(), 1, place.round);
        parked.put(lane_number(), 2, behind);
        parked.put(lane_number(), 3, static_cast<u32>(i));
        parked.put(lane_number(), 4, static_cast<u32>(stop));
        parked.put(lane_number(), 5, count);
        coordinates(ring, w, ring.mine(lane_number()), i + static_cast<i32>(ring.which(lane_number())), static_cast<i32>(tile), at);
        place.stage = parked.take(0);
        place.round = parked.take(1);
        behind = parked.take(2);
        i = static_cast<i32>(parked.take(3));
        stop = static_cast<i32>(parked.take(4));
        count = parked.take(5);
    }

    // What the slots of the stages from this one on hold, each lane that of its iteration; `count`: how many of them are there.
    __device__ __forceinline__ u32 look(u32& count) const {
        const u32 which = ring.which(lane_number());
        u32 stage = place.stage + which, round = place.round;
        if (stage >= ring.stages()) stage -= ring.stages(), ++round;
        const bool one = lane_number() < min(ring.stages(), ring.per());
        const u32 slot = one ? ptx::ld_volatile_shared_u32(slot_of(header(), stage)) : 0;
        const u32 there = __ballot_sync(FULL_WARP, one && slot >> 31 == (round & 1));
        count = __ffs(~there) - 1;
        if (there == FULL_WARP) count = 32;
        return __shfl_sync(FULL_WARP, slot, which);
    }

    // The next tiles that the producer has handed on, before they have landed if possible: while they do, coordinates are computed.
    __device__ __forceinline__ u32 next_tiles(u32& slot, u32& count) const {
#pragma unroll 1
        for (u32 tries = 0; tries < LOOKS; ++tries) {
            slot = look(count);
            if (count > 0) return 0;
        }
        const u32 why = wait_full();
        slot = look(count);
        return why;
    }

    // The next `count` iterations with one plain store each, waited for by its reads, released in this CTA: what does not change in them is
    // read once.
    __device__ __forceinline__ u32 stores(u32 count, const ptx::Coords& at) {
        const CopyOf copy(ring.launch, w, ring.copy(0));
        const u32 full = ring.full(0), empty = ring.empty(0);
        const u32 small = ring.stages() | ring.nbytes() << 16 | copy.rank() << 24;  // in one register
        const u32 kept = static_cast<u32>(max(ring.first() - (i + ring.offset()), 0));  // iterations that release nothing
        const u64 map = ring.launch.map(copy.map());
#pragma unroll 1
        for (u32 n = 0; n < count; ++n, ++i) {
            ptx::Coords its{};
#pragma unroll
            for (u32 d = 0; d < 5; ++d) {
                if (d < 2 || d < small >> 24) its.c[d] = __shfl_sync(FULL_WARP, at.c[d], n);
            }
            const u32 why = wait_parity(header(), full + 8 * place.stage, place.round & 1);
            if (why) return why;
            if (lane_number() == 0) {
                store(small >> 24, map, copy.tile + copy.stride * place.stage, its);
                ptx::cp_async_bulk_commit_group();
                wait_group<true>(small >> 16 & 0xff);
                if (n >= kept) ptx::mbarrier_arrive(empty + 8 * behind, 1);
            }
            __syncwarp();
            if (++behind == (small & 0xffff)) behind = 0;
            place.step(small & 0xffff);
        }
        return 0;
    }

    // The same for any copies.
    __device__ __forceinline__ u32 any(u32 count, const ptx::Coords& at) {
#pragma unroll 1
        for (u32 n = 0; n < count; ++n, ++i) {
            const u32 why = wait_full();
            if (why) return why;
            issue(n, at);
            if (i + ring.offset() >= ring.first()) release();
            if (++behind == ring.stages()) behind = 0;
            place.step(ring.stages());
        }
        return 0;
    }

    __device__ __forceinline__ u32 iterations(u32 count, const ptx::Coords& at) {
        const u32 kind = ring.launch.word(ring.copy(0), 0) >> 16 & 0xff;
        if (ring.copies() == 1 && kind == OP_TENSOR_S2G && ring.read() && ring.peers() == 0) return stores(count, at);
        return any(count, at);
    }

    // Iterations `i` to `stop` - 1, or as many as there are tiles. Returns why it gave up.
    __device__ __forceinline__ u32 run() {
        u32 why = ring.counter() ? wait_full() : 0;  // the producer has cleared the slots
        if (ring.counter()) stop = 0x7fffffff;  // until a slot says that there are no more tiles
#pragma unroll 1
        while (why == 0 && i < stop) {
            u32 slot = 0, count = min(ring.per(), static_cast<u32>(stop - i));
            if (ring.counter()) {
                why = next_tiles(slot, count);
                if (why) break;
                const u32 ends = __ballot_sync(FULL_WARP, lane_number() < count && tile_of(slot) == NO_TILE);
                if (ends) count = __ffs(ends) - 1, stop = i + static_cast<i32>(count);
            }
            ptx::Coords at{};
            batch(tile_of(slot), at, count);
            why = iterations(count, at);
        }
        return why;
    }
};

template <class L>
OX_DEVICE Failure drain(const L& launch, const Warp& w, const RecordAt<L>& r) {
    if (w.skip) return no_failure();
    const RingAt<L> ring{launch, w.pc + 1};
    const i32 i = w.value(r, 0), stop = w.value(r, 1), k = i + ring.offset();
    const u32 behind = static_cast<u32>(floor_mod(k - static_cast<i32>(ring.empty_behind()), static_cast<i32>(ring.stages())));
    Drainer<L> loop{ring, w, Place(k, ring.stages()), behind, i, stop};
    const u32 why = loop.run();
    return waited_for(why, ring.full(loop.place.stage), loop.place.round & 1, loop.i);
}

// ---- NEXT_STAGE. `none`: there is no tile left. A warp that gives up here comes again, in skip mode.
template <class L>
OX_DEVICE Failure next_stage(const L& launch, Warp& w, const RecordAt<L>& r, bool& none) {
    const i32 k = w.value(r, 0);
    const Place place(k, static_cast<u32>(r.imm(2)));
    const u32 full = shared_base() + static_cast<u32>(r.imm(1)) + 8 * place.stage;
    if (!w.skip) {
        const u32 why = wait_parity(launch.header(), full, place.round & 1);
        const u32 tile = tile_of(ptx::ld_volatile_shared_u32(slot_of(launch.header(), place.stage)));
        w.set(r.reg(2), tile);
        none = tile == NO_TILE;
        return waited_for(why, full, place.round & 1, k);
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
    return no_failure();
}

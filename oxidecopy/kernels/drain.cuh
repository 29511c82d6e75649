// DRAIN, the fused loop that stores what lands in a ring; and NEXT_STAGE, the head of any other loop whose tiles a counter gives.
#pragma once
#include "rings.cuh"

constexpr u32 LOOKS = 32;  // about 3 us

// C: how coordinates are computed.
template <class L, class C>
struct Drainer {
    RingAt<L> ring;
    const Warp& w;
    C where;
    Place place;
    i32 i, stop;

    __device__ __forceinline__ const Header& header() const { return ring.launch.header(); }

    __device__ __forceinline__ u32 wait_full() const { return wait_parity(header(), ring.full(place.stage), place.round & 1); }

    // Stores what has landed in the stage: lane 0 issues, as bulk groups are a thread's own.
    __device__ __forceinline__ void issue(u32 begin, u32 number) const {
#pragma unroll 1
        for (u32 j = 0; j < ring.copies(); ++j) {
            const CopyOf copy(ring.launch, w, ring.copy(j));
            const ptx::Coords its = where.template of<0>(ring, j, begin, number, copy.rank());
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

    // The stage that was stored `back` iterations ago, fewer than there are stages.
    __device__ __forceinline__ u32 behind(u32 stages, u32 back) const { return place.stage - back + (place.stage < back ? stages : 0); }

    __device__ __forceinline__ void release() const {
        const u32 bar = ring.empty(behind(ring.stages(), ring.empty_behind()));
        if (ring.peers() == 0) {
            if (lane_number() == 0) ptx::mbarrier_arrive(bar, 1);
        } else if (lane_number() < ring.peers()) {
            ptx::mbarrier_arrive_cluster(ptx::mapa(bar, lane_number()), 1);
        }
        __syncwarp();
    }

    // What the producer has handed on with this stage, before its data have landed if possible: while they do, coordinates are computed.
    __device__ __forceinline__ u32 handed_on(u32& slot) const {
#pragma unroll 1
        for (u32 tries = 0; tries < LOOKS; ++tries) {
            slot = slot_at(header(), place.stage);
            if (slot >> 31 == (place.round & 1)) return 0;
        }
        const u32 why = wait_full();
        slot = slot_at(header(), place.stage);
        return why;
    }

    // Goes on to the next iteration, or tile, which is `number`.
    template <u32 COPIES>
    __device__ __forceinline__ void step(u32 number, i32 end) {
        ++i;
        if constexpr (!C::BATCHES) {
            if (i < end && C::template ends<COPIES>(ring, number)) where.template compute<COPIES>(ring, w, i, number);
        }
    }

    // The next `count` iterations with one plain store each, waited for by its reads, released in this CTA: what does not change in them is
    // read once.
    __device__ __forceinline__ u32 stores(u32 count, u32 begin) {
        const CopyOf copy(ring.launch, w, ring.copy(0));
        const u32 full = ring.full(0), empty = ring.empty(0);
        u32 small = ring.stages() | ring.empty_behind() << 12 | ring.nbytes() << 24 | copy.rank() << 28;  // in one register
        constexpr u32 RELEASES = 1u << 31;
        const i32 end = i + static_cast<i32>(count);
        const u64 map = ring.launch.map(copy.map());
#pragma unroll 1
        for (u32 number = begin; i < end; step<1>(++number, end)) {
            const ptx::Coords its = where.template of<1>(ring, 0, begin, number, small >> 28 & 7);
            const u32 why = wait_parity(header(), full + 8 * place.stage, place.round & 1);
            if (why) return why;
            if (!(small & RELEASES) && i + ring.offset() >= ring.first()) small |= RELEASES;
            if (lane_number() == 0) {
                store(small >> 28 & 7, map, copy.tile + copy.stride * place.stage, its);
                ptx::cp_async_bulk_commit_group();
                wait_group<true>(small >> 24 & 15);
                if (small & RELEASES) ptx::mbarrier_arrive(empty + 8 * behind(small & STAGES_MAX, small >> 12 & STAGES_MAX), 1);
            }
            __syncwarp();
            place.step(small & STAGES_MAX);
        }
        return 0;
    }

    // The same for any copies.
    __device__ __forceinline__ u32 any(u32 count, u32 begin) {
        const i32 end = i + static_cast<i32>(count);
#pragma unroll 1
        for (u32 number = begin; i < end; step<0>(++number, end)) {
            const u32 why = wait_full();
            if (why) return why;
            issue(begin, number);
            if (i + ring.offset() >= ring.first()) release();
            place.step(ring.stages());
        }
        return 0;
    }

    // The next `count` iterations, or tiles, from `begin` on. While instructions compute a batch, all that is common to the lanes is put
    // away.
    __device__ __forceinline__ u32 batch(u32 count, u32 begin) {
        if constexpr (C::BATCHES) {
            Parked parked{};
            parked.put(lane_number(), 0, place.stage);
            parked.put(lane_number(), 1, place.round);
            parked.put(lane_number(), 2, static_cast<u32>(i));
            parked.put(lane_number(), 3, static_cast<u32>(stop));
            parked.put(lane_number(), 4, count);
            parked.put(lane_number(), 5, begin);
            where.template compute<0>(ring, w, i, begin);
            place.stage = parked.take(0);
            place.round = parked.take(1);
            i = static_cast<i32>(parked.take(2));
            stop = static_cast<i32>(parked.take(3));
            count = parked.take(4);
            begin = parked.take(5);
        } else {
            where.template compute<0>(ring, w, i, begin);
        }
        return ring.one(OP_TENSOR_S2G) && ring.read() && ring.peers() == 0 ? stores(count, begin) : any(count, begin);
    }

    // Iterations `i` to `stop` - 1, or as many as there are tiles. Returns why it gave up.
    __device__ __forceinline__ u32 run() {
        u32 why = ring.counter() ? wait_full() : 0;  // the producer has cleared the slots
        if (ring.counter()) stop = 0x7fffffff;  // until a slot says that there are no more tiles
#pragma unroll 1
        while (why == 0 && i < stop) {
            u32 number = static_cast<u32>(i), count = static_cast<u32>(stop - i);
            if (ring.counter()) {
                u32 slot = 0;
                why = handed_on(slot);
                if (why || tile_of(slot) == NO_TILE) break;
                number = tile_of(slot), count = tiles_from(slot);
            } else if (C::BATCHES) {
                count = min(count, C::per(ring.copies()));
            }
            why = batch(count, number);
        }
        return why;
    }

    __device__ __forceinline__ Failure all() {
        const u32 why = run();
        return waited_for(why, ring.full(place.stage), place.round & 1, i);
    }
};

template <class L>
OX_DEVICE Failure drain(const L& launch, const Warp& w, const RecordAt<L>& r) {
    if (w.skip) return no_failure();
    const RingAt<L> ring{launch, w.pc + 1};
    const i32 i = w.value(r, 0), stop = w.value(r, 1);
    const Place place(i + ring.offset(), ring.stages());
    if (ring.by_records()) return Drainer<L, ByRecords<L>>{ring, w, ByRecords<L>(ring, w), place, i, stop}.all();
    return Drainer<L, ByInstructions<L>>{ring, w, ByInstructions<L>(ring, w), place, i, stop}.all();
}

// ---- NEXT_STAGE. `none`: there is no tile left. A warp that gives up here comes again, in skip mode.
template <class L, class R>
OX_DEVICE Failure next_stage(const L& launch, Warp& w, const R& r, bool& none) {
    const i32 k = w.value(r, 0);
    const Place place(k, static_cast<u32>(r.imm(2)));
    const u32 full = shared_base() + static_cast<u32>(r.imm(1)) + 8 * place.stage;
    if (!w.skip) {
        const u32 why = wait_parity(launch.header(), full, place.round & 1);
        const u32 tile = tile_of(slot_at(launch.header(), place.stage));
        w.set(r.reg(2), tile);
        none = tile == NO_TILE;
        return waited_for(why, full, place.round & 1, k);
    }
    // Skip mode: warps that sync in this loop must leave it after the same trip, so all go on to the end that the producer says.
    const u32 end = tiles_given(launch.header());
    w.set(r.reg(2), 0);
    none = end == NO_TILE || k >= static_cast<i32>(end);
    return no_failure();
}

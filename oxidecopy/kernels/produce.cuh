// PRODUCE: the fused loop of a ring's producer.
#pragma once
#include "rings.cuh"

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
        if (lane_number() == 0) {
            if (ring.counter()) ptx::st_volatile_shared_u32(slot_of(header(), place.stage), slot_with(tile, place.round));
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

    // All iterations of a batch with one plain load each: what does not change in them is read once.
    __device__ __forceinline__ u32 loads(const CopyOf& copy, u32 base, u32 end, const ptx::Coords& at) {
        const u32 full = ring.full(0), empty = ring.empty(0), nbytes = ring.nbytes();
        const u32 small = ring.stages() | copy.rank() << 16 | ring.counter() << 24;  // in one register
        const u64 map = ring.launch.map(copy.map());
        const u32 mine = base + lane_number();
#pragma unroll 1
        for (; base < end; ++base, ++k) {
            if (place.round != 0) {
                const u32 why = wait_parity(header(), empty + 8 * place.stage, place.round & 1 ^ 1);
                if (why) return why;
            }
            if (base == mine) {
                const u32 bar = full + 8 * place.stage;
                if (small >> 24) ptx::st_volatile_shared_u32(slot_of(header(), place.stage), slot_with(base, place.round));
                if (nbytes) ptx::mbarrier_arrive_expect_tx(bar, nbytes);
                load(small >> 16 & 0xff, copy.tile + copy.stride * place.stage, map, bar, at);
            }
            __syncwarp();
            place.step(small & 0xffff);
        }
        return 0;
    }

    // Iterations, or tiles, `base` to `end` - 1. While coordinates are computed all that is common to the lanes is put away.
    __device__ __forceinline__ u32 batch(u32 base, u32 end) {
        Parked parked{};
        parked.put(lane_number(), 0, place.stage);
        parked.put(lane_number(), 1, place.round);
        parked.put(lane_number(), 2, base);
        parked.put(lane_number(), 3, end);
        parked.put(lane_number(), 4, static_cast<u32>(k));
        ptx::Coords at{};
        {
            const u32 which = ring.which(lane_number());
            coordinates(ring, w, ring.mine(lane_number()), k + static_cast<i32>(which), static_cast<i32>(base + which), at);
        }
        place.stage = parked.take(0);
        place.round = parked.take(1);
        base = parked.take(2);
        end = parked.take(3);
        k = static_cast<i32>(parked.take(4));
        const u32 mine = ring.mine(lane_number());
        const CopyOf copy(ring.launch, w, ring.copy(min(mine, ring.copies() - 1)));
        if (ring.copies() == 1 && copy.kind() == OP_TENSOR_G2S) return loads(copy, base, end, at);
        u32 until = mine < ring.copies() ? ring.which(lane_number()) : ~0u;  // iterations until this lane's
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
        u32 count = counter ? tiles_at_once(stop, ring.nbytes()) : ring.per();
        u32 taken = counter ? take(header(), w, count) : static_cast<u32>(k);
#pragma unroll 1
        for (;;) {
            const u32 base = __shfl_sync(FULL_WARP, taken, 0);
            if (static_cast<i32>(base) >= static_cast<i32>(stop)) return 0;
            const u32 left = stop - base, end = base + min(count, left);
            if (counter) {
                count = tiles_at_once(left, ring.nbytes());
                taken = take(header(), w, count);  // on its way while these are issued
            } else {
                taken = end;
            }
            Parked parked{};  // without `taken`: nothing may wait for it yet
            parked.put(lane_number(), 0, count);
            parked.put(lane_number(), 1, stop);
            const u32 why = batch(base, end);
            if (why) return why;
            count = parked.take(0);
            stop = parked.take(1);
        }
    }

    // Before the first stage is armed: no slot has a tile yet.
    __device__ __forceinline__ void clear_slots() const {
        for (u32 s = lane_number(); s < ring.stages(); s += 32) {
            const u32 first_round = place.round + (s < place.stage);
            ptx::st_volatile_shared_u32(slot_of(header(), s), slot_with(NO_TILE, ~first_round));
        }
        __syncwarp();
    }

    // No tile, with an extra stage.
    __device__ __forceinline__ u32 hand_on_end() const {
        const u32 why = wait_empty();
        if (why == 0 && lane_number() == 0) {
            ptx::st_volatile_shared_u32(slot_of(header(), place.stage), slot_with(NO_TILE, place.round));
            ptx::mbarrier_arrive(ring.full(place.stage), 1);
        }
        __syncwarp();
        return why;
    }
};

template <class L>
OX_DEVICE Failure produce(const L& launch, const Warp& w, const RecordAt<L>& r) {
    const RingAt<L> ring{launch, w.pc + 1};
    const i32 start = w.value(r, 0);
    const u32 stop = static_cast<u32>(max(w.value(r, 1), 0));
    if (w.skip) {
        if (ring.counter()) counter_done(launch.header(), w, start + ring.offset());
        return no_failure();
    }
    Producer<L> loop{ring, w, Place(start + ring.offset(), ring.stages()), start};
    if (ring.counter()) loop.clear_slots();
    u32 why = loop.run(stop);
    if (ring.counter()) {
        counter_done(launch.header(), w, loop.k + ring.offset());
        if (why == 0) why = loop.hand_on_end();
    }
    return waited_for(why, ring.empty(loop.place.stage), loop.place.round & 1 ^ 1, loop.k);
}

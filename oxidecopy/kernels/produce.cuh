// PRODUCE: the fused loop of a ring's producer.
#pragma once
#include "rings.cuh"

// C: how coordinates are computed.
template <class L, class C>
struct Producer {
    RingAt<L> ring;
    const Warp& w;
    C where;
    Place place;
    i32 k;  // the iteration

    __device__ __forceinline__ const Header& header() const { return ring.launch.header(); }

    // Waits until the stage is free: phase round - 1 of `empty`.
    __device__ __forceinline__ u32 wait_empty() const {
        return place.round == 0 ? 0 : wait_parity(header(), ring.empty(place.stage), place.round & 1 ^ 1);
    }

    // Hands on the tile and those behind it, announces the stage's bytes and issues its copies.
    __device__ __forceinline__ void issue(u32 base, u32 number, u32 end) const {
        const u32 full = ring.full(place.stage);
        if (lane_number() == 0) {
            if (ring.counter()) ptx::atom_exch_shared_u32(slot_of(header(), place.stage), slot_with(number, end - number, place.round));
            if (ring.nbytes()) ptx::mbarrier_arrive_expect_tx(full, ring.nbytes());
        }
#pragma unroll 1
        for (u32 j = 0; j < ring.copies(); ++j) {
            const CopyOf copy(ring.launch, w, ring.copy(j));
            const ptx::Coords its = where.template of<0>(ring, j, base, number, copy.rank());
            if (lane_number() == 0) {
                const u32 to = copy.tile + copy.stride * place.stage;
                const u64 map = ring.launch.map(copy.map());
                if (copy.kind() == OP_TENSOR_G2S) load(copy.rank(), to, map, full, its);
                else load_multicast(copy.rank(), to, map, full, its, copy.mask);
            }
        }
        __syncwarp();
    }

    // Goes on to iteration, or tile, `number`.
    template <u32 COPIES>
    __device__ __forceinline__ void step(u32 number, u32 end) {
        ++k;
        if constexpr (!C::BATCHES) {
            if (number < end && C::template ends<COPIES>(ring, number)) where.template compute<COPIES>(ring, w, k, number);
        }
    }

    // Iterations with one plain load each: what does not change in them is read once.
    __device__ __forceinline__ u32 loads(u32 base, u32 end) {
        const CopyOf copy(ring.launch, w, ring.copy(0));
        const u32 full = ring.full(0), empty = ring.empty(0), nbytes = ring.nbytes();
        const u32 small = ring.stages() | copy.rank() << 16, slots = ring.counter() ? slot_of(header(), 0) : 0;
        const u64 map = ring.launch.map(copy.map());
#pragma unroll 1
        for (u32 number = base; number < end; step<1>(++number, end)) {
            const ptx::Coords its = where.template of<1>(ring, 0, base, number, small >> 16);
            if (place.round != 0) {
                const u32 why = wait_parity(header(), empty + 8 * place.stage, place.round & 1 ^ 1);
                if (why) return why;
            }
            if (lane_number() == 0) {
                const u32 bar = full + 8 * place.stage;
                if (slots) ptx::atom_exch_shared_u32(slots + 4 * place.stage, slot_with(number, end - number, place.round));
                if (nbytes) ptx::mbarrier_arrive_expect_tx(bar, nbytes);
                load(small >> 16, copy.tile + copy.stride * place.stage, map, bar, its);
            }
            __syncwarp();
            place.step(small & 0xffff);
        }
        return 0;
    }

    // The same with several loads each, plain or multicast, whose coordinates grow by as much each time: both operands of a product. Lane j has
    // what belongs to load j, and issues it.
    template <u32 COPIES>
    __device__ __forceinline__ u32 growing(u32 base, u32 end, i32 first, i32 growth) {
        constexpr u32 LANES = 8 * C::per(COPIES);
        const u32 lane = lane_number(), mine = min(lane, COPIES - 1);
        const u32 full = ring.full(0), empty = ring.empty(0), nbytes = ring.nbytes(), stages = ring.stages();
        const CopyOf copy(ring.launch, w, ring.copy(mine));
        const u64 map = ring.launch.map(copy.map());
        const u32 rank = copy.rank();
        const bool plain = copy.kind() == OP_TENSOR_G2S;
        ptx::Coords at, by;
#pragma unroll
        for (u32 d = 0; d < 5; ++d) {
            at.c[d] = __shfl_sync(FULL_WARP, first, LANES * mine + d);
            by.c[d] = __shfl_sync(FULL_WARP, growth, LANES * mine + d);
        }
        u32 bar = full + 8 * place.stage, to = copy.tile + copy.stride * place.stage;
#pragma unroll 1
        for (u32 number = base; number < end; ++number) {
            if (place.round != 0) {
                const u32 why = wait_parity(header(), bar - full + empty, place.round & 1 ^ 1);
                if (why) {
                    k += static_cast<i32>(number - base);
                    return why;
                }
            }
            if (lane == 0 && nbytes) ptx::mbarrier_arrive_expect_tx(bar, nbytes);
            if (lane < COPIES) {
                if (plain) load(rank, to, map, bar, at);
                else load_multicast(rank, to, map, bar, at, copy.mask);
            }
            __syncwarp();
#pragma unroll
            for (u32 d = 0; d < 5; ++d) at.c[d] += by.c[d];
            place.step(stages);
            bar = place.stage == 0 ? full : bar + 8;
            to = place.stage == 0 ? copy.tile : to + copy.stride;
        }
        k += static_cast<i32>(end - base);
        return 0;
    }

    // The same with two loads each, plain or multicast: both operands of a product whose coordinates do not grow by as much each time.
    __device__ __forceinline__ u32 pairs(u32 base, u32 end) {
        const CopyOf a(ring.launch, w, ring.copy(0)), b(ring.launch, w, ring.copy(1));
        const u32 full = ring.full(0), empty = ring.empty(0), nbytes = ring.nbytes(), stages = ring.stages();
        const u32 slots = ring.counter() ? slot_of(header(), 0) : 0;
        const u64 a_map = ring.launch.map(a.map()), b_map = ring.launch.map(b.map());
#pragma unroll 1
        for (u32 number = base; number < end; step<2>(++number, end)) {
            const ptx::Coords a_its = where.template of<2>(ring, 0, base, number, a.rank());
            const ptx::Coords b_its = where.template of<2>(ring, 1, base, number, b.rank());
            if (place.round != 0) {
                const u32 why = wait_parity(header(), empty + 8 * place.stage, place.round & 1 ^ 1);
                if (why) return why;
            }
            if (lane_number() == 0) {
                const u32 bar = full + 8 * place.stage;
                if (slots) ptx::atom_exch_shared_u32(slots + 4 * place.stage, slot_with(number, end - number, place.round));
                if (nbytes) ptx::mbarrier_arrive_expect_tx(bar, nbytes);
                half(a, a_map, bar, a_its);
                half(b, b_map, bar, b_its);
            }
            __syncwarp();
            place.step(stages);
        }
        return 0;
    }

    __device__ __forceinline__ void half(const CopyOf& copy, u64 map, u32 bar, const ptx::Coords& its) const {
        const u32 to = copy.tile + copy.stride * place.stage;
        if (copy.kind() == OP_TENSOR_G2S) load(copy.rank(), to, map, bar, its);
        else load_multicast(copy.rank(), to, map, bar, its, copy.mask);
    }

    // The same for any copies.
    __device__ __forceinline__ u32 any(u32 base, u32 end) {
#pragma unroll 1
        for (u32 number = base; number < end; step<0>(++number, end)) {
            const u32 why = wait_empty();
            if (why) return why;
            issue(base, number, end);
            place.step(ring.stages());
        }
        return 0;
    }

    // Iterations, or tiles, `base` to `end` - 1. While instructions compute a batch, all that is common to the lanes is put away.
    __device__ __forceinline__ u32 batch(u32 base, u32 end) {
        if constexpr (L::PAIRS && !C::BATCHES) {
            i32 first, growth;
            if (!ring.counter() && where.grows(base, first, growth)) {
                switch (ring.copies()) {
                    case 2: return growing<2>(base, end, first, growth);
                    case 3: return growing<3>(base, end, first, growth);
                    case 4: return growing<4>(base, end, first, growth);
                    default: break;
                }
            }
        }
        if constexpr (C::BATCHES) {
            Parked parked{};
            parked.put(lane_number(), 0, place.stage);
            parked.put(lane_number(), 1, place.round);
            parked.put(lane_number(), 2, base);
            parked.put(lane_number(), 3, end);
            parked.put(lane_number(), 4, static_cast<u32>(k));
            where.template compute<0>(ring, w, k, base);
            place.stage = parked.take(0);
            place.round = parked.take(1);
            base = parked.take(2);
            end = parked.take(3);
            k = static_cast<i32>(parked.take(4));
        } else {
            where.template compute<0>(ring, w, k, base);
        }
        if constexpr (L::PAIRS) {
            if (ring.copies() == 2) return pairs(base, end);
        }
        return ring.one(OP_TENSOR_G2S) ? loads(base, end) : any(base, end);
    }

    // Counter mode: as many iterations as there are tiles. Returns why it gave up; `k` says how far it came.
    __device__ __forceinline__ u32 run(u32 stop) {
        const bool counter = ring.counter();
        u32 count = counter ? tiles_at_once(stop, ring.nbytes()) : C::BATCHES ? C::per(ring.copies()) : stop;
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
        for (u32 s = lane_number(); s < ring.stages(); s += 32) ptx::atom_exch_shared_u32(slot_of(header(), s), slot_with(NO_TILE, 1, 1));
        __syncwarp();
    }

    // No tile, with an extra stage.
    __device__ __forceinline__ u32 hand_on_end() const {
        const u32 why = wait_empty();
        if (why == 0 && lane_number() == 0) {
            ptx::atom_exch_shared_u32(slot_of(header(), place.stage), slot_with(NO_TILE, 1, place.round));
            ptx::mbarrier_arrive(ring.full(place.stage), 1);
        }
        __syncwarp();
        return why;
    }

    __device__ __forceinline__ Failure all(u32 stop) {
        if (ring.counter()) clear_slots();
        u32 why = run(stop);
        if (ring.counter()) {
            counter_done(header(), w, static_cast<u32>(k));
            if (why == 0) why = hand_on_end();
        }
        return waited_for(why, ring.empty(place.stage), place.round & 1 ^ 1, k);
    }
};

template <class L>
OX_DEVICE Failure produce(const L& launch, const Warp& w, const RecordAt<L>& r) {
    const RingAt<L> ring{launch, w.pc + 1};
    const i32 start = w.value(r, 0);
    const u32 stop = static_cast<u32>(max(w.value(r, 1), 0));
    if (w.skip) {
        if (ring.counter()) counter_done(launch.header(), w, start);
        return no_failure();
    }
    const Place place(start + ring.offset(), ring.stages());
    if (ring.by_records()) return Producer<L, ByRecords<L>>{ring, w, ByRecords<L>(ring, w), place, start}.all(stop);
    return Producer<L, ByInstructions<L>>{ring, w, ByInstructions<L>(ring, w), place, start}.all(stop);
}

// Stamps of one warp: when it came to each record and how long that took, in a buffer of bounded size.
#pragma once
#include "member.cuh"

// Lane 0 reads the timer and writes; a warp whose CTA is not followed, or whose room is full, does neither.
struct Stamper {
    u64 next, end;  // where the next stamp goes; both 0 for a warp that stamps nothing
    u64 begun;      // when it came to the record that it is at, 0 between two records

    __device__ __forceinline__ void open(const Header& header) {
        const StampHeader* room = reinterpret_cast<const StampHeader*>(header.counter);
        next = end = begun = 0;
        if (cta_number() >= room->ctas) return;
        const u64 place = static_cast<u64>(cta_number()) * header.warps + warp_number();
        next = header.counter + sizeof(StampHeader) + sizeof(Stamp) * room->capacity * place;
        end = next + sizeof(Stamp) * room->capacity;
    }

    __device__ __forceinline__ bool stamps() const { return next != end && lane_number() == 0; }

    // A wait that is asked again keeps the time of its first question.
    __device__ __forceinline__ void begin() {
        if (stamps() && begun == 0) begun = ptx::globaltimer();
    }

    // The record is done; `next` and `begun` are lane 0's.
    template <class R>
    __device__ __forceinline__ void end_of(const Member& w, const R& r) {
        const u32 op = r.op();
        const bool counts = op == OP_LOOP || op == OP_NEXT, shows = op != OP_EVAL && op != OP_JUMP && op != OP_JUMP_UNLESS && op != OP_WARP_SYNC;
        const u32 counter = counts ? static_cast<u32>(w.get(r.reg(0))) : 0;  // by all lanes
        if (stamps() && shows && op != OP_END) {
            Stamp* stamp = reinterpret_cast<Stamp*>(next);
            stamp->pc = w.pc;
            stamp->value = counts ? counter : static_cast<u32>(min(ptx::globaltimer() - begun, static_cast<u64>(~0u)));
            stamp->begun = begun;
            next += sizeof(Stamp);
        }
        begun = 0;
    }
};

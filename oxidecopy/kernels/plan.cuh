// Tight loops that are run by straight code: those whose ops stand in one order, each there or not. What does not change is looked up before the
// loop; the operands of all ops, which lie in lanes, are computed at once, from the iteration or the tile: no register of the scalar file is
// written on the way.
#pragma once
#include "barriers.cuh"
#include "drain.cuh"
#include "group_part.cuh"

// A record in registers, as RecordAt.
struct Held {
    uint4 a, b;

    __device__ __forceinline__ u32 op() const { return a.x & 0xff; }
    __device__ __forceinline__ u32 aux() const { return a.x >> 8 & 0xff; }
    __device__ __forceinline__ u32 map() const { return a.x >> 16 & 0xff; }
    __device__ __forceinline__ u32 flags() const { return a.x >> 24; }
    __device__ __forceinline__ u32 reg(u32 k) const { return (k < 4 ? a.y : a.z) >> 8 * (k % 4) & 0xff; }
    __device__ __forceinline__ i32 imm(u32 k) const {
        return static_cast<i32>(k == 0 ? a.w : k == 1 ? b.x : k == 2 ? b.y : k == 3 ? b.z : b.w);
    }
};

template <class L>
OX_DEVICE Held held(const L& launch, u32 pc) {
    return Held{launch.quad(pc, 0), launch.quad(pc, 1)};
}

// The parts of a turn, in their order; PART_MADE is a COMPUTE or what else a group makes of tiles.
enum : u32 {
    PART_PLACE, PART_WAIT, PART_GROUP, PART_BAR, PART_MADE, PART_FENCE, PART_BAR_2, PART_STORE, PART_COMMIT, PART_GROUP_2, PART_BAR_3,
    PART_ARRIVE, PARTS
};
constexpr u32 NO_PART = 32;

// Lanes of operands: a COMPUTE's inputs and its output as Machine::tiles has them, then these.
enum : u32 { OF_WAIT_BAR = MAP_INPUTS + 1, OF_PHASE, OF_TILE, OF_COORDS, OF_ARRIVE_BAR = OF_COORDS + 5 };

// Lanes of `fixed`: for each part what its record says (of PART_MADE where it is), then the loop's bounds, and records and registers that are
// needed when something goes wrong.
enum : u32 { LOOP_STOP = PARTS, LOOP_STEP, AT_PLACE, AT_WAIT, AT_HEAD, REG_OF_COUNTER, REG_OF_TILE };

struct Plan {
    enum : u32 {
        COUNTED = 1u << PARTS,   // tiles come from a counter
        ONE_PASS = 2u << PARTS,  // a lane's units are the same each time
        OTHER = 4u << PARTS,     // PART_MADE is no COMPUTE
        STRAIGHT = 8u << PARTS,  // always: else the loop is run op by op
        BY_TILE = 16u << PARTS,  // operands depend on the tile
        BEFORE = 1u << PART_WAIT | 1u << PART_GROUP,
        BEHIND = 1u << PART_STORE | 1u << PART_COMMIT | 1u << PART_GROUP_2 | 1u << PART_BAR_3 | 1u << PART_ARRIVE,
        BAR_BITS = 10,
        SECOND_ROUND = 1u << 12,  // in `turn`
        SLOTS_AT = 13,
    };
    u32 has;   // the parts; 0: the loop is none of that kind
    u32 bars;  // of the three barriers of threads: number | warps << 4
    i32 k;
    u32 tile;
    u32 turn, ring;             // of a counter's ring: stage | parity of the round << 12 | address of slots << 13; that of full | stages << 20
    u32 imm, start, times;      // lane i: operand i is imm + f(start + times * number),
    u32 part;                   // f as the COORDINATE record at this offset says, 0: none; + 1 where number is the tile, not the iteration
    Parked fixed;

    __device__ __forceinline__ bool with(u32 which) const { return has >> which & 1; }
    __device__ __forceinline__ u32 made() const { return fixed.take(PART_MADE); }  // its record
    __device__ __forceinline__ void fix(u32 lane, u32 value) { fixed.put(lane_number(), lane, value); }

    // Operand `lane` is a constant and a register, for now.
    __device__ __forceinline__ void operand(u32 lane, u32 constant, u32 from) {
        imm = lane_number() == lane ? constant : imm;
        part = lane_number() == lane ? from : part;
    }

    // Which part an op may be that stands behind part `last`.
    static __device__ __forceinline__ u32 part_of(u32 op, i32 last) {
        if (is_group_part(op)) return PART_MADE;
        switch (op) {
            case OP_PLACE: return PART_PLACE;
            case OP_MBARRIER_WAIT_PHASE: return PART_WAIT;
            case OP_WAIT_GROUP:
            case OP_WAIT_GROUP_READ: return last < PART_GROUP ? PART_GROUP : PART_GROUP_2;
            case OP_BAR_SYNC:
            case OP_WARP_SYNC: return last < PART_BAR ? PART_BAR : last < PART_BAR_2 ? PART_BAR_2 : PART_BAR_3;
            case OP_FENCE_PROXY_ASYNC: return PART_FENCE;
            case OP_TENSOR_S2G: return PART_STORE;
            case OP_COMMIT_GROUP: return PART_COMMIT;
            case OP_MBARRIER_ARRIVE: return PART_ARRIVE;
            default: return NO_PART;
        }
    }

    // Looks at the loop whose first record is `pc`; false when it is none of that kind.
    template <class L>
    __device__ __forceinline__ bool read(const L& launch, const Warp& w, u32 pc) {
        const u32 base = shared_base();
        bars = 0, imm = 0, part = NO_REG;
        u32 parts = 0, mask = 0, of_tile = NO_REG, of_counter = NO_REG;
        i32 last = -1;
#pragma unroll 1
        for (const u32 first = pc;;) {
            const Held r = held(launch, pc);
            if (r.op() == OP_NEXT) {
                of_counter = r.reg(0);
                k = static_cast<i32>(w.get(of_counter));
                fix(LOOP_STOP, static_cast<u32>(w.value(r, 2)));
                fix(LOOP_STEP, static_cast<u32>(r.imm(3)));
                break;
            }
            if (r.op() == OP_NEXT_STAGE && pc == first) {
                const u32 stages = static_cast<u32>(r.imm(2));
                const Place place(w.value(r, 0), stages);
                turn = place.stage | (place.round & 1) << 12 | (slot_of(launch.header(), 0) & 0x7ffff) << SLOTS_AT;
                ring = base + static_cast<u32>(r.imm(1)) | stages << 20;
                of_tile = r.reg(2);
                fix(AT_HEAD, pc);
                parts |= COUNTED;
                ++pc;
                continue;
            }
            const u32 which = part_of(r.op(), last);
            if (which == NO_PART || static_cast<i32>(which) <= last) return false;
            last = static_cast<i32>(which);
            parts |= 1u << which;
            const u32 at = base + static_cast<u32>(r.imm(0));
            u32 says = static_cast<u32>(r.imm(0));
            switch (which) {
                case PART_PLACE:
                    fix(AT_PLACE, pc);
                    says = mask = static_cast<u32>(r.imm(1));
                    break;
                case PART_WAIT:
                    fix(AT_WAIT, pc);
                    operand(OF_WAIT_BAR, at, r.reg(0));
                    operand(OF_PHASE, static_cast<u32>(r.imm(1)), r.reg(1));
                    break;
                case PART_GROUP:
                case PART_GROUP_2: says |= r.op() == OP_WAIT_GROUP_READ ? 0x100 : 0; break;
                case PART_MADE:
                    says = pc;
                    parts |= r.op() == OP_COMPUTE ? 0 : OTHER;
                    operand(MAP_INPUTS, at, r.reg(0));
                    if (RESHAPES && r.op() != OP_COMPUTE) operand(0, base + static_cast<u32>(r.imm(1)), r.reg(1));
#pragma unroll 1
                    for (u32 i = 0; i < r.aux() && r.op() == OP_COMPUTE; ++i) operand(i, base + launch.word(pc + 2, i), r.reg(1 + i));
                    break;
                case PART_STORE:
                    operand(OF_TILE, at, r.reg(0));
#pragma unroll 1
                    for (u32 i = 0; i < r.aux(); ++i) operand(OF_COORDS + i, 0, r.reg(2 + r.aux() - i));
                    says = r.aux() | r.map() << 8;
                    break;
                case PART_ARRIVE:
                    operand(OF_ARRIVE_BAR, at, r.reg(0));
                    says = w.entry(launch).x >> 16;
                    break;
                case PART_BAR:
                case PART_BAR_2:
                case PART_BAR_3: {  // one warp alone: 1 << 4
                    const u32 met = r.op() == OP_WARP_SYNC ? 16 : says | static_cast<u32>(r.imm(1)) / 32 << 4;
                    bars |= met << BAR_BITS * (which == PART_BAR ? 0 : which == PART_BAR_2 ? 1 : 2);
                    break;
                }
                default: break;
            }
            fix(which, says);
            pc += 1 + r.flags();
        }
        fix(REG_OF_COUNTER, of_counter);
        fix(REG_OF_TILE, of_tile);
        tile = 0;
        if (!resolve(launch, w, mask, of_counter, of_tile)) return false;
        const bool by_tile = part & 1, lane_waits = lane_number() == OF_WAIT_BAR || lane_number() == OF_PHASE;
        if (__any_sync(FULL_WARP, by_tile && lane_waits)) return false;
        has = parts | STRAIGHT | (__any_sync(FULL_WARP, by_tile) ? BY_TILE : 0);
        return true;
    }

    // Each lane's operand as a function of the iteration or the tile; false where one is no such function.
    template <class L>
    __device__ __forceinline__ bool resolve(const L& launch, const Warp& w, u32 mask, u32 of_counter, u32 of_tile) {
        const u32 reg = part, now = w.gather(reg);
        start = reg == NO_REG ? 0 : now;
        times = 0, part = 0;
        bool good = true;
        const bool moved = reg < 32 && mask >> (reg & 31) & 1;
        const u32 which = moved ? __popc(mask & (1u << reg) - 1) : 0;
        if (reg != NO_REG && (reg == of_counter || reg == of_tile)) start = 0, times = 1, part = reg == of_tile ? 1 : 0;
        if (mask == 0) return true;
        const u32 pc = fixed.take(AT_PLACE) + 1;
        const uint4 moves = launch.quad(pc, 3 * which), divides = launch.quad(pc, 3 * which + 1), scales = launch.quad(pc, 3 * which + 2);
        const u32 regs = divides.z >> 16 | scales.z << 16;  // three of them
        u32 sum = moves.w, by_counter = 0, by_tile = 0;
#pragma unroll
        for (u32 i = 0; i < 3; ++i) {
            const u32 from = regs >> 8 * i & 0xff, by = i == 0 ? moves.x : i == 1 ? moves.y : moves.z, value = w.gather(from);
            if (by == 0) continue;
            if (from == of_counter) by_counter += by;
            else if (from == of_tile) by_tile += by;
            else if (from < 32 && mask >> (from & 31) & 1) good = false;
            else sum += by * value;
        }
        if (moved) {
            start = sum;
            times = by_counter + by_tile;
            part = RECORD_BYTES * pc + COORDINATE_BYTES * which | (by_tile != 0 ? 1 : 0);
            good &= by_counter == 0 || by_tile == 0;
        }
        return __all_sync(FULL_WARP, good);
    }

    // What each lane's operand is a function of, on its way while the warp does other things.
    struct Placing {
        uint4 divides;
        uint2 scale;
    };

    template <class L>
    __device__ __forceinline__ Placing placing(const L& launch) const {
        const u64 at = launch.header().code + 16 * (hidden(part) >> 4);  // 0: any record will do; the code of these families lies in memory
        return Placing{ptx::ld_nc_v4(at + 16), ptx::ld_nc_v2(at + 32)};
    }

    // The operands of this turn.
    __device__ __forceinline__ u32 operands(const Placing& by) const {
        const u32 what = hidden(part), x = start + times * (what & 1 ? tile : static_cast<u32>(k));
        const uint4 d = by.divides;
        const u32 moved = static_cast<u32>(placed(x, d.x, d.z & 0xff, d.y, d.z >> 8 & 0xff, d.w, by.scale.x, by.scale.y));
        return imm + (what >> 4 ? moved : x);
    }

    // For who goes on op by op, or reads its operands there.
    template <class L>
    __device__ __forceinline__ void to_registers(const L& launch, Warp& w) const {
        w.set(fixed.take(REG_OF_COUNTER), static_cast<u32>(k));
        if (has & COUNTED) w.set(fixed.take(REG_OF_TILE), tile);
        if (with(PART_PLACE)) place(launch, w, fixed.take(AT_PLACE), fixed.take(PART_PLACE));
    }

    template <bool NAMED>
    __device__ __forceinline__ void bar(u32 which) const {
        const u32 says = hidden(bars) >> BAR_BITS * which, warps = says >> 4 & 63;
        if (warps > 1) barrier_of<0, BARRIERS<NAMED>>(says & 15, 32 * warps);
        else if (warps) __syncwarp();
    }

    __device__ __forceinline__ void group(u32 which) const {
        if (!with(which)) return;
        const u32 says = fixed.take(which);
        if (lane_number() == 0) {
            if (says & 0x100) wait_group<true>(says & 0xff);
            else wait_group<false>(says & 0xff);
        }
        __syncwarp();
    }

    // What comes before PART_MADE. `values`: the operands. False where there is no tile left, or with `why` where the warp must give up.
    template <bool NAMED, class L>
    __device__ __forceinline__ bool before(const L& launch, Warp& w, Parked& values, Failure& why) {
        const Placing by = placing(launch);
        why = no_failure();
        if (has & COUNTED) {
            const u32 stage = turn & STAGES_MAX, full = (ring & 0xfffff) + 8 * stage, parity = turn >> 12 & 1;
            const u32 late = wait_parity(launch.header(), full, parity);
            if (late) {
                w.pc = fixed.take(AT_HEAD);
                why = waited_for(late, full, parity, static_cast<u32>(k));
                return false;
            }
            tile = ::tile_of(ptx::ld_shared_u32((turn >> SLOTS_AT) + 4 * stage));  // the stage's barrier has ordered it
            if (tile == NO_TILE) return false;
            turn = stage + 1 == ring >> 20 ? (turn & ~static_cast<u32>(STAGES_MAX)) ^ SECOND_ROUND : turn + 1;
        }
        if (!(has & BY_TILE) || with(PART_WAIT)) values.lanes = operands(by);
        if (has & BEFORE) {
            if (with(PART_WAIT)) {
                const u32 at = values.take(OF_WAIT_BAR), phase = values.take(OF_PHASE);
                if (static_cast<i32>(phase) >= 0) {
                    const u32 late = wait_parity(launch.header(), at, phase & 1);
                    if (late) {
                        w.pc = fixed.take(AT_WAIT);
                        why = waited_for(late, at, phase & 1, static_cast<u32>(k));
                        return false;
                    }
                }
            }
            group(PART_GROUP);
        }
        bar<NAMED>(0);
        if (has & BY_TILE) values.lanes = operands(by);  // others do not wait for it
        return true;
    }

    // What comes behind it; false when that was the last turn.
    template <bool NAMED, class L>
    __device__ __forceinline__ bool after(const L& launch, const Parked& values) {
        if (with(PART_FENCE)) ptx::fence_proxy_async_shared_cta();
        u32 rank = 0, from = 0, released = 0, threads = 0;
        u64 map = 0;
        ptx::Coords at{};
        if (with(PART_STORE)) {  // all that can be done before others have come
            const u32 says = fixed.take(PART_STORE);
            rank = says & 0xff, from = values.take(OF_TILE), map = launch.map(says >> 8);
#pragma unroll
            for (u32 i = 0; i < 5; ++i) {
                if (i < 2 || i < rank) at.c[i] = static_cast<i32>(values.take(OF_COORDS + i));
            }
        }
        if (with(PART_ARRIVE)) released = values.take(OF_ARRIVE_BAR), threads = fixed.take(PART_ARRIVE);
        const i32 stop = static_cast<i32>(fixed.take(LOOP_STOP)), step = static_cast<i32>(fixed.take(LOOP_STEP));
        bar<NAMED>(1);
        if (has & BEHIND) {
            // What is let go of with no wait for the store before it is not what the store reads: nothing holds it up.
            const bool early = (has & (1u << PART_GROUP_2 | 1u << PART_BAR_3)) == 0 && (hidden(bars) >> 2 * BAR_BITS) == 0;
            if (early && with(PART_ARRIVE) && lane_number() == 0) ptx::mbarrier_arrive(released, threads);
            if (with(PART_STORE) && lane_number() == 0) store(rank, map, from, at);
            if (with(PART_COMMIT) && lane_number() == 0) ptx::cp_async_bulk_commit_group();
            __syncwarp();
            group(PART_GROUP_2);
            bar<NAMED>(2);
            if (!early && with(PART_ARRIVE) && lane_number() == 0) ptx::mbarrier_arrive(released, threads);
        }
        k += step;
        return k < stop;
    }
};

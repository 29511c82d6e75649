// Tight loops: what a group of threads that computes does for each stage of a ring, wait, compute, store, release. Interpreting a record takes
// some ten jumps, and code that runs once for each tile comes from far caches, a jump at a time. So here are few ops, in little code, and a
// record is there as a whole before it is its turn.
#pragma once
#include "barriers.cuh"
#include "copies.cuh"
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

// ---- a loop whose ops stand in this order, each there or not, is run by straight code: what does not change in it is in lanes of a few
// registers, and the operands of all ops are added up at once, a lane for each.
enum : u32 {
    PART_PLACE, PART_WAIT, PART_GROUP, PART_BAR, PART_COMPUTE, PART_FENCE, PART_BAR_2, PART_STORE, PART_COMMIT, PART_GROUP_2, PART_BAR_3,
    PART_ARRIVE, PARTS
};
constexpr u32 NO_PART = 32;

// Lanes of `imm` and `reg`: a COMPUTE's inputs and its output as Machine::tiles has them, then these.
enum : u32 { OF_WAIT_BAR = MAP_INPUTS + 1, OF_PHASE, OF_TILE, OF_COORDS, OF_ARRIVE_BAR = OF_COORDS + 5, OF_COUNTER };

// Lanes of `fixed`: for each part what its record says, then these.
enum : u32 { AT_PLACE = PARTS, AT_WAIT, AT_COMPUTE, AT_HEAD, AT_STOP, AT_STEP, AT_REG, AT_STAGE, AT_ROUND, AT_FULL, AT_STAGES, AT_TILE };

struct Plan {
    static constexpr u32 COUNTED = 1u << PARTS, ONE_PASS = 2u << PARTS;  // tiles come from a counter; a lane's units are the same each time
    static constexpr u32 OTHER = 4u << PARTS;  // its COMPUTE is another part of a group
    u32 has;       // the parts; 0: the loop is none of that kind
    u32 imm, reg;  // lane i: operand i
    Parked fixed;

    __device__ __forceinline__ bool with(u32 part) const { return has >> part & 1; }
    __device__ __forceinline__ void fix(u32 lane, u32 value) { fixed.put(lane_number(), lane, value); }

    __device__ __forceinline__ void operand(u32 lane, u32 constant, u32 from) {
        imm = lane_number() == lane ? constant : imm;
        reg = lane_number() == lane ? from : reg;
    }

    // Which part an op may be that stands behind part `last`.
    static __device__ __forceinline__ u32 part_of(u32 op, i32 last) {
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
            default: return is_group_part(op) ? PART_COMPUTE : NO_PART;
        }
    }

    // Reads the loop whose first record is `pc`.
    template <class L>
    __device__ __forceinline__ void read(const L& launch, const Warp& w, u32 pc) {
        has = 0, imm = 0, reg = NO_REG, fixed.lanes = 0;
        i32 last = -1;
        const u32 base = shared_base();
#pragma unroll 1
        for (u32 first = pc;;) {
            const Held r = held(launch, pc);
            if (r.op() == OP_NEXT) {
                operand(OF_COUNTER, 0, r.reg(0));
                fix(AT_STOP, static_cast<u32>(w.value(r, 2)));
                fix(AT_STEP, static_cast<u32>(r.imm(3)));
                fix(AT_REG, r.reg(0));
                return;
            }
            if (r.op() == OP_NEXT_STAGE && pc == first) {
                const Place place(w.value(r, 0), static_cast<u32>(r.imm(2)));
                fix(AT_HEAD, pc);
                fix(AT_STAGE, place.stage);
                fix(AT_ROUND, place.round);
                fix(AT_FULL, base + static_cast<u32>(r.imm(1)));
                fix(AT_STAGES, static_cast<u32>(r.imm(2)));
                fix(AT_TILE, r.reg(2));
                has |= COUNTED;
                ++pc;
                continue;
            }
            const u32 part = part_of(r.op(), last);
            if (part == NO_PART || static_cast<i32>(part) <= last) {
                has = 0;
                return;
            }
            last = static_cast<i32>(part);
            has |= 1u << part;
            const u32 at = base + static_cast<u32>(r.imm(0));
            u32 says = static_cast<u32>(r.imm(0));
            switch (part) {
                case PART_PLACE:
                    fix(AT_PLACE, pc);
                    says = static_cast<u32>(r.imm(1));
                    break;
                case PART_WAIT:
                    fix(AT_WAIT, pc);
                    operand(OF_WAIT_BAR, at, r.reg(0));
                    operand(OF_PHASE, static_cast<u32>(r.imm(1)), r.reg(1));
                    break;
                case PART_GROUP:
                case PART_GROUP_2: says |= r.op() == OP_WAIT_GROUP_READ ? 0x100 : 0; break;
                case PART_COMPUTE:
                    fix(AT_COMPUTE, pc);
                    operand(MAP_INPUTS, at, r.reg(0));
                    if (RESHAPES && r.op() != OP_COMPUTE) {
                        operand(0, base + static_cast<u32>(r.imm(1)), r.reg(1));
                        has |= OTHER;
                        break;
                    }
#pragma unroll 1
                    for (u32 i = 0; i < r.aux(); ++i) operand(i, base + launch.word(pc + 2, i), r.reg(1 + i));
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
                case PART_BAR_3: says = r.op() == OP_WARP_SYNC ? 0 : says | static_cast<u32>(r.imm(1)) << 8; break;
                default: break;
            }
            fix(part, says);
            pc += 1 + r.flags();
        }
    }

    template <bool NAMED>
    __device__ __forceinline__ void bar(u32 part) const {
        if (!with(part)) return;
        const u32 says = fixed.take(part);
        if (says == 0) __syncwarp();
        else bar_sync<NAMED>(says & 0xff, says >> 8);
    }

    __device__ __forceinline__ void group(u32 part) const {
        if (!with(part)) return;
        const u32 says = fixed.take(part);
        if (lane_number() == 0) {
            if (says & 0x100) wait_group<true>(says & 0xff);
            else wait_group<false>(says & 0xff);
        }
        __syncwarp();
    }

    // What comes before a COMPUTE. `values`: the operands. `none`: there is no tile left.
    template <bool NAMED, class L>
    __device__ __forceinline__ Failure before(const L& launch, Warp& w, Parked& values, bool& none) {
        none = false;
        if (has & COUNTED) {
            const u32 stage = fixed.take(AT_STAGE), round = fixed.take(AT_ROUND), full = fixed.take(AT_FULL) + 8 * stage;
            const u32 why = wait_parity(launch.header(), full, round & 1);
            if (why) {
                w.pc = fixed.take(AT_HEAD);
                return waited_for(why, full, round & 1, 0);
            }
            const u32 tile = ::tile_of(slot_at(launch.header(), stage));
            w.set(fixed.take(AT_TILE), tile);
            if (tile == NO_TILE) {
                none = true;
                return no_failure();
            }
            const bool around = stage + 1 == fixed.take(AT_STAGES);
            fix(AT_STAGE, around ? 0 : stage + 1);
            fix(AT_ROUND, around ? round + 1 : round);
        }
        if (with(PART_PLACE)) place(launch, w, fixed.take(AT_PLACE), fixed.take(PART_PLACE));
        const u32 more = w.gather(reg);
        values.lanes = imm + (reg == NO_REG ? 0 : more);
        if (with(PART_WAIT)) {
            const u32 at = values.take(OF_WAIT_BAR), phase = values.take(OF_PHASE);
            if (static_cast<i32>(phase) >= 0) {
                const u32 why = wait_parity(launch.header(), at, phase & 1);
                if (why) {
                    w.pc = fixed.take(AT_WAIT);
                    return waited_for(why, at, phase & 1, 0);
                }
            }
        }
        group(PART_GROUP);
        bar<NAMED>(PART_BAR);
        return no_failure();
    }

    // What comes behind it; false when that was the last turn.
    template <bool NAMED, class L>
    __device__ __forceinline__ bool after(const L& launch, Warp& w, const Parked& values) const {
        if (with(PART_FENCE)) ptx::fence_proxy_async_shared_cta();
        bar<NAMED>(PART_BAR_2);
        if (with(PART_STORE)) {
            const u32 says = fixed.take(PART_STORE), rank = says & 0xff, tile = values.take(OF_TILE);
            ptx::Coords at{};
#pragma unroll
            for (u32 i = 0; i < 5; ++i) {
                if (i < rank) at.c[i] = static_cast<i32>(values.take(OF_COORDS + i));
            }
            if (lane_number() == 0) store(rank, launch.map(says >> 8), tile, at);
            __syncwarp();
        }
        if (with(PART_COMMIT)) {
            if (lane_number() == 0) ptx::cp_async_bulk_commit_group();
            __syncwarp();
        }
        group(PART_GROUP_2);
        bar<NAMED>(PART_BAR_3);
        if (with(PART_ARRIVE)) {
            const u32 at = values.take(OF_ARRIVE_BAR), threads = fixed.take(PART_ARRIVE);
            __syncwarp();
            if (lane_number() == 0) ptx::mbarrier_arrive(at, threads);
        }
        const i32 k = static_cast<i32>(values.take(OF_COUNTER) + fixed.take(AT_STEP));
        if (k >= static_cast<i32>(fixed.take(AT_STOP))) return false;
        w.set(fixed.take(AT_REG), static_cast<u32>(k));
        return true;
    }
};

// ---- all others
template <class L>
OX_DEVICE void tight_store(const L& launch, const Warp& w, const Held& r) {
    const u32 rank = r.aux(), tile = w.address(r, 0);
    ptx::Coords at;
#pragma unroll
    for (u32 i = 0; i < 5; ++i) at.c[i] = i < rank ? static_cast<i32>(w.or_zero(r.reg(2 + rank - i))) : 0;
    if (lane_number() == 0) store(rank, launch.map(r.map()), tile, at);
    __syncwarp();
}

// One record of a tight loop that is no COMPUTE. `left`: it was the loop's last.
template <bool NAMED, class L>
OX_DEVICE Failure tight_record(const L& launch, Warp& w, const Held& now, bool& left) {
    switch (now.op()) {
        case OP_PLACE: place(launch, w, w.pc, static_cast<u32>(now.imm(1))); break;
        case OP_BAR_SYNC: bar_sync<NAMED>(static_cast<u32>(now.imm(0)), static_cast<u32>(now.imm(1))); break;
        case OP_MBARRIER_WAIT_PHASE:
            if (!w.skip) return wait_op(launch.header(), w, now);
            break;
        case OP_NEXT_STAGE: {
            bool none = false;
            const Failure why = next_stage(launch, w, now, none);
            left = none && !why;
            return why;
        }
        case OP_FENCE_PROXY_ASYNC: ptx::fence_proxy_async_shared_cta(); break;
        case OP_TENSOR_S2G:
            if (!w.skip) tight_store(launch, w, now);
            break;
        case OP_COMMIT_GROUP:
        case OP_WAIT_GROUP:
        case OP_WAIT_GROUP_READ:
            if (!w.skip) group_op(w, now);
            break;
        case OP_MBARRIER_ARRIVE: {
            const u32 bar = w.address(now, 0);
            __syncwarp();
            if (!w.skip && lane_number() == 0) ptx::mbarrier_arrive(bar, launch.warp_entry(warp_number()).x >> 16);
            break;
        }
        case OP_NEXT: {
            const i32 k = static_cast<i32>(w.get(now.reg(0))) + now.imm(3);
            left = k >= w.value(now, 2);
            if (!left) w.set(now.reg(0), static_cast<u32>(k));
            break;
        }
        default: __syncwarp(); break;  // WARP_SYNC
    }
    return no_failure();
}

// Runs records from w.pc on, up to a group's part, which it gives back, the `tiles` of a COMPUTE too; 0 when there is none: that was the loop's
// last turn, or the one op.
template <bool NAMED, class L>
OX_DEVICE u32 up_to_group_part(const L& launch, Warp& w, bool alone, Parked& tiles) {
    Held now = held(launch, w.pc);
#pragma unroll 1
    while (!is_group_part(now.op())) {
        const u32 next = now.op() == OP_NEXT ? static_cast<u32>(now.imm(4)) : w.pc + 1 + now.flags();
        const Held following = held(launch, next);  // on its way while this one runs
        bool left = alone;
        const Failure why = tight_record<NAMED>(launch, w, now, left);
        if (left) return 0;
        if (why && !w.skip) {
            give_up(launch.header(), w, why);
            if (now.op() == OP_NEXT_STAGE) continue;  // in skip mode it says how many stages there are
        }
        w.pc = next;
        now = following;
    }
    tiles.put(lane_number(), MAP_INPUTS, w.address(now, 0));
    if (RESHAPES && now.op() != OP_COMPUTE) tiles.put(lane_number(), 0, w.address(now, 1));
#pragma unroll 1
    for (u32 i = 0; i < now.aux() && now.op() == OP_COMPUTE; ++i) {
        tiles.put(lane_number(), i, shared_base() + launch.word(w.pc + 2, i) + static_cast<u32>(w.or_zero(now.reg(1 + i))));
    }
    return now.op();
}

// Ops from `first` on, to the end of the loop that they are in; with `alone` one op. All that a loop has to keep is in its plan, or in its
// NEXT record and in the scalar file: registers belong to COMPUTE.
template <bool NAMED, class L>
OX_DEVICE void tight(const L& launch, Warp& w, u32 first, bool alone) {
    Tiler<L> machine{launch};
    Plan plan{};
    if (!alone && !w.skip) plan.read(launch, w, first);
    w.pc = first;
#pragma unroll 1
    for (;;) {
        u32 at = w.pc;  // of a COMPUTE
        bool computes, other = false;  // another part of a group than COMPUTE
        if (plan.has) {
            bool none = false;
            const Failure why = plan.template before<NAMED>(launch, w, machine.tiles, none);
            if (why) {  // in skip mode, op by op
                give_up(launch.header(), w, why);
                plan.has = 0;
                continue;
            }
            if (none) return;
            computes = plan.with(PART_COMPUTE);
            if (computes) at = plan.fixed.take(AT_COMPUTE);
            other = RESHAPES && plan.has & Plan::OTHER;
            computes = computes && !other;
        } else {
            const u32 op = up_to_group_part<NAMED>(launch, w, alone, machine.tiles);
            if (op == 0) return;
            at = w.pc;
            computes = !w.skip && op == OP_COMPUTE;
            other = RESHAPES && !w.skip && op != OP_COMPUTE;
        }
        if (RESHAPES && other) {
            other_part(launch, w, held(launch, at), at, machine.tiles.take(0), machine.tiles.take(MAP_INPUTS));
            machine.forget();
        }
        if constexpr (COMPUTES) if (computes) {
            const bool known = (plan.has & Plan::ONE_PASS) != 0;
            Walk walk{Walk::NONE, 0};
            u32 passes = 0;
#pragma unroll 1
            do {
                if (!known && !walk.next(launch, w, at, machine.units)) break;
                machine.run(at + 3);
                ++passes;
            } while (!known);
            if (plan.has && passes == 1) plan.has |= Plan::ONE_PASS;
            __syncwarp();
        }
        if (plan.has) {
            if (!plan.template after<NAMED>(launch, w, machine.tiles)) return;
        } else {
            if (alone) return;
            w.pc = behind_group_part(w.pc, held(launch, w.pc));
        }
    }
}

// A tight loop, PLACE or the part of a group; false for any other op.
template <bool NAMED, class L>
OX_DEVICE bool tight_op(const L& launch, Warp& w, const RecordAt<L>& r, u32& next) {
    const bool loop = r.op() == OP_LOOP && r.flags() == LOOP_TIGHT;
    if (!loop && !is_group_part(r.op()) && r.op() != OP_PLACE) return false;
    if (loop) {
        next = static_cast<u32>(r.imm(4));
        const i32 k = w.value(r, 1);
        if (k >= w.value(r, 2)) return true;
        w.set(r.reg(0), static_cast<u32>(k));
    } else {
        next = r.op() == OP_PLACE ? behind_place(w.pc, r) : behind_group_part(w.pc, r);
    }
    tight<NAMED>(launch, w, loop ? w.pc + 1 : w.pc, !loop);
    return true;
}

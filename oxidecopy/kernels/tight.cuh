// Tight loops: what a group of threads that computes does for each stage of a ring, wait, compute, store, release. Interpreting a record takes
// some ten jumps, and code that runs once for each tile comes from far caches, a jump at a time. So here are few ops, in little code; and none of
// that where straight code can run the loop (plan.cuh).
#pragma once
#include "copies.cuh"
#include "plan.cuh"

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
    if (COMPUTES && now.op() == OP_COMPUTE) {  // a lane each, of which those behind the last input's have no use
        const u32 lane = min(lane_number(), MAP_INPUTS), reg = lane == MAP_INPUTS ? now.reg(0) : now.reg(1 + lane), value = w.gather(reg);
        const u32 at = lane == MAP_INPUTS ? static_cast<u32>(now.imm(0)) : launch.word(w.pc + 2, lane);
        tiles.lanes = shared_base() + at + (reg == NO_REG ? 0 : value);
    } else {
        tiles.put(lane_number(), MAP_INPUTS, w.address(now, 0));
        tiles.put(lane_number(), 0, w.address(now, 1));
    }
    return now.op();
}

constexpr u32 ANOTHER = 0x100;  // an op of a group that is no COMPUTE

// Ops from `first` on, to the end of the loop that they are in; with `alone` one op. All that a loop has to keep is in its plan, or in its
// NEXT record and in the scalar file: registers belong to COMPUTE.
template <bool NAMED, class L>
OX_DEVICE void tight(const L& launch, Warp& w, u32 first, bool alone) {
    Tiler<L> machine{launch};
    Plan plan;
    plan.has = 0;
    w.pc = first;
    if (!alone && !w.skip && !plan.read(launch, w, first)) plan.has = 0;
    if constexpr (COMPUTES) {
        if (plan.has && plan.with(PART_MADE) && !(plan.has & Plan::OTHER)) machine.fetch(plan.made(), 0);
    }
#pragma unroll 1
    for (;;) {
        u32 made = 0;  // the op of what the group makes of tiles, 0: nothing is to be done
        if (plan.has) {
            Failure why;
            if (!plan.template before<NAMED>(launch, w, machine.tiles, why)) {
                if (!why) return;
                give_up(launch.header(), w, why);
                plan.to_registers(launch, w);
                plan.has = 0;  // in skip mode, op by op
                continue;
            }
            if (plan.with(PART_MADE)) made = RESHAPES && plan.has & Plan::OTHER ? ANOTHER : OP_COMPUTE;
        } else {
            const u32 op = up_to_group_part<NAMED>(launch, w, alone, machine.tiles);
            if (op == 0) return;
            if (!w.skip) made = op == OP_COMPUTE ? OP_COMPUTE : ANOTHER;
        }
        if (RESHAPES && made == ANOTHER) {
            const u32 at = plan.has ? plan.made() : w.pc;
            other_part(launch, w, held(launch, at), at, machine.tiles.take(0), machine.tiles.take(MAP_INPUTS));
        }
        if constexpr (COMPUTES) if (made == OP_COMPUTE) {
            Walk walk{0};
            if (!plan.has) machine.fetch(w.pc, 0);
#pragma unroll 1
            do {
                if (!(plan.has & Plan::ONE_PASS) && !walk.next(launch, w, plan.has ? plan.made() : w.pc, machine.units)) break;
                machine.run();
            } while (!(plan.has & Plan::ONE_PASS) && !Walk::once(launch, w, plan.has ? plan.made() : w.pc));
            if (plan.has && walk.passes() == 1) plan.has |= Plan::ONE_PASS;
            if (walk.passes() == 0 && !(plan.has & Plan::ONE_PASS)) plan.has &= ~(1u << PART_MADE);  // other warps do it all
            __syncwarp();
        }
        if (plan.has) {
            if (!plan.template after<NAMED>(launch, machine.tiles)) return;
        } else {
            if (alone) return;
            w.pc = behind_group_part(w.pc, held(launch, w.pc));
        }
    }
}

// A tight loop, or the part of a group by itself; false for any other op.
template <bool NAMED, class L>
OX_DEVICE bool tight_op(const L& launch, Warp& w, const RecordAt<L>& r, u32& next) {
    const bool loop = (r.head & 0xff0000ff) == (OP_LOOP | LOOP_TIGHT << 24);
    if (!loop && !is_group_part(r.op())) return false;
    if (loop) {
        next = static_cast<u32>(r.imm(4));
        const i32 k = w.value(r, 1);
        if (k >= w.value(r, 2)) return true;
        w.set(r.reg(0), static_cast<u32>(k));
    } else {
        next = behind_group_part(w.pc, r);
    }
    tight<NAMED>(launch, w, loop ? w.pc + 1 : w.pc, !loop);
    return true;
}

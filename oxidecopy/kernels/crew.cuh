// The interpreter of families wide and many. A hardware warp runs members of the warp table in turn, each as far as it gets without waiting:
// one each in family wide.
#pragma once
#include "extra.cuh"
#include "tokens.cuh"
#ifdef OX_STAMPS
#include "stamps.cuh"
#endif

constexpr u32 CREW = 32;  // members that a hardware warp may have: one lane each
constexpr u32 POLL = 1024;  // units of now() between looks whether other warps have given up
#ifdef OX_STAMPS
constexpr u32 REST_NS = 20;
#else
constexpr u32 REST_NS = 200;
#endif

// How far a member got.
enum : u32 { TURN_GOES_ON, TURN_WAITS, TURN_ENDS, TURN_MEETS };

// The members of one hardware warp: bit or lane s is member s.
template <bool MANY>
struct Crew {
    u64 low[MANY ? CREW : 1], high[MANY ? CREW : 1];  // their registers
    u32 pc;                                           // lane s: where it goes on
    u32 since;                                        // lane s: when it began to wait
    u32 phase;                                        // lane s: of the barrier of threads that it has come to
    u32 waits, came, skips, done;
    u32 looked;
    bool told;
#ifdef OX_STAMPS
    Stamper stamper;
#endif

    // Whether a wait of member `s` may go on; `why` is set when it must give up. `ready`: each lane's own question.
    template <class F>
    __device__ __forceinline__ bool passes(const Header& header, u32 s, u32 bar, u32 parity, Failure& why, F ready) {
        if (__all_sync(FULL_WARP, ready())) {
            waits &= ~(1u << s);
            return true;
        }
        const u32 time = __shfl_sync(FULL_WARP, now(), 0);
        if (!(waits >> s & 1)) {
            waits |= 1u << s;
            if (lane_number() == s) since = time;
        }
        const u32 waited = time - __shfl_sync(FULL_WARP, since, s);
        if (waited > POLL && time - looked > POLL) {
            looked = time;
            told = told || __any_sync(FULL_WARP, ptx::ld_relaxed_sys_u32(header.report));
        }
        if (waited > header.limit_us || told) {
            why = waited_for(waited > header.limit_us ? REPORT_TIMEOUT : REPORT_TOLD, bar, parity, 0);
            waits &= ~(1u << s);
            return true;
        }
        return false;
    }

    // BAR_SYNC of several members of one hardware warp: they are counted, 32 for each.
    __device__ __forceinline__ bool meets(const Header& header, u32 s, u32 number, u32 threads) {
        const u32 count = shared_base() + header.stage_slots + 8 * number, phases = count + 4;
        if (!(came >> s & 1)) {
            const u32 before = __shfl_sync(FULL_WARP, ptx::ld_acquire_shared_u32(phases), 0);
            __syncwarp();
            bool last = false;
            if (lane_number() == 0) {
                last = ptx::atom_add_shared_u32(count, 32) + 32 == threads;
                if (last) {
                    ptx::st_release_shared_u32(count, 0);
                    ptx::atom_add_shared_u32(phases, 1);
                }
            }
            if (lane_number() == s) phase = before;
            came |= 1u << s;
            __syncwarp();
        }
        const u32 mine = __shfl_sync(FULL_WARP, phase, s);
        if (!__all_sync(FULL_WARP, ptx::ld_acquire_shared_u32(phases) != mine)) return false;
        came &= ~(1u << s);
        __syncwarp();
        return true;
    }
};

// Waits, and what goes on in skip mode; TURN_GOES_ON with `known` false for all other ops.
template <bool MANY, class L>
OX_DEVICE u32 crew_flow(const L& launch, Crew<MANY>& crew, u32 s, Member& w, const RecordAt<L>& r, u32& next, Failure& why, bool& known) {
    known = true;
    switch (r.op()) {
        case OP_END: return TURN_ENDS;
        case OP_EVAL:
            wide_eval(launch, w, w.pc + 1, static_cast<u32>(r.imm(0)));
            next = w.pc + 1 + (static_cast<u32>(r.imm(0)) + 3) / 4;
            break;
        case OP_JUMP: next = static_cast<u32>(r.imm(0)); break;
        case OP_JUMP_UNLESS:
            if (w.value(r, 1) == 0) next = static_cast<u32>(r.imm(0));
            break;
        case OP_LOOP: {
            const i64 value = w.value(r, 1), stop = w.value(r, 2);
            w.set(r.reg(0), static_cast<u64>(value));
            if (w.value(r, 3) < 0 ? value <= stop : value >= stop) next = static_cast<u32>(r.imm(4));
            break;
        }
        case OP_NEXT: {
            const i64 step = w.value(r, 3), value = wrapping_add(w.get(r.reg(0)), step), stop = w.value(r, 2);
            w.set(r.reg(0), static_cast<u64>(value));
            if (step < 0 ? value > stop : value < stop) next = static_cast<u32>(r.imm(4));
            break;
        }
        case OP_WARP_SYNC: __syncwarp(); break;
        case OP_BAR_SYNC:
            if constexpr (MANY) {
                if (!crew.meets(launch.header(), s, static_cast<u32>(r.imm(0)), static_cast<u32>(r.imm(1)))) return TURN_WAITS;
            } else {
                __syncwarp();
                ptx::bar_sync(static_cast<u32>(r.imm(0)), static_cast<u32>(r.imm(1)));
            }
            break;
        case OP_CLUSTER_SYNC: return TURN_MEETS;
        case OP_LOAD_INDEX: why = wide_load_index(launch, w, r); break;
        case OP_STORE_GLOBAL:
            if (!w.skip) wide_store_global(launch, w, r);
            next = w.pc + 2;
            break;
        case OP_FILL:
            if (!w.skip) fill(launch, w, r);
            next = w.pc + 2;
            break;
        case OP_IOTA:
            if (!w.skip) iota(launch, w, r);
            next = w.pc + 2;
            break;
        case OP_MAP_TILES:
            if (!w.skip) map_tiles(launch, w, r);
            next = behind_map(w.pc, r);
            break;
        case OP_COPY_EXTRA:
            if (!w.skip) why = copy_extra(launch, w, r);
            next = w.pc + 2;
            break;
        case OP_MBARRIER_WAIT_PHASE:
        case OP_MBARRIER_WAIT_PARITY: {
            const i64 phase = w.value(r, 1);
            const u32 bar = w.address(r, 0), parity = static_cast<u32>(phase) & 1;
            if (w.skip || (r.op() == OP_MBARRIER_WAIT_PHASE && phase < 0)) break;
            if (!crew.passes(launch.header(), s, bar, parity, why, [&] { return ptx::mbarrier_test_wait_parity(bar, parity); })) return TURN_WAITS;
            break;
        }
        case OP_MBARRIER_WAIT_TOKEN: {
            if (w.skip) break;
            const u32 bar = w.address(r, 0);
            u64 state = 0;
            const bool made = token_state(w, r, state);
            const u32 parity = made ? static_cast<u32>(state >> 63) : NO_TOKEN;
            if (!crew.passes(launch.header(), s, bar, parity, why, [&] { return made && ptx::mbarrier_test_wait(bar, state); })) return TURN_WAITS;
            break;
        }
        default: known = false;
    }
    return TURN_GOES_ON;
}

// What is left out in skip mode.
template <class L>
OX_DEVICE Failure crew_work(const L& launch, Member& w, const RecordAt<L>& r) {
    switch (r.op()) {
        case OP_MBARRIER_ARRIVE:
        case OP_MBARRIER_ARRIVE_EXPECT_TX:
        case OP_MBARRIER_ARRIVE_DROP:
        case OP_MBARRIER_INIT:
        case OP_MBARRIER_INVAL:
        case OP_MBARRIER_EXPECT_TX:
        case OP_MBARRIER_COMPLETE_TX:
        case OP_MBARRIER_ARRIVE_REMOTE:
        case OP_MBARRIER_ARRIVE_EXPECT_TX_REMOTE: {
            const uint2 entry = w.entry(launch);
            const bool first_warp = (entry.y & 0xffff) == 0;
            if (r.flags()) arrive_for_token(w, r, entry.x >> 16, first_warp);
            else barrier_op(w, r, entry.x >> 16, first_warp);
            break;
        }
        case OP_MBARRIER_TEST_PARITY: w.set(r.reg(2), test_parity(w, r)); break;
        case OP_MBARRIER_TEST_TOKEN: w.set(r.reg(2), test_token(w, r)); break;
        case OP_TENSOR_G2S:
        case OP_TENSOR_G2S_MULTICAST:
        case OP_TENSOR_S2G:
        case OP_TENSOR_REDUCE: copy_op(launch, w, r); break;
        case OP_COMMIT_GROUP:
        case OP_WAIT_GROUP:
        case OP_WAIT_GROUP_READ: group_op(w, r); break;
        case OP_FENCE_PROXY_ASYNC: ptx::fence_proxy_async_shared_cta(); break;
        case OP_FENCE_MBARRIER_INIT: ptx::fence_mbarrier_init_release_cluster(); break;
        default: return failure(REPORT_OPCODE);
    }
    return no_failure();
}

// Runs member `s` until it must wait, meets the cluster or ends. True in `moved` when it got anywhere.
template <bool MANY, class L>
OX_DEVICE u32 take_turn(const L& launch, Crew<MANY>& crew, u32 s, Member& w, bool& moved) {
    const u32 last = launch.header().records - 1;
#pragma unroll 1
    for (;;) {
        Failure why = failure(w.pc > last ? REPORT_OPCODE : 0);
        u32 next = w.pc + 1, turn = TURN_ENDS;
        if (!why) {
            const RecordAt<L> r{launch, w.pc, launch.word(w.pc, 0)};
            bool known = false;
#ifdef OX_STAMPS
            crew.stamper.begin();
#endif
            turn = crew_flow(launch, crew, s, w, r, next, why, known);
            if (!known && !w.skip) why = crew_work(launch, w, r);
#ifdef OX_STAMPS
            if (turn != TURN_WAITS) crew.stamper.end_of(w, r);
#endif
        }
        if (why && !w.skip) give_up(launch.header(), w, why);
        if (turn == TURN_ENDS || turn == TURN_WAITS) return turn;
        w.pc = next;
        moved = true;
        if (turn == TURN_MEETS) return turn;
    }
}

template <bool MANY, class L>
OX_DEVICE void interpret_crew(const L& launch) {
    ptx::griddepcontrol_wait();
    const Header& header = launch.header();
    for (u32 i = threadIdx.x; i < header.words; i += 32 * header.warps) ptx::st_shared_u64(shared_base() + header.stage_slots + 8 * i, 0);
    __syncthreads();
    const u32 members = MANY ? (header.crew - warp_number() + header.warps - 1) / header.warps : 1;
    const u32 all = members == CREW ? ~0u : (1u << members) - 1;
    Crew<MANY> crew{};
#ifdef OX_STAMPS
    crew.stamper.open(header);
#endif
    u64 first = 0;
    if (lane_number() == REG_BLOCK_X) first = blockIdx.x;
    if (lane_number() == REG_BLOCK_Y) first = blockIdx.y;
    if (lane_number() == REG_BLOCK_Z) first = blockIdx.z;
    if (lane_number() == REG_RANK) first = ptx::cluster_ctarank();
#pragma unroll 1
    for (u32 s = 0; s < members; ++s) {
        const Member w{0, 0, 0, false, warp_number() + header.warps * s, s};
        const u32 entry = w.entry(launch).x & 0xffff;
        crew.low[s] = first;
        crew.high[s] = 0;
        if (lane_number() == s) crew.pc = entry;
    }
    if ((shared_base() & 1023) != 0) {
        Member w{0, 0, 0, false, warp_number(), 0};
        give_up(header, w, failure(REPORT_PLACE));
        crew.skips = ~0u;
    }
    u32 meeting = 0;
    while (crew.done != all) {
        bool moved = false;
#pragma unroll 1
        for (u32 s = 0; s < members; ++s) {
            if ((crew.done | meeting) >> s & 1) continue;
            Member w{crew.low[s], crew.high[s], __shfl_sync(FULL_WARP, crew.pc, s), (crew.skips >> s & 1) != 0, warp_number() + header.warps * s, s};
            const u32 turn = take_turn(launch, crew, s, w, moved);
            crew.low[s] = w.low;
            crew.high[s] = w.high;
            if (lane_number() == s) crew.pc = w.pc;
            if (w.skip) crew.skips |= 1u << s;
            if (turn == TURN_ENDS) crew.done |= 1u << s, moved = true;
            if (turn == TURN_MEETS) meeting |= 1u << s;
        }
        if (meeting && (crew.done | meeting) == all) {  // nobody of this warp has anything else to do
            __syncwarp();
            ptx::barrier_cluster_arrive_release();
            ptx::barrier_cluster_wait_acquire();
            meeting = 0;
        } else if (!moved) {
            ptx::nanosleep(REST_NS);
        }
    }
    if (crew.skips) ptx::nanosleep(LANDING_NS);
}

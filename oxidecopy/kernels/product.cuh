// PRODUCT: the whole program of a CTA that multiplies matrices, tile after tile. One warp loads what the groups multiply; where each tile lies was
// computed when the code was made, and all else that is known of them lies in the constant bank.
#pragma once
#include "contract.cuh"
#include "finish.cuh"

constexpr u32 CORNERS = 3;  // coordinates of a corner, and of a load, in the table; behind those of a load the shared offset of its tile
constexpr int GROUP_REGISTERS = 232, PRODUCER_REGISTERS = 40;  // 504 for three warps, as they begin with
constexpr u32 BAR_GROUP = 1;  // barrier of the first group's threads; that of the second one is the next

using ProductLaunch = Launch<Large, true>;

// The head, and what follows it.
struct ProductAt {
    const ProductLaunch& launch;

    __device__ __forceinline__ const u8* bytes() const { return launch.p.blob + launch.header().code_offset; }
    __device__ __forceinline__ const ProductHead& head() const { return *reinterpret_cast<const ProductHead*>(bytes()); }
    __device__ __forceinline__ const ProductLoad& load(u32 j) const {
        return *reinterpret_cast<const ProductLoad*>(bytes() + PRODUCT_LOAD_AT + sizeof(ProductLoad) * j);
    }
    __device__ __forceinline__ const FinishHead& finish() const { return *reinterpret_cast<const FinishHead*>(bytes() + PRODUCT_FINISH_AT); }

    // The table's entry of this CTA's tile in a turn.
    __device__ __forceinline__ u64 entry(u32 turn) const {
        return launch.header().code + 4ull * head().entry_words * (cta_number() * head().turns + turn);
    }

    __device__ __forceinline__ u32 full() const { return shared_base() + head().full; }
    __device__ __forceinline__ u32 empty() const { return shared_base() + head().empty; }
};

OX_DEVICE u32 word_at(u64 entry, u32 i) {
    return __ldg(reinterpret_cast<const u32*>(entry + 4 * i));
}

// All threads of group `me`.
OX_DEVICE void sync_group(u32 me) {
    __syncwarp();
    if (me == 0) ptx::barrier_sync<BAR_GROUP>(GROUP);
    else ptx::barrier_sync<BAR_GROUP + 1>(GROUP);
}

// ---- the producer: a lane for each load
// Where a tile's loads begin, of this lane's load.
struct Begin {
    u32 there;  // 0: there is no such tile
    u32 at[CORNERS];

    static __device__ __forceinline__ u32 place(const ProductAt& its) {
        return PRODUCT_PLACES + PRODUCT_PLACE_WORDS * min(lane_number(), its.head().loads - 1u);
    }

    __device__ __forceinline__ void ask(u64 entry, u32 place) {
        there = word_at(entry, 0);
#pragma unroll
        for (u32 d = 0; d < CORNERS; ++d) at[d] = word_at(entry, place + d);
    }
};

// `next`: the first tile.
OX_DEVICE Failure feed(const ProductAt& its, Begin next, u32 tile) {
    const ProductHead& head = its.head();
    const u32 lane = lane_number(), full = its.full(), empty = its.empty(), steps = head.steps, stages = head.stages, turns = head.turns;
    const ProductLoad& copy = its.load(min(lane, head.loads - 1u));
    const bool issues = lane < head.loads, plain = copy.multicast == 0;
    const u32 rank = copy.rank, stride = copy.stride, place = Begin::place(its);
    const u64 map = its.launch.map(copy.map);
    u32 stage = 0, round = 0;
    u64 entry = its.entry(0);
#pragma unroll 1
    for (u32 turn = 0; turn < turns && next.there != 0; ++turn) {
        ptx::Coords at{};
#pragma unroll
        for (u32 d = 0; d < CORNERS; ++d) at.c[d] = static_cast<i32>(next.at[d]);
        if (turn + 1 < turns) {  // on its way while this tile is loaded
            entry += 4 * head.entry_words;
            next.ask(entry, place);
        }
#pragma unroll 1
        for (u32 k = 0; k < steps; ++k) {
            const u32 bar = full + 8 * stage, to = tile + stride * stage;
            if (round != 0) {
                const u32 why = wait_parity(its.launch.header(), empty + 8 * stage, round & 1 ^ 1);
                if (why) return waited_for(why, empty + 8 * stage, round & 1 ^ 1, turn * steps + k);
            }
            if (lane == 0) ptx::mbarrier_arrive_expect_tx(bar, head.nbytes);
            if (issues) {
                if (plain && rank == 2) ptx::cp_async_bulk_tensor_2d_g2s(to, map, bar, at);  // the most common one first
                else if (plain) load(rank, to, map, bar, at);
                else load_multicast(rank, to, map, bar, at, copy.mask);
            }
            __syncwarp();
#pragma unroll
            for (u32 d = 0; d < CORNERS; ++d) at.c[d] += copy.growth[d];
            if (++stage == stages) stage = 0, ++round;
        }
    }
    return no_failure();
}

// ---- the groups
// What a group multiplies, as `Contraction` asks for it.
struct GroupAt {
    const ProductAt& its;
    u32 me, rows;
    u32 told_;

    __device__ __forceinline__ u32 full() const { return its.full(); }
    __device__ __forceinline__ u32 empty() const { return its.empty(); }
    __device__ __forceinline__ u32 a() const { return shared_base() + its.head().a + me * rows * 128; }
    __device__ __forceinline__ u32 a_stride() const { return its.head().a_stride; }
    __device__ __forceinline__ u32 b() const { return shared_base() + its.head().b; }
    __device__ __forceinline__ u32 b_stride() const { return its.head().b_stride; }
    __device__ __forceinline__ u32 stages() const { return its.head().stages; }
    __device__ __forceinline__ u32 tells() const { return told_; }
};

// Pieces of the sums one after the other, columns outermost: each is staged when what its tile held has been read, and stored by one thread.
template <u32 M, u32 N, bool WIDE>
OX_DEVICE void put_product(const ProductAt& its, u32 me, const u32 (&corner)[CORNERS], const f32 (&sums)[SUMS], u32& slot, bool fails) {
    constexpr u32 HALVES = M / 64, COLUMNS = WIDE ? 32 : 64, PIECES = HALVES * N / COLUMNS;
    const ProductHead& head = its.head();
    const u32 rank = head.rank, form = head.form, out = shared_base() + (me == 0 ? head.out0 : head.out1), out_stages = head.out_stages;
    const bool computes = its.finish().count != 0 || its.finish().fn != 0;
    Finish<ProductLaunch> finish(its.launch, its.finish(), rank, corner);
    if (computes) finish.template begin<WIDE>(N);
#pragma unroll 1
    for (u32 u = 0; u < PIECES; ++u) {
        const u32 tile = out + PIECE * slot;
        if (issues()) wait_group<true>(out_stages - 1);
        sync_group(me);
        if (computes) finish.template piece<M, N, WIDE>(sums, u, form, tile);
        else if constexpr (WIDE) stage_plain<M, N, FORM_BITS32>(sums, tile, u);
        else if (form == FORM_BF16) stage_plain<M, N, FORM_BF16>(sums, tile, u);
        else stage_plain<M, N, FORM_F16>(sums, tile, u);
        ptx::fence_proxy_async_shared_cta();
        sync_group(me);
        if (issues() && !fails) {
            ptx::Coords at{};
            at.c[0] = static_cast<i32>(corner[0] + u / HALVES * COLUMNS), at.c[1] = static_cast<i32>(corner[1] + 64 * (u % HALVES));
            at.c[2] = static_cast<i32>(corner[2]);
            const u64 map = its.launch.map(head.map);
            if (head.adds) reduce(0, rank, map, tile, at);
            else if (rank == 2) store(2, map, tile, at);
            else store(rank, map, tile, at);
            ptx::cp_async_bulk_commit_group();
        }
        if (++slot == out_stages) slot = 0;
    }
    __syncwarp();
}

template <u32 M, u32 N>
OX_DEVICE Failure multiply(const ProductAt& its, u32 me) {
    const ProductHead& head = its.head();
    const u32 turns = head.turns;
    Contraction<GroupAt> work{GroupAt{its, me, M, told(head.peers, head.pitch, head.axes, head.size)}, its.launch.header(), 0, 0, head.steps, 0};
    u32 slot = 0;
    bool known = true;
#pragma unroll 1
    for (u32 turn = 0; turn < turns; ++turn) {
        const u64 entry = its.entry(turn);
        const u32 there = word_at(entry, 0);
        u32 corner[CORNERS];
#pragma unroll
        for (u32 d = 0; d < CORNERS; ++d) corner[d] = word_at(entry, PRODUCT_CORNER + CORNERS * me + d);
        if (there == 0) break;
        f32 sums[SUMS];
        switch (head.type) {
            case CONTRACT_BF16: work.template run<Bf16<M, N>>(sums); break;
            case CONTRACT_BF16_A: work.template run<Bf16A<M, N>>(sums); break;
            case CONTRACT_BF16_B: work.template run<Bf16B<M, N>>(sums); break;
            case CONTRACT_BF16_AB: work.template run<Bf16AB<M, N>>(sums); break;
            case CONTRACT_F16: work.template run<F16<M, N>>(sums); break;
            case CONTRACT_F16_A: work.template run<F16A<M, N>>(sums); break;
            case CONTRACT_F16_B: work.template run<F16B<M, N>>(sums); break;
            case CONTRACT_F16_AB: work.template run<F16AB<M, N>>(sums); break;
            case CONTRACT_TF32: work.template run<Tf32<M, N>>(sums); break;
            case CONTRACT_E4M3: work.template run_promoted<E4m3<M, N>>(sums); break;
            case CONTRACT_E4M3_E5M2: work.template run_promoted<E4m3E5m2<M, N>>(sums); break;
            case CONTRACT_E5M2_E4M3: work.template run_promoted<E5m2E4m3<M, N>>(sums); break;
            case CONTRACT_E5M2: work.template run_promoted<E5m2<M, N>>(sums); break;
            default: known = false; break;
        }
        if (!known) break;
        const bool fails = work.why != 0;
        if (head.form == FORM_BITS32) put_product<M, N, true>(its, me, corner, sums, slot, fails);
        else put_product<M, N, false>(its, me, corner, sums, slot, fails);
    }
    if (issues()) wait_group<true>(0);
    __syncwarp();
    return known ? work.failure() : failure(REPORT_OPCODE);
}

// ---- all of it
OX_DEVICE void sync_ctas(bool cluster) {
    if (cluster) {
        ptx::barrier_cluster_arrive_release();
        ptx::barrier_cluster_wait_acquire();
    } else {
        __syncthreads();
    }
}

// The first warps are the groups', four each; the one behind them produces, and the rest of its warpgroup gives its registers to the groups.
template <u32 M, u32 N>
OX_DEVICE void product(const Large& parameter) {
    const ProductLaunch launch(parameter);
    const ProductAt its{launch};
    const ProductHead& head = its.head();
    const u32 producer = 4 * head.groups, warp = warp_number();
    const bool cluster = head.size > 1;
    Begin first{};
    u32 tile = 0;
    if (warp == producer) {  // the table was there before any launch that this one may have to wait for
        first.ask(its.entry(0), Begin::place(its));
        tile = shared_base() + word_at(its.entry(0), Begin::place(its) + CORNERS);
        if (lane_number() < head.loads) ptx::prefetch_tensormap(launch.map(its.load(lane_number()).map));
        if (lane_number() < head.stages) {
            ptx::mbarrier_init(its.full() + 8 * lane_number(), head.full_count);
            ptx::mbarrier_init(its.empty() + 8 * lane_number(), head.empty_count);
            ptx::fence_mbarrier_init_release_cluster();
        }
        __syncwarp();
    }
    ptx::griddepcontrol_wait();
    sync_ctas(cluster);
    Warp w{};
    Failure why = failure((shared_base() & 1023) != 0 ? REPORT_PLACE : 0);
    if (warp >= producer) {
        ptx::setmaxnreg_dec<PRODUCER_REGISTERS>();
        if (warp == producer && !why) why = feed(its, first, tile);
    } else {
        ptx::setmaxnreg_inc<GROUP_REGISTERS>();
        w.pc = 1 + warp / 4;
        if (!why) why = multiply<M, N>(its, warp / 4);
    }
    if (why) {
        give_up(launch.header(), w, why);
        ptx::nanosleep(LANDING_NS);
    }
    if (cluster) sync_ctas(true);  // others may still tell this CTA that a stage is free
}

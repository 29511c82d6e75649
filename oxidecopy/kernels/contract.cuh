// CONTRACT: what a warpgroup makes of the stages of a ring with the tensor cores. All of K is one record, and so is what becomes of the sums:
// they are in registers, and never live across records.
#pragma once
#include "barriers.cuh"
#include "copies.cuh"
#include "fragment.cuh"
#include "ptx_mma.cuh"

constexpr u32 PIECE = 64 * 128;  // bytes of a staging tile
constexpr u32 TELLS_OWN = 1, TELLS_PEER = 2;

OX_DEVICE u32 columns_of(u32 form) {
    return form == FORM_BITS32 ? 32 : 64;
}

// All threads of a group; most programs have no more than two groups.
OX_DEVICE void group_sync(u32 number) {
    __syncwarp();
    if (number == 0) ptx::barrier_sync<0>(GROUP);
    else if (number == 1) ptx::barrier_sync<1>(GROUP);
    else bar_sync<true>(number, GROUP);
}

// True where `value` holds for any of them. The number is a constant, as in `barrier_of`.
template <u32 FIRST = 0, u32 COUNT = 16>
OX_DEVICE bool any_of_group(u32 number, bool value) {
    if constexpr (COUNT == 1) return ptx::barrier_red_or<FIRST>(GROUP, value);
    else if (FIRST == 0 && number == 0) return ptx::barrier_red_or<0>(GROUP, value);
    else if (number < FIRST + COUNT / 2) return any_of_group<FIRST, COUNT / 2>(number, value);
    else return any_of_group<FIRST + COUNT / 2, COUNT / 2>(number, value);
}

// The thread of a group that issues its stores.
OX_DEVICE bool issues() {
    return (threadIdx.x & GROUP - 1) == 0;
}

// Whom this thread tells that a stage is free: nobody, its own CTA, or the one with the thread's number.
OX_DEVICE u32 told(u32 peers, u32 pitch, u32 axes, u32 size) {
    const u32 thread = threadIdx.x & GROUP - 1;
    if (peers == 0) return thread == 0 ? TELLS_OWN : 0;
    if (axes == 0) return thread < peers ? TELLS_PEER : 0;
    const u32 rank = ptx::cluster_ctarank();
    const bool row = axes & 1 && thread / pitch == rank / pitch;
    const bool column = axes & 2 && thread < size && thread % pitch == rank % pitch;
    return row || column ? TELLS_PEER : 0;
}

// The two records behind a CONTRACT, read where they are used.
template <class L>
struct ContractAt {
    const L& launch;
    u32 at;

    __device__ __forceinline__ u32 full() const { return shared_base() + launch.word(at, 0); }
    __device__ __forceinline__ u32 empty() const { return shared_base() + launch.word(at, 1); }
    __device__ __forceinline__ u32 a() const { return shared_base() + launch.word(at, 2); }
    __device__ __forceinline__ u32 a_stride() const { return launch.word(at, 3); }
    __device__ __forceinline__ u32 b() const { return shared_base() + launch.word(at, 4); }
    __device__ __forceinline__ u32 b_stride() const { return launch.word(at, 5); }
    __device__ __forceinline__ u32 stages() const { return launch.word(at, 6) & 0xff; }
    __device__ __forceinline__ u32 peers() const { return launch.word(at, 6) >> 8 & 0xff; }
    __device__ __forceinline__ u32 shape() const { return launch.word(at, 6) >> 16 & 0xff; }
    __device__ __forceinline__ u32 type() const { return launch.word(at, 6) >> 24; }
    __device__ __forceinline__ u32 number() const { return launch.word(at, 7) & 0xff; }

    __device__ __forceinline__ u32 tells() const {
        const u32 word = launch.word(at, 7);
        return told(peers(), word >> 8 & 0xff, word >> 16 & 0xff, word >> 24);
    }

    __device__ __forceinline__ u32 out() const { return shared_base() + launch.word(at + 1, 0); }
    __device__ __forceinline__ u32 out_stages() const { return launch.word(at + 1, 1) & 0xff; }
    __device__ __forceinline__ u32 form() const { return launch.word(at + 1, 1) >> 8 & 0xff; }
    __device__ __forceinline__ bool adds() const { return (launch.word(at + 1, 1) >> 16 & 0xff) != 0; }
    __device__ __forceinline__ u32 instructions() const { return launch.word(at + 1, 2) & 0xffff; }
    __device__ __forceinline__ u32 behind() const { return at + 2 + (instructions() + 3) / 4; }
    __device__ __forceinline__ u32 source(u32 i) const { return ARRAY_WORDS * (launch.word(at + 1, 3) >> 8 * i & 0xff); }  // argument word
};

// The low word of the descriptor of a tile in shared memory, rows of 128 bytes, swizzled. K innermost: 8 rows are 1,024 bytes, and there is
// nothing beside them. M or N innermost: 8 rows of K are 1,024 bytes, and the next 64 columns lie one block of 64 rows further.
OX_DEVICE u32 tile_descriptor(u32 address, bool transposed) {
    return (address >> 4 & 0x3fff) | (transposed ? PIECE >> 4 : 1) << 16;
}

// What reads or writes sums stays behind this: no other instruction says that products are there.
template <u32 USED, u32 SIZE>
OX_DEVICE void fence_sums(f32 (&sums)[SIZE]) {
#pragma unroll
    for (u32 i = 0; i < USED; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

// ---- the products of a stage: four of 32 bytes of K each. Within a swizzled row the next ones are 32 bytes on, with K outermost 16 rows.
// Without `add` the first ones are the sums.
#define OX_PRODUCT(NAME, FN, TA, TB)                                                                             \
    template <u32 M, u32 N>                                                                                      \
    struct NAME {                                                                                                \
        static constexpr u32 USED = M * N / GROUP, ROWS = M, COLUMNS = N;                                        \
        static constexpr bool TRANSPOSED_A = TA, TRANSPOSED_B = TB;                                              \
        using Part = NAME<64, (N > 128 ? N / 2 : N)>;                                                            \
        template <bool ADD, u32 SIZE>                                                                            \
        static __device__ __forceinline__ void product(f32 (&sums)[SIZE], u32 a, u32 b) {                        \
            if constexpr (N == 64) ptx::FN##_n64<0, ADD>(sums, a, b);                                            \
            if constexpr (N == 96) ptx::FN##_n96<0, ADD>(sums, a, b);                                            \
            if constexpr (N == 128) ptx::FN##_n128<0, ADD>(sums, a, b);                                          \
            if constexpr (N == 192) ptx::FN##_n192<0, ADD>(sums, a, b);                                          \
            if constexpr (N == 256) ptx::FN##_n256<0, ADD>(sums, a, b);                                          \
            if constexpr (M == 128) ptx::FN##_n128<64, ADD>(sums, a + (PIECE >> 4), b);                          \
        }                                                                                                        \
        template <bool ADD, u32 SIZE>                                                                            \
        static __device__ __forceinline__ void products(f32 (&sums)[SIZE], u32 a, u32 b) {                       \
            constexpr u32 A = (TA ? 16 * 128 : 32) >> 4, B = (TB ? 16 * 128 : 32) >> 4;                          \
            product<ADD>(sums, a, b);                                                                            \
            _Pragma("unroll") for (u32 i = 1; i < 4; ++i) product<true>(sums, a + i * A, b + i * B);             \
        }                                                                                                        \
    };
OX_PRODUCT(Bf16, wgmma_bf16, false, false)
OX_PRODUCT(Bf16A, wgmma_bf16_ta, true, false)
OX_PRODUCT(Bf16B, wgmma_bf16_tb, false, true)
OX_PRODUCT(Bf16AB, wgmma_bf16_tab, true, true)
OX_PRODUCT(F16, wgmma_f16, false, false)
OX_PRODUCT(F16A, wgmma_f16_ta, true, false)
OX_PRODUCT(F16B, wgmma_f16_tb, false, true)
OX_PRODUCT(F16AB, wgmma_f16_tab, true, true)
OX_PRODUCT(E4m3, wgmma_e4m3_e4m3, false, false)
OX_PRODUCT(E4m3E5m2, wgmma_e4m3_e5m2, false, false)
OX_PRODUCT(E5m2E4m3, wgmma_e5m2_e4m3, false, false)
OX_PRODUCT(E5m2, wgmma_e5m2_e5m2, false, false)
OX_PRODUCT(Tf32, wgmma_tf32, false, false)
#undef OX_PRODUCT

// Where the loop over K is. I: what is contracted, as `ContractAt` says it.
template <class I>
struct Contraction {
    const I its;
    const Header& header;
    u32 stage, parity;
    u32 steps;
    u32 why;  // and, of the wait that failed, parity in bit 8, stage in the bits above

    // A warp that gives up goes on without waiting: the others of its group cannot do without it.
    __device__ __forceinline__ void wait(u32 full) {
        if (why) return;
        why = wait_parity(header, full + 8 * stage, parity);
        if (why) why |= parity << 8 | stage << 9;
    }

    __device__ __forceinline__ Failure failure() const { return waited_for(why & 0xff, its.full() + 8 * (why >> 9), why >> 8 & 1, 0); }

    static __device__ __forceinline__ void release(u32 bar, u32 tells) {
        if (tells == TELLS_OWN) ptx::mbarrier_arrive(bar, 1);
        else if (tells == TELLS_PEER) ptx::mbarrier_arrive_peer(ptx::mapa(bar, threadIdx.x & GROUP - 1));
    }

    __device__ __forceinline__ void next(u32 stages) {
        if (++stage == stages) stage = 0, parity ^= 1;
    }

    // P: the products of a stage, which is given back when those of the next one have been issued and its own are done.
    template <class P>
    __device__ __forceinline__ void run(f32 (&sums)[SUMS]) {
        const u32 full = its.full(), empty = its.empty(), stages = its.stages(), tells = its.tells();
        const u32 a_stride = its.a_stride() >> 4, b_stride = its.b_stride() >> 4;
        const u32 a = tile_descriptor(its.a(), P::TRANSPOSED_A), b = tile_descriptor(its.b(), P::TRANSPOSED_B);
        u32 before = empty;
#pragma unroll
        for (u32 i = 0; i < P::USED; ++i) sums[i] = 0.0f;
#pragma unroll 1
        for (u32 k = 0; k < steps; ++k) {
            wait(full);
            ptx::wgmma_fence();
            P::template products<true>(sums, a + stage * a_stride, b + stage * b_stride);
            ptx::wgmma_commit_group();
            ptx::wgmma_wait_group<1>();
            if (k > 0) release(before, tells);
            before = empty + 8 * stage;
            next(stages);
        }
        ptx::wgmma_wait_group<0>();
        fence_sums<P::USED>(sums);
        release(before, tells);
    }

    // Tensor cores keep few digits while they add products of 8 bits (14 of them, measured by others): each stage is summed by itself, and
    // added to the sums in full; half of the sums at a time where there are many, as that leaves registers for them.
    // Groups that multiplied in turn, by barriers, were slower than two that do what they can (docs/performance.md).
    template <class P>
    __device__ __forceinline__ void run_promoted(f32 (&sums)[SUMS]) {
        using Part = typename P::Part;
        constexpr u32 PARTS = P::USED / Part::USED;
        constexpr u32 A = P::ROWS > 64 ? PIECE >> 4 : 0, B = P::COLUMNS > Part::COLUMNS ? Part::COLUMNS * 128 >> 4 : 0;
        const u32 full = its.full(), empty = its.empty(), stages = its.stages(), tells = its.tells();
        const u32 a_stride = its.a_stride() >> 4, b_stride = its.b_stride() >> 4;
        const u32 a = tile_descriptor(its.a(), false), b = tile_descriptor(its.b(), false);
        f32 part[Part::USED];
#pragma unroll
        for (u32 i = 0; i < P::USED; ++i) sums[i] = 0.0f;
#pragma unroll
        for (u32 i = 0; i < Part::USED; ++i) part[i] = 0.0f;
#pragma unroll 1
        for (u32 k = 0; k < steps; ++k) {
            wait(full);
#pragma unroll
            for (u32 p = 0; p < PARTS; ++p) {
                ptx::wgmma_fence();
                Part::template products<false>(part, a + stage * a_stride + p * A, b + stage * b_stride + p * B);
                ptx::wgmma_commit_group();
                ptx::wgmma_wait_group<0>();
                fence_sums<Part::USED>(part);
                if (p == PARTS - 1) release(empty + 8 * stage, tells);
#pragma unroll
                for (u32 i = 0; i < Part::USED; ++i) sums[p * Part::USED + i] += part[i];
                fence_sums<Part::USED>(part);
            }
            next(stages);
        }
    }
};

// ---- what becomes of the sums
// Piece U of them, columns outermost, as it is.
template <u32 M, u32 N, u32 FORM, u32 U>
OX_DEVICE void stage_plain(const f32 (&sums)[SUMS], u32 tile) {
    constexpr u32 EIGHTS = FORM == FORM_BITS32 ? 2 : 4, HALVES = M / 64;
    if constexpr (U < HALVES * N / (16 * EIGHTS)) {
        constexpr u32 FIRST = U % HALVES * N / 2 + U / HALVES * 8 * EIGHTS;
#pragma unroll
        for (u32 i = 0; i < EIGHTS; ++i) {
            Eight v;
#pragma unroll
            for (u32 k = 0; k < 8; ++k) v[k] = __float_as_uint(sums[FIRST + 8 * i + k]);
            stage<FORM>(v, tile, i);
        }
    }
}

template <u32 M, u32 N, u32 FORM>
OX_DEVICE void stage_plain(const f32 (&sums)[SUMS], u32 tile, u32 u) {
    switch (u) {
        case 0: stage_plain<M, N, FORM, 0>(sums, tile); break;
        case 1: stage_plain<M, N, FORM, 1>(sums, tile); break;
        case 2: stage_plain<M, N, FORM, 2>(sums, tile); break;
        case 3: stage_plain<M, N, FORM, 3>(sums, tile); break;
        case 4: stage_plain<M, N, FORM, 4>(sums, tile); break;
        case 5: stage_plain<M, N, FORM, 5>(sums, tile); break;
        case 6: stage_plain<M, N, FORM, 6>(sums, tile); break;
        default: stage_plain<M, N, FORM, 7>(sums, tile); break;
    }
}

// Stages the sums piece by piece, columns outermost, and stores each: 64 rows of 128 bytes. Of all that is known of them little is kept in
// registers, as the sums leave few: it is read again where it is used.
template <u32 M, u32 N, class L, class R>
OX_DEVICE void put_sums(const L& launch, const Warp& w, const R& r, const ContractAt<L>& its, const f32 (&sums)[SUMS], bool fails) {
    constexpr u32 HALVES = M / 64;
    const u32 pieces = M * N / (64 * columns_of(its.form())), together = min(its.out_stages(), pieces);  // staged between two syncs
    u32 slot = static_cast<u32>(w.value(r, 2)) % its.out_stages();
    volatile u32 more[2 * EIGHT];
#pragma unroll 1
    for (u32 begin = 0; begin < pieces; begin += together) {
        const u32 end = min(begin + together, pieces);
        if (issues()) wait_group<true>(its.out_stages() - together);
        group_sync(its.number());
        u32 to = slot;
#pragma unroll 1
        for (u32 u = begin; u < end; ++u) {
            const u32 tile = its.out() + PIECE * to;
            if (its.instructions() != 0) {
#pragma unroll 1
                for (u32 part = 0; part < columns_of(its.form()) / 16; ++part) {
                    const u32 column = u / HALVES * columns_of(its.form()) + 16 * part;
                    Fragment<M * N / GROUP, L, R, ContractAt<L>> fragment{launch, w, r, its, 64 * (u % HALVES), column, more};
                    fragment.run(its.at + 2, sums, u % HALVES * (N / 16) + column / 16);
                    if (its.form() == FORM_BITS32) stage<FORM_BITS32>(fragment.a, tile, part);
                    else if (its.form() == FORM_BF16) stage<FORM_BF16>(fragment.a, tile, part);
                    else stage<FORM_F16>(fragment.a, tile, part);
                }
            } else if (its.form() == FORM_BF16) {
                stage_plain<M, N, FORM_BF16>(sums, tile, u);
            } else if (its.form() == FORM_F16) {
                stage_plain<M, N, FORM_F16>(sums, tile, u);
            } else {
                stage_plain<M, N, FORM_BITS32>(sums, tile, u);
            }
            if (++to == its.out_stages()) to = 0;
        }
        ptx::fence_proxy_async_shared_cta();
        group_sync(its.number());
        ptx::Coords at;
#pragma unroll
        for (u32 d = 0; d < 5; ++d) at.c[d] = coordinate(w, r, d);
        const u64 map = launch.map(map_slot(w, r));
        if (issues() && !fails) {
            const i32 top = at.c[1], left = at.c[0];
#pragma unroll 1
            for (u32 u = begin; u < end; ++u) {
                at.c[0] = left + static_cast<i32>(u / HALVES * columns_of(its.form()));
                at.c[1] = top + static_cast<i32>(64 * (u % HALVES));
                if (its.adds()) reduce(0, r.aux(), map, its.out() + PIECE * slot, at);
                else if (r.aux() == 2) store(2, map, its.out() + PIECE * slot, at);  // the most common one first
                else store(r.aux(), map, its.out() + PIECE * slot, at);
                ptx::cp_async_bulk_commit_group();
                if (++slot == its.out_stages()) slot = 0;
            }
        }
        slot = to;
    }
    __syncwarp();
}

template <u32 M, u32 N, class L, class R>
OX_DEVICE Failure contract_of(const L& launch, const Warp& w, const R& r, const ContractAt<L>& its) {
    const u32 first = static_cast<u32>(w.value(r, 0)), stages = its.stages();
    Contraction<ContractAt<L>> work{its, launch.header(), first % stages, first / stages & 1, static_cast<u32>(w.value(r, 1)), 0};
    f32 sums[SUMS];
    switch (its.type()) {
        case CONTRACT_BF16: work.template run<Bf16<M, N>>(sums); break;
        case CONTRACT_BF16_A: work.template run<Bf16A<M, N>>(sums); break;
        case CONTRACT_BF16_B: work.template run<Bf16B<M, N>>(sums); break;
        case CONTRACT_BF16_AB: work.template run<Bf16AB<M, N>>(sums); break;
        case CONTRACT_F16: work.template run<F16<M, N>>(sums); break;
        case CONTRACT_F16_A: work.template run<F16A<M, N>>(sums); break;
        case CONTRACT_F16_B: work.template run<F16B<M, N>>(sums); break;
        case CONTRACT_F16_AB: work.template run<F16AB<M, N>>(sums); break;
        case CONTRACT_TF32: work.template run<Tf32<M, N>>(sums); break;
        default:
            if (its.type() == CONTRACT_E4M3) work.template run_promoted<E4m3<M, N>>(sums);
            else if (its.type() == CONTRACT_E4M3_E5M2) work.template run_promoted<E4m3E5m2<M, N>>(sums);
            else if (its.type() == CONTRACT_E5M2_E4M3) work.template run_promoted<E5m2E4m3<M, N>>(sums);
            else if (its.type() == CONTRACT_E5M2) work.template run_promoted<E5m2<M, N>>(sums);
            else return failure(REPORT_OPCODE);
    }
    put_sums<M, N>(launch, w, r, its, sums, work.why != 0);
    return work.failure();
}

template <class L, class R>
OX_DEVICE Failure contract(const L& launch, const Warp& w, const R& r) {
    const ContractAt<L> its{launch, w.pc + 1};
    // One warp of the group that does nothing any more would hold up the others for ever: then none does anything.
    if (any_of_group(its.number(), w.skip)) return w.skip ? no_failure() : waited_for(REPORT_TOLD, its.full(), 0, 0);
    switch (its.shape()) {
        case SHAPE_M64N64: return contract_of<64, 64>(launch, w, r, its);
        case SHAPE_M64N128: return contract_of<64, 128>(launch, w, r, its);
        case SHAPE_M64N256: return contract_of<64, 256>(launch, w, r, its);
        case SHAPE_M128N128: return contract_of<128, 128>(launch, w, r, its);
        default: return failure(REPORT_OPCODE);
    }
}

// Its stores are one thread's bulk groups: nobody leaves, and no tile is written again, while they may still read.
template <class R>
OX_DEVICE void drain_contract(const R& r) {
    const u32 number = static_cast<u32>(r.imm(0));
    if (issues()) wait_group<true>(0);
    group_sync(number);
}

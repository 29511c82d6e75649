// APPLY: the whole program of a CTA that maps tiles. One warp loads the tiles that a counter gives this CTA, a group makes a tile of each set, one
// more warp stores it. All that is known before the launch lies in the constant bank, and each role is straight code: what a launch takes beside its
// bytes is mostly code and records that nobody has read before.
#pragma once
#include "compute.cuh"
#include "rings.cuh"

constexpr u32 APPLY_PC = APPLY_COMPUTE / RECORD_BYTES;
constexpr u32 COORDINATE_LANES = 8;  // lane 8 * j + d has coordinate d of load j

// The code, as it lies in the constant bank; for a Machine, the launch.
struct ApplyAt {
    const Medium& p;

    __device__ __forceinline__ const Header& header() const { return p.header; }
    __device__ __forceinline__ const ApplyHead& head() const { return *reinterpret_cast<const ApplyHead*>(p.blob); }
    __device__ __forceinline__ const Copy& copy(u32 j) const { return *reinterpret_cast<const Copy*>(p.blob + RECORD_BYTES * (1 + j)); }
    __device__ __forceinline__ const Copy& store() const { return copy(APPLY_LOADS); }
    __device__ __forceinline__ const Coordinate& coordinate(u32 i) const {
        return *reinterpret_cast<const Coordinate*>(p.blob + head().coordinates + COORDINATE_BYTES * i);
    }
    __device__ __forceinline__ u64 map(const Copy& copy) const { return reinterpret_cast<u64>(&p.map[copy.map]); }

    __device__ __forceinline__ u32 full(u32 stage) const { return shared_base() + head().full + 8 * stage; }
    __device__ __forceinline__ u32 empty(u32 stage) const { return shared_base() + head().empty + 8 * stage; }
    __device__ __forceinline__ u32 slot(u32 stage) const { return slot_of(header(), stage); }

    __device__ __forceinline__ u32 word(u32 pc, u32 k) const { return *reinterpret_cast<const u32*>(p.blob + RECORD_BYTES * pc + 4 * k); }
    __device__ __forceinline__ uint4 quad(u32 pc, u32 k) const { return *reinterpret_cast<const uint4*>(p.blob + RECORD_BYTES * pc + 16 * k); }
    __device__ __forceinline__ uint2 instr(u32 pc, u32 i) const { return *reinterpret_cast<const uint2*>(p.blob + RECORD_BYTES * pc + 8 * i); }
    __device__ __forceinline__ u64 argument(u32 word) const { return *reinterpret_cast<const u64*>(p.blob + header().args_offset + 8 * word); }
};

// A warp of a group of so many threads, for a Walk.
struct Member {
    u32 threads;

    template <class L>
    __device__ __forceinline__ uint2 entry(const L&) const {
        return make_uint2(0, 32 * warp_number() | threads << 16);
    }
};

// A coordinate of a copy as a function of the tile, in the lane that computes it. Lanes that have none compute another one.
struct OfTile {
    u32 step, offset, magic, modulus_magic, shifts, modulus, scale, base;

    __device__ __forceinline__ OfTile(const ApplyAt& code, const Copy& copy) {
        const Coordinate& c = code.coordinate(copy.eval_begin + min(lane_number() % COORDINATE_LANES, copy.rank - 1u));
        step = c.step_x, offset = c.offset, magic = c.magic, modulus_magic = c.modulus_magic;
        shifts = c.shift | c.modulus_shift << 8, modulus = c.modulus, scale = c.scale, base = c.base;
    }

    __device__ __forceinline__ i32 at(u32 tile) const {
        return placed(offset + step * tile, magic, shifts & 0xff, modulus_magic, shifts >> 8, modulus, scale, base);
    }
};

OX_DEVICE ptx::Coords gathered(i32 mine, u32 first) {
    ptx::Coords at;
#pragma unroll
    for (u32 d = 0; d < 5; ++d) at.c[d] = __shfl_sync(FULL_WARP, mine, first + d);
    return at;
}

// A stage, and the parity of its phases' round.
struct Turn {
    u32 stage, parity;

    __device__ __forceinline__ void step(u32 stages) {
        if (++stage == stages) stage = 0, parity ^= 1;
    }
};

// ---- the producer. A CTA's first tiles are those of its number, one for each stage, so that nothing is waited for; the counter gives all others.
struct Feeder {
    const ApplyAt& code;
    const Copy& copy;  // this lane's load
    OfTile where;
    Turn turn;
    u32 given;

    static __device__ __forceinline__ const Copy& load_of(const ApplyAt& code, u32 j) { return code.copy(min(j, code.head().loads - 1u)); }

    __device__ __forceinline__ explicit Feeder(const ApplyAt& its)
        : code(its), copy(load_of(its, lane_number())), where(its, load_of(its, lane_number() / COORDINATE_LANES)), turn{0, 0}, given(0) {}

    __device__ __forceinline__ void issue(u32 tile) {
        const u32 bar = code.full(turn.stage), to = shared_base() + copy.tile + copy.stride * turn.stage;
        const ptx::Coords at = gathered(where.at(tile), COORDINATE_LANES * min(lane_number(), APPLY_LOADS - 1u));
        if (lane_number() == 0) {
            ptx::atom_exch_shared_u32(code.slot(turn.stage), tile);  // the barrier orders it; an atomic, as racecheck does not know that
            ptx::mbarrier_arrive_expect_tx(bar, code.head().nbytes);
        }
        __syncwarp();
        if (lane_number() < code.head().loads) {
            if (copy.rank == 2) ptx::cp_async_bulk_tensor_2d_g2s(to, code.map(copy), bar, at);  // the most common one first
            else load(copy.rank, to, code.map(copy), bar, at);
        }
        __syncwarp();
        turn.step(code.head().stages);
        ++given;
    }

    // Waits until the stage is free.
    __device__ __forceinline__ Failure wait_empty() const {
        if (given < code.head().stages) return no_failure();
        const u32 bar = code.empty(turn.stage), parity = turn.parity ^ 1;
        return waited_for(wait_parity(code.header(), bar, parity), bar, parity, given);
    }

    __device__ __forceinline__ Failure run() {
        const u32 tiles = code.head().tiles, ctas = cta_count(), known = ctas * code.head().stages;
        u32 tile = cta_number(), taken = 0;  // `taken` is on its way a turn ahead
        Failure why = no_failure();
#pragma unroll 1
        while (tile < tiles) {
            why = wait_empty();
            if (why) break;
            issue(tile);
            tile = given < code.head().stages ? tile + ctas : known + __shfl_sync(FULL_WARP, taken, 0);
            const bool asks = tile < tiles && given + 1 >= code.head().stages;  // none is under way when there are no more
            if (asks && lane_number() == 0) taken = ptx::atom_add_u32(code.header().counter, 1);
        }
        if (why) __threadfence();  // one may be: the last CTA makes the counter ready for the next launch
        counter_done(code.header(), Warp{}, given);
        if (!why) why = wait_empty();
        if (!why && lane_number() == 0) {  // no tile, with an extra stage
            ptx::atom_exch_shared_u32(code.slot(turn.stage), NO_TILE);
            ptx::mbarrier_arrive(code.full(turn.stage), 1);
        }
        __syncwarp();
        return why;
    }
};

// ---- who waits for tiles
struct Taker {
    const ApplyAt& code;
    u32 pc;
    Turn turn;
    u32 given;  // before this one
    u32 tile;
    bool skip;

    __device__ __forceinline__ Taker(const ApplyAt& its, u32 pc_) : code(its), pc(pc_), turn{0, 0}, given(0), tile(0), skip(false) {}

    // The next tile; false where there is none. In skip mode all leave after the same one, as the producer says.
    __device__ __forceinline__ bool next() {
        if (!skip) {
            const u32 bar = code.full(turn.stage), late = wait_parity(code.header(), bar, turn.parity);
            if (!late) {
                tile = ptx::ld_shared_u32(code.slot(turn.stage));
                return tile != NO_TILE;
            }
            Warp w{};
            w.pc = pc;
            give_up(code.header(), w, waited_for(late, bar, turn.parity, given));
            skip = true;
        }
        const u32 end = tiles_given(code.header());
        return end != NO_TILE && given < end;
    }

    __device__ __forceinline__ void step() {
        turn.step(code.head().stages);
        ++given;
    }
};

// What the group and who stores tell each other: that the tile to be stored from next has been read, and that it is made. Who tells goes on.
template <u32 NUMBER>
OX_DEVICE void tell(u32 threads) {
    __syncwarp();
    ptx::barrier_arrive<NUMBER>(threads);
}

template <u32 NUMBER>
OX_DEVICE void be_told(u32 threads) {
    __syncwarp();
    ptx::barrier_sync<NUMBER>(threads);
}
constexpr u32 TILE_FREE = 1, TILE_MADE = 2;

OX_DEVICE void make_tiles(const ApplyAt& code, u32 threads) {
    Taker taker(code, APPLY_PC);
    Machine<ApplyAt> machine{code};
    const u32 lane = lane_number(), input = min(lane, MAP_INPUTS - 1u), out_stride = code.store().stride;
    const u32 from = shared_base() + (lane == MAP_INPUTS ? code.word(APPLY_PC, 3) : code.word(APPLY_PC + 2, input));
    const u32 stride = code.word(APPLY_PC + 2, MAP_INPUTS + input);
    machine.fetch(APPLY_PC, 0);
    const Member member{threads - 32};
    // While the first tiles are asked for, each warp runs a part of the machine's code, so that all of it comes in at once: what that makes is not
    // stored, and lies where nothing is loaded. Behind loads in flight code comes twice as late. `once`: a warp's units are the same for each tile.
    bool warm = false, once = false;
    u32 slot = 0;
#pragma unroll 1
    for (;;) {
        if (warm) {
            if (!taker.next()) break;
            be_told<TILE_FREE>(threads);
        }
        machine.tiles.lanes = from + (lane == MAP_INPUTS ? out_stride * slot : stride * taker.turn.stage);
        Walk walk{0};
#pragma unroll 1
        do {
            if (taker.skip || (!once && !walk.next(code, member, APPLY_PC, machine.units))) break;
            machine.run(warm ? 0 : warp_number() % min(code.word(APPLY_PC, 4), COMPUTE_AT_HAND));
        } while (warm && !once);
        if (!warm) {
            warm = true;
            ptx::barrier_sync<0>(threads + 32);  // barriers are there
            continue;
        }
        once |= walk.passes() == 1;
        ptx::fence_proxy_async_shared_cta();
        tell<TILE_MADE>(threads);
        if (++slot == code.head().staged) slot = 0;
        taker.step();
    }
    be_told<TILE_FREE>(threads);  // of one tile more than are made
}

OX_DEVICE void store_tiles(const ApplyAt& code, u32 threads) {
    const Copy& copy = code.store();
    const OfTile where(code, copy);
    const u32 pending = code.head().pending;
    Taker taker(code, APPLY_STORES);
    u32 slot = 0;
    ptx::barrier_sync<0>(threads + 32);
    tell<TILE_FREE>(threads);
#pragma unroll 1
    for (; taker.next(); taker.step()) {
        const ptx::Coords at = gathered(where.at(taker.tile), 0);
        const u32 free = code.empty(taker.turn.stage), from = shared_base() + copy.tile + copy.stride * slot;
        be_told<TILE_MADE>(threads);
        const bool stores = lane_number() == 0 && !taker.skip;
        if (stores) ptx::mbarrier_arrive(free, 1);  // first: what is stored is another tile
        if (pending != 0) {  // so is what the group makes next
            if (stores) wait_group<true>(pending - 1);
            tell<TILE_FREE>(threads);
        }
        if (stores) {
            if (copy.rank == 2) ptx::cp_async_bulk_tensor_2d_s2g(code.map(copy), from, at);
            else store(copy.rank, code.map(copy), from, at);
            ptx::cp_async_bulk_commit_group();
            if (pending == 0) wait_group<true>(0);
        }
        if (pending == 0) tell<TILE_FREE>(threads);
        if (++slot == code.head().staged) slot = 0;
    }
    if (lane_number() == 0) {
        if (code.head().read) ptx::cp_async_bulk_wait_group_read<0>();
        else ptx::cp_async_bulk_wait_group<0>();
    }
    __syncwarp();
    if (taker.skip) ptx::nanosleep(LANDING_NS);
}

OX_DEVICE void feed_tiles(const ApplyAt& code) {
    const u32 lane = lane_number();
    if (lane < code.head().stages) {
        ptx::mbarrier_init(code.full(lane), 1);
        ptx::mbarrier_init(code.empty(lane), 1);
        ptx::fence_mbarrier_init_release_cluster();
    }
    if (lane == 0) ptx::atom_exch_shared_u32(code.slot(0) - 4, NO_TILE);
    __syncwarp();
    ptx::barrier_arrive<0>(blockDim.x);  // it waits for nobody
    const Failure why = Feeder(code).run();
    if (!why) return;
    Warp w{};
    give_up(code.header(), w, why);
    ptx::nanosleep(LANDING_NS);
}

// The first warps compute, the one behind them stores, the last one loads.
OX_DEVICE void apply(const Medium& parameter) {
    const ApplyAt code{parameter};
    const u32 warp = warp_number(), producer = (blockDim.x >> 5) - 1, threads = 32 * producer;
    if (warp + 1 == producer && (lane_number() < code.head().loads || lane_number() == APPLY_LOADS)) {
        ptx::prefetch_tensormap(code.map(code.copy(lane_number())));
    }
    ptx::griddepcontrol_wait();
    if ((shared_base() & 1023) != 0) {
        Warp w{};
        if (warp == producer) give_up(code.header(), w, failure(REPORT_PLACE));
    } else if (warp == producer) {
        feed_tiles(code);
    } else if (warp + 1 == producer) {
        store_tiles(code, threads);
    } else {
        make_tiles(code, threads);
    }
}

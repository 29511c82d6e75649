"""Runs device code, for tests: each agent of each block by itself, as a sequence of primitive events with all numbers resolved.

It reads the bytes by the layouts of `abi` and nothing else, and trusts nobody: registers that nobody wrote, values that leave 32 bits,
stacks that run over and records behind the end are errors. What only a whole machine knows comes from `Oracle`: answers of tests, indices
in memory, which tiles a counter deals.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, final

from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.abi import NO_REG, DeviceOp, DTypeCode, EvalFn
from oxidecopy.engines.cuda.code import Image
from oxidecopy.engines.cuda.code.image import INLINE_MAPS
from oxidecopy.isa.dtypes import REDUCE_OPS
from oxidecopy.isa.ops import FOLDS, MAP_FIELDS

Event = tuple[Any, ...]
ARRIVALS = (DeviceOp.MBARRIER_ARRIVE, DeviceOp.MBARRIER_ARRIVE_EXPECT_TX, DeviceOp.MBARRIER_ARRIVE_DROP)
WRITERS = (DeviceOp.MBARRIER_TEST_PARITY, DeviceOp.MBARRIER_TEST_TOKEN, DeviceOp.LOAD_INDEX)  # of what operand 2 of others reads
STEPS_MAX = 2_000_000  # records; more than the steps that `device_walk` goes become
KINDS = {"u8[4]": "4B", "u8": "B", "u16": "H", "u32": "I", "i32[3]": "3i", "i32": "i", "u64": "Q", "u8[8]": "8B", "i32[5]": "5i"}
COPIES = (DeviceOp.TENSOR_G2S, DeviceOp.TENSOR_G2S_MULTICAST, DeviceOp.TENSOR_S2G, DeviceOp.TENSOR_REDUCE)
RESHAPES = (DeviceOp.TRANSPOSE_TILE, DeviceOp.REDUCE_TILE, DeviceOp.STENCIL_TILE)
RECORDS = {DeviceOp.TRANSPOSE_TILE: abi.FLIP, DeviceOp.REDUCE_TILE: abi.FOLD, DeviceOp.STENCIL_TILE: abi.STENCIL}
PLAIN = (DeviceOp.STORE_GLOBAL, DeviceOp.FILL, DeviceOp.IOTA, DeviceOp.MAP_TILES)


class BadCodeError(Exception):
    """The code does what no code may do."""


def fields(data: bytes, layout: tuple[tuple[str, str, int], ...], at: int = 0) -> dict[str, Any]:
    """A structure of `abi` by name."""
    out: dict[str, Any] = {}
    for name, kind, offset in layout:
        found = struct.unpack_from("<" + KINDS[kind], data, at + offset)
        out[name] = list(found) if len(found) > 1 else found[0]
    return out


@final
@dataclass(slots=True)
class Oracle:
    """What the rest of the machine would say; the same questions get the same answers."""

    tiles: list[int] = field(default_factory=list)  # what the counter deals this block
    asked: int = 0

    def answer(self) -> bool:
        self.asked += 1
        return self.asked * 2654435761 % 7 < 4

    @staticmethod
    def index(array: str, at: int, below: int) -> int:
        return hash((array, at)) % below if below > 0 else 0


@final
class Emulator:
    """One image. `block` and `rank` place a block in the launch."""

    def __init__(self, image: Image, block: tuple[int, int, int], rank: int, tiles: list[int] | None = None) -> None:
        self.image = image
        self.code = image.code
        self.block = block
        self.rank = rank
        self.tiles = tiles or []
        self.spills = 0

    def agents(self) -> list[list[Event]]:
        """The events of every agent."""
        return [self.agent(i) for i in range(len(self.image.agents))]

    def agent(self, number: int) -> list[Event]:
        """The events of one agent."""
        return list(self.running(number))

    def running(self, number: int) -> Iterator[Event]:
        """The events of one agent, one by one; asked for the next when it may go on."""
        return _Run(self, number).events()


@final
class _Run:
    def __init__(self, emulator: Emulator, number: int) -> None:
        self.image = emulator.image
        self.code = emulator.code
        self.rank = emulator.rank
        self.pc = emulator.image.agents[number].entry
        self.end = self.pc + emulator.image.agents[number].records
        warps = [warp for warp in emulator.image.warps if warp.agent == number]
        self.threads = sum(warp.threads for warp in warps)
        self.wide = emulator.image.family in abi.CREW_FAMILIES
        self.bits = 64 if self.wide else 32
        self.depth = abi.WIDE_STACK_DEPTH if self.wide else abi.STACK_DEPTH
        self.arrivals = 0
        self.oracle = Oracle(emulator.tiles)
        self.regs: list[int | None] = [None] * abi.REGISTERS
        self.regs[: abi.FIRST_FREE_REG] = [*emulator.block, emulator.rank]
        if any(warp.entry != self.pc or warp.lanes != 32 * len(warps) or warp.first_lane != 32 * i for i, warp in enumerate(warps)):
            raise BadCodeError("the warp table")

    # ---- operands
    def read(self, reg: int) -> int:
        if reg == NO_REG:
            return 0
        value = self.regs[reg]
        if value is None:
            raise BadCodeError(f"register {reg} was never written")
        return value

    def value(self, record: dict[str, Any], k: int) -> int:
        return self.fits(record["imm"][k] + self.read(record["reg"][k]))

    def fits(self, value: int) -> int:
        if not -1 << self.bits - 1 <= value < 1 << self.bits - 1:
            raise BadCodeError(f"{value} leaves {self.bits} bits")
        return value

    def wraps(self, value: int) -> int:
        """Sums and products of wide code may leave 64 bits for a while."""
        return (value + (1 << 63)) % (1 << 64) - (1 << 63) if self.wide else self.fits(value)

    def record(self, layout: tuple[tuple[str, str, int], ...]) -> dict[str, Any]:
        """The next record."""
        if not 0 <= self.pc < self.end:
            raise BadCodeError("a record outside the agent's code")
        found = fields(self.code, layout, self.pc * abi.RECORD_BYTES)
        self.pc += 1
        return found

    # ---- running
    def events(self) -> Iterator[Event]:
        if self.image.family == abi.APPLY_FAMILY:
            yield from self.applied()
            return
        for _ in range(STEPS_MAX):
            record = self.record(abi.RECORD)
            op = DeviceOp(record["op"])
            if op is DeviceOp.END:
                return
            yield from self.step(op, record)
            if op is DeviceOp.ONCE:
                return
        raise BadCodeError("no end")

    def step(self, op: DeviceOp, r: dict[str, Any]) -> Iterator[Event]:  # noqa: C901 - one case per sort
        if op is DeviceOp.EVAL:
            self.evaluate(self.instructions(r["imm"][0]), None, None)
        elif op in CONTROL:
            yield from CONTROL[op](self, r)
        elif op in (DeviceOp.PRODUCE, DeviceOp.DRAIN):
            yield from self.fused(op, r)
        elif op is DeviceOp.ONCE:
            yield from self.once()
        elif op in COPIES:
            coords = [self.read(reg) for reg in r["reg"][3 : 3 + r["aux"]]]
            yield self.copy(op, self.map(r), coords, [self.value(r, k) for k in range(3)], r["flags"])
        elif op is DeviceOp.LOAD_ROWS:
            yield from self.rows(r, self.record(abi.ROWS))
        elif op is DeviceOp.COPY_EXTRA:
            yield self.extra(r, self.record(abi.EXTRA))
        elif op in PLAIN:
            yield self.plain(op, r)
        elif op is DeviceOp.COMPUTE:
            yield self.compute(r)
        elif op in RESHAPES:
            yield self.reshape(op, r)
        elif op is DeviceOp.PLACE:
            self.place(r["imm"][1])
        elif op is DeviceOp.CONTRACT:
            yield self.contract(r)
        elif op is DeviceOp.CONTRACT_DRAIN:
            yield ("contract_drain",)
        else:
            yield from self.simple(op, r)

    def contract(self, r: dict[str, Any]) -> Event:
        its, end = self.record(abi.CONTRACT), self.record(abi.EPILOGUE)
        self.pc += -(-end["instructions"] // 4)
        coords = tuple([self.read(reg) for reg in r["reg"][3 : 3 + r["aux"]]])
        numbers = (self.value(r, 0), self.value(r, 1), self.value(r, 2) % end["out_stages"])
        places = (its["full"], its["empty"], its["a"], its["b"], end["out"])
        return ("contract", self.map(r), coords, numbers, places, its["stages"], told_by(its, self.rank))

    def simple(self, op: DeviceOp, r: dict[str, Any]) -> Iterator[Event]:  # noqa: C901 - one case per op
        own = op in WRITERS
        v = [self.value(r, k) for k in range(2 if own else 3)] if op is not DeviceOp.BAR_SYNC else r["imm"]
        name = op.name.lower()
        match op:
            case DeviceOp.MBARRIER_WAIT_PHASE:
                if v[1] >= 0:
                    yield (name, v[0], v[1])
            case DeviceOp.MBARRIER_WAIT_PARITY:
                yield (name, v[0], v[1] & 1)
            case DeviceOp.MBARRIER_WAIT_TOKEN:
                yield (name, v[0], self.token(r))
            case DeviceOp.MBARRIER_TEST_TOKEN:
                self.regs[r["reg"][2]] = answer = int(self.oracle.answer())
                yield (name, self.value(r, 0), self.token(r), r["aux"], answer)
            case DeviceOp.MBARRIER_TEST_PARITY:
                self.regs[r["reg"][2]] = answer = int(self.oracle.answer())
                yield (name, self.value(r, 0), self.value(r, 1) & 1, r["aux"], answer)
            case DeviceOp.LOAD_INDEX:
                array = list(self.image.arrays)[r["map"]]
                below = self.value(r, 1)
                self.regs[r["reg"][2]] = found = self.oracle.index(array, self.value(r, 0), below)
                yield (name, array, self.value(r, 0), below, found, DTypeCode(r["aux"]).name.lower())
            case DeviceOp.BAR_SYNC:
                yield ("bar_sync", v[0], v[1])
            case DeviceOp.WARP_SYNC:
                yield ("bar_sync", None, 32)
            case DeviceOp.MBARRIER_INIT:
                if not 1 <= v[2] <= 32:
                    raise BadCodeError("barriers for more lanes than a warp has")
                yield from ((name, v[0] + 8 * i, v[1]) for i in range(v[2]))
            case DeviceOp.MBARRIER_INVAL:
                yield (name, v[0])
            case _ if "MBARRIER" in op.name and "FENCE" not in op.name:
                if op in ARRIVALS:
                    yield from self.made(r)
                yield (name, *v, self.threads)
            case _:
                yield (name, v[0])

    # ---- tokens
    def stamp(self, r: dict[str, Any]) -> int:
        found = self.read(r["reg"][7])
        if found < 0:
            raise BadCodeError("a stamp below 0")
        return found

    def made(self, r: dict[str, Any]) -> Iterator[Event]:
        """What is written down of the arrival that follows: its number among those of the agent, and the history that it is put into."""
        self.arrivals += 1
        if r["flags"] & abi.TOKEN_KEPT:
            self.regs[r["reg"][5]], self.regs[r["reg"][6]] = self.stamp(r) + 1, self.arrivals
        if r["flags"]:
            shared = (r["imm"][3], r["imm"][4], self.stamp(r)) if r["flags"] & abi.TOKEN_SHARED else None
            yield ("token", self.value(r, 0), self.arrivals, shared)

    def token(self, r: dict[str, Any]) -> Event:
        """Where a wait finds its token: the number of the arrival, None for one that was not made, or a history and a stamp."""
        if r["flags"] == abi.TOKEN_KEPT:
            return ("kept", self.read(r["reg"][6]) if self.read(r["reg"][5]) == self.stamp(r) + 1 else None)
        if r["flags"] != abi.TOKEN_SHARED:
            raise BadCodeError("a token nowhere or in two places")
        return ("shared", r["imm"][3], self.stamp(r))

    # ---- control flow
    def jump(self, r: dict[str, Any]) -> Iterator[Event]:
        self.pc = r["imm"][0]
        yield from ()

    def jump_unless(self, r: dict[str, Any]) -> Iterator[Event]:
        if self.value(r, 1) == 0:
            self.pc = r["imm"][0]
        yield from ()

    def loop(self, r: dict[str, Any]) -> Iterator[Event]:
        self.regs[r["reg"][0]] = self.value(r, 1)
        self.turn(r, taken=False)
        yield from ()

    def next(self, r: dict[str, Any]) -> Iterator[Event]:
        self.regs[r["reg"][0]] = self.fits(self.read(r["reg"][0]) + self.value(r, 3))
        self.turn(r, taken=True)
        yield from ()

    def turn(self, r: dict[str, Any], *, taken: bool) -> None:
        """Goes to imm4 when the loop goes on (`taken`), or when it does not."""
        counter, stop = self.read(r["reg"][0]), self.value(r, 2)
        on = counter > stop if self.value(r, 3) < 0 else counter < stop
        if on == taken:
            self.pc = r["imm"][4]

    def next_stage(self, r: dict[str, Any]) -> Iterator[Event]:
        k, full, stages = self.value(r, 0), r["imm"][1], r["imm"][2]
        if k < len(self.oracle.tiles):
            self.regs[r["reg"][2]] = self.oracle.tiles[k]
            yield ("mbarrier_wait_phase", full + 8 * (k % stages), k // stages)
        else:
            yield ("last_wait", full + 8 * (k % stages), k // stages)
            self.pc = r["imm"][4]

    # ---- copies
    def map(self, r: dict[str, Any]) -> str:
        """The map of a record: a slot, or what a register says of a table."""
        entry = self.read(r["imm"][3] - 1) if r["imm"][3] else 0
        slot = r["map"] + r["imm"][4] + entry
        if not 0 <= slot < len(self.image.maps):
            raise BadCodeError(f"slot {slot} of {len(self.image.maps)} maps")
        name: str = self.image.maps[slot]
        return name

    def copy(self, op: DeviceOp, name: str, coords: list[int], v: list[int], flags: int) -> Event:
        match op:
            case DeviceOp.TENSOR_G2S:
                return ("load", name, tuple(coords), v[0], v[1], None)
            case DeviceOp.TENSOR_G2S_MULTICAST:
                return ("load", name, tuple(coords), v[0], v[1], v[2])
            case DeviceOp.TENSOR_REDUCE:
                return ("reduce", REDUCE_OPS[flags], name, tuple(coords), v[0])
            case _:
                return ("store", name, tuple(coords), v[0])

    def rows(self, r: dict[str, Any], its: dict[str, Any]) -> Iterator[Event]:
        """Loads by indices, a lane for each, in the order of the program that has them one by one."""
        if not 1 <= its["count"] <= 32:
            raise BadCodeError("rows for more lanes than a warp has")
        array, dtype = list(self.image.arrays)[its["array"]], DTypeCode(its["dtype"]).name.lower()
        coords = [self.read(reg) for reg in r["reg"][3 : 3 + r["aux"]]]
        for j in range(its["count"]):
            at = min(self.fits(self.value(r, 2) + its["index_step"] * j), its["index_most"])
            found = self.oracle.index(array, at, its["below"])
            yield ("load_index", array, at, its["below"], found, dtype)
            where = list(coords)
            where[-1 - its["dim"]] = self.fits(where[-1 - its["dim"]] + its["scale"] * found)
            yield self.copy(DeviceOp.TENSOR_G2S, self.map(r), where, [self.value(r, 0) + its["tile_step"] * j, self.value(r, 1), 0], 0)

    def extra(self, r: dict[str, Any], e: dict[str, Any]) -> Event:
        """A copy that the records above do not hold; what it does not have is None."""
        kind = DeviceOp(e["kind"])
        if kind >= DeviceOp.TENSORMAP_COPY:
            return self.edit(kind, r, e)
        coords = [self.read(reg) for reg in r["reg"][3 : 3 + r["aux"]]]
        if "4" in kind.name:  # gather4 and scatter4: rows stand in reverse
            coords = [*reversed(coords[:-1]), coords[-1]]
        tensor, send = kind.name.startswith("TENSOR"), kind.name.endswith("S2S")
        where: object = self.map(r) if tensor and not e["place"] else None if send else list(self.image.arrays)[r["map"]]
        if e["place"]:
            where = (where, r["imm"][4] + (self.read(r["imm"][3] - 1) if r["imm"][3] else 0))
        many = kind.name.endswith("MULTICAST")
        third, offsets = self.value(r, 2), None
        loads = kind in (DeviceOp.TENSOR_G2S, DeviceOp.TENSOR_G2S_MULTICAST, DeviceOp.TENSOR_PREFETCH)
        if e["im2col"] and loads:
            third, packed = (third & 0xFFFF, third >> 16) if many else (0, third)
            bits = {3: 16, 4: 8, 5: 5}[r["aux"]]
            offsets = tuple(packed >> bits * i & (1 << bits) - 1 for i in reversed(range(r["aux"] - 2)))
        policy = (e["policy"] - 1, struct.unpack("<f", struct.pack("<I", e["fraction"]))[0]) if e["policy"] else None
        return (
            kind.name.lower(),
            where,
            tuple(coords),
            None if kind.name.endswith("PREFETCH") else self.value(r, 0),
            self.value(r, 1) if "G2S" in kind.name or send or kind is DeviceOp.TENSOR_GATHER4 else None,
            third if many or send else None,
            offsets,
            self.value(r, 3) if send else None,
            policy,
            None if tensor else e["nbytes"],
            REDUCE_OPS[r["flags"]] if "REDUCE" in kind.name else None,
            DTypeCode(e["dtype"]).name.lower() if "REDUCE" in kind.name and not tensor else None,
            bool(e["im2col"]),
        )

    def edit(self, kind: DeviceOp, r: dict[str, Any], e: dict[str, Any]) -> Event:
        """What is no copy: a map in shared memory is changed, released or acquired."""
        match kind:
            case DeviceOp.TENSORMAP_COPY:
                return ("tensormap_copy", self.map(r), self.value(r, 0))
            case DeviceOp.TENSORMAP_REPLACE:
                return ("tensormap_replace", MAP_FIELDS[r["aux"]], r["flags"], self.value(r, 2), self.value(r, 0), bool(e["nbytes"]))
            case DeviceOp.TENSORMAP_REPLACE_ARRAY:
                first = tuple(self.read(reg) for reg in r["reg"][3 : 3 + r["aux"]])
                return ("tensormap_point", list(self.image.arrays)[r["map"]], first, self.value(r, 0))
            case DeviceOp.TENSORMAP_CP_FENCEPROXY:
                return ("tensormap_release", list(self.image.arrays)[r["map"]], self.value(r, 2), self.value(r, 0))
            case DeviceOp.FENCE_PROXY_TENSORMAP:
                return ("tensormap_acquire", list(self.image.arrays)[r["map"]], self.value(r, 2))
            case _:
                raise BadCodeError(f"no edit: {kind}")

    def fused(self, op: DeviceOp, r: dict[str, Any]) -> Iterator[Event]:
        begin, end = self.value(r, 0), self.value(r, 1)
        ring = self.record(abi.RING)
        copies = [self.record(abi.COPY) for _ in range(ring["copies"])]
        code_at = self.pc
        placed = bool(ring["flags"] & abi.RING_FLAG_PLACED)
        code = [] if placed else self.instructions(ring["evals"])
        self.pc = code_at - (-ring["evals"] // 4)
        if self.pc > self.end:
            raise BadCodeError("coordinates behind the end")
        counted = bool(ring["flags"] & abi.RING_FLAG_COUNTER)
        rounds: list[tuple[int, int | None]] = list(enumerate(self.oracle.tiles)) if counted else [(i, None) for i in range(begin, end)]
        for i, tile in rounds:
            k = i + ring["offset"]
            if k < 0:
                raise BadCodeError("a stage before the first")
            places = [
                self.placed(c, code_at, i if tile is None else tile) if placed else self.evaluated(c, code, (i, tile)) for c in copies
            ]
            issued = list(self.issued(copies, places, ring, k))
            yield from self.produced(ring, k, issued) if op is DeviceOp.PRODUCE else self.drained(ring, k, issued)
        if counted:
            yield from self.handed_on(op, ring, len(rounds))

    @staticmethod
    def handed_on(op: DeviceOp, ring: dict[str, Any], k: int) -> Iterator[Event]:
        """The stage that says that there are no more tiles."""
        turn, stage = divmod(k, ring["stages"])
        if op is DeviceOp.PRODUCE:
            yield ("last_wait", ring["empty"] + 8 * stage, turn - 1)
            yield ("last_arrive", ring["full"] + 8 * stage)
        else:
            yield ("last_wait", ring["full"] + 8 * stage, turn)

    def evaluated(self, c: dict[str, Any], code: list[dict[str, Any]], iteration: tuple[int, int | None]) -> list[int]:
        """A copy's coordinates, by instructions."""
        out: dict[int, int] = {}
        self.evaluate(code[c["eval_begin"] : c["eval_end"]], iteration, out)
        if sorted(out) != list(range(c["rank"])):
            raise BadCodeError("coordinates are missing")
        return [out[c["rank"] - 1 - d] for d in range(c["rank"])]

    def placed(self, c: dict[str, Any], pc: int, number: int) -> list[int]:
        """A copy's coordinates, by records."""
        if c["eval_end"] - c["eval_begin"] != c["rank"]:
            raise BadCodeError("coordinates are missing")
        return [self.coordinate(pc, c["eval_begin"] + d, (number, None, None)) for d in reversed(range(c["rank"]))]

    def issued(self, copies: list[dict[str, Any]], places: list[list[int]], ring: dict[str, Any], k: int) -> Iterator[Event]:
        stage = k % ring["stages"]
        for c, coords in zip(copies, places, strict=True):
            at = self.fits(c["tile"] + self.read(c["tile_reg"]) + c["stride"] * stage)
            mask = self.fits(c["mask"] + self.read(c["mask_reg"]))
            yield self.copy(DeviceOp(c["kind"]), self.image.maps[c["map"]], coords, [at, ring["full"] + 8 * stage, mask], c["reduce"])

    def produced(self, ring: dict[str, Any], k: int, issued: list[Event]) -> Iterator[Event]:
        turn, stage = divmod(k, ring["stages"])
        if turn:
            yield ("mbarrier_wait_phase", ring["empty"] + 8 * stage, turn - 1)
        if ring["nbytes"]:
            yield ("mbarrier_arrive_expect_tx", ring["full"] + 8 * stage, ring["nbytes"], 0, 1)
        yield from issued

    def drained(self, ring: dict[str, Any], k: int, issued: list[Event]) -> Iterator[Event]:
        turn, stage = divmod(k, ring["stages"])
        yield ("mbarrier_wait_phase", ring["full"] + 8 * stage, turn)
        yield from issued
        yield ("commit_group", 0)
        yield ("wait_group_read" if ring["flags"] & abi.RING_FLAG_READ else "wait_group", ring["nbytes"])
        if k >= ring["first"]:
            freed = k - ring["empty_behind"]
            if freed < 0:
                raise BadCodeError("a stage before the first is released")
            at = ring["empty"] + 8 * (freed % ring["stages"])
            if ring["peers"]:
                yield from (("mbarrier_arrive_remote", at, rank, 0, 1) for rank in range(ring["peers"]))
            else:
                yield ("mbarrier_arrive", at, 0, 0, 1)

    def once(self) -> Iterator[Event]:
        """What a kernel of family "once" does, which looks for the code at a fixed place."""
        if self.image.family != abi.ONCE_FAMILY or self.pc != 1 or self.image.args_at % 64 != 8 or self.image.arrays or self.image.scalars:
            raise BadCodeError("a one-shot program elsewhere")
        self.pc = 0
        head = self.record(abi.ONCE)
        copies = [self.record(abi.COPY) for _ in range(head["loads"] + head["stores"])]
        yield ("mbarrier_init", head["bar"], 1)
        yield ("mbarrier_arrive_expect_tx", head["bar"], head["nbytes"], 0, 1)
        for i, c in enumerate(copies):
            if i == head["loads"]:
                yield ("mbarrier_wait_phase", head["bar"], 0)
            coords = [self.coordinate(self.pc, c["eval_begin"] + d, tuple(self.regs[:3])) for d in reversed(range(c["rank"]))]
            yield self.copy(DeviceOp(c["kind"]), self.image.maps[c["map"]], coords, [c["tile"], head["bar"], 0], c["reduce"])
        if not head["stores"]:
            yield ("mbarrier_wait_phase", head["bar"], 0)
        yield ("commit_group", 0)
        yield ("wait_group_read" if head["flags"] & abi.ONCE_FLAG_READ else "wait_group", 0)
        if head["flags"] & abi.ONCE_FLAG_INVAL:
            yield ("mbarrier_inval", head["bar"])

    def applied(self) -> Iterator[Event]:
        """What a kernel of family "apply" does, by the part that the agent is. Who makes the barriers is no matter: all meet behind it."""
        head = fields(self.code, abi.APPLY)
        its, everybody = self.image.template, self.image.threads
        at = INLINE_MAPS[self.image.form] * abi.MAP_BYTES + abi.HEADER_BYTES
        if its[at : at + len(self.code)] != self.code or self.image.args_at != at + len(self.code) or head["op"] != DeviceOp.APPLY:
            raise BadCodeError("a map of tiles elsewhere")
        part = self.pc
        if part == abi.APPLY_STORES:
            yield from (("mbarrier_init", head["full"] + 8 * i, 1) for i in range(2 * head["stages"]))
        yield ("bar_sync", 0, everybody)
        for k, tile in enumerate(self.oracle.tiles):
            if part:
                yield ("mbarrier_wait_phase", head["full"] + 8 * (k % head["stages"]), k // head["stages"])
                yield from self.taken(head, part, k, tile)
            else:
                yield from self.fed(head, k, tile)
        turn, stage = divmod(len(self.oracle.tiles), head["stages"])
        if not part:
            yield ("last_wait", head["empty"] + 8 * stage, turn - 1)
            yield ("last_arrive", head["full"] + 8 * stage)
        else:
            yield ("last_wait", head["full"] + 8 * stage, turn)
        if part == abi.APPLY_STORES:
            yield ("wait_group_read" if head["read"] else "wait_group", 0)

    def fed(self, head: dict[str, Any], k: int, tile: int) -> Iterator[Event]:
        copies = [fields(self.code, abi.COPY, abi.RECORD_BYTES * (1 + j)) for j in range(head["loads"])]
        places = [self.applied_at(head, c, tile) for c in copies]
        yield from self.produced(head, k, list(self.issued(copies, places, head, k)))

    def applied_at(self, head: dict[str, Any], c: dict[str, Any], tile: int) -> list[int]:
        self.end = len(self.code) // abi.RECORD_BYTES
        return self.placed(c, head["coordinates"] // abi.RECORD_BYTES, tile)

    def taken(self, head: dict[str, Any], part: int, k: int, tile: int) -> Iterator[Event]:
        """A turn of who stores, or of the group."""
        both, put = self.image.threads - 32, fields(self.code, abi.COPY, abi.RECORD_BYTES * abi.APPLY_STORES)
        out, stage = put["tile"] + put["stride"] * (k % head["staged"]), k % head["stages"]
        stores = part == abi.APPLY_STORES
        if stores:
            yield ("wait_group_read", head["pending"])
        yield ("bar_sync", 1, both)
        if not stores:
            made = fields(self.code, abi.RECORD, abi.APPLY_COMPUTE)
            places = struct.unpack_from("<8i", self.code, abi.APPLY_COMPUTE + 2 * abi.RECORD_BYTES)
            if made["imm"][0] != put["tile"] or made["op"] != DeviceOp.COMPUTE:
                raise BadCodeError("another tile is made than the one that is stored")
            yield ("compute", out, tuple([places[i] + places[4 + i] * stage for i in range(made["aux"])]))
        yield ("fence_proxy_async", 0)
        yield ("bar_sync", 1, both)
        if stores:
            yield self.copy(DeviceOp.TENSOR_S2G, self.image.maps[put["map"]], self.applied_at(head, put, tile), [out, 0, 0], 0)
            yield ("commit_group", 0)
            yield ("mbarrier_arrive", head["empty"] + 8 * stage, 0, 0, 1)

    def coordinate(self, pc: int, number: int, moving: tuple[int | None, ...]) -> int:
        """Coordinate `number` of those from record `pc` on; `moving`: what its steps are for."""
        at = pc * abi.RECORD_BYTES + number * abi.COORDINATE_BYTES
        if at + abi.COORDINATE_BYTES > self.end * abi.RECORD_BYTES:
            raise BadCodeError("a coordinate behind the end")
        c = fields(self.code, abi.COORDINATE, at)
        x = c["offset"] + self.read(c["reg"])
        for name, value in zip("xyz", moving, strict=True):
            if value is None and c[f"step_{name}"]:
                raise BadCodeError("a step by what is not there")
            x += c[f"step_{name}"] * (value or 0)
        if c["magic"] or c["modulus_magic"]:
            self.fits(x)
            if x < 0:
                raise BadCodeError("a negative number is divided")
        x = (x * c["magic"] >> 32) >> c["shift"] if c["magic"] else x
        x -= ((x * c["modulus_magic"] >> 32) >> c["modulus_shift"]) * c["modulus"]
        return self.fits(x * c["scale"] + c["base"] + self.read(c["base_reg"]))

    def place(self, mask: int) -> None:
        """Sets the registers of a mask, each from others as they were."""
        registers = [i for i in range(32) if mask >> i & 1]
        first = self.pc * abi.RECORD_BYTES
        parts = [fields(self.code, abi.COORDINATE, first + i * abi.COORDINATE_BYTES) for i in range(len(registers))]
        made = [self.placed_register(part) for part in parts]
        self.pc += -(-len(parts) * abi.COORDINATE_BYTES // abi.RECORD_BYTES)
        for register, value in zip(registers, made, strict=True):
            self.regs[register] = value

    def placed_register(self, c: dict[str, Any]) -> int:
        x = c["offset"]
        for step, reg in (("step_x", "reg"), ("step_y", "base_reg"), ("step_z", "reg_z")):
            x += c[step] * self.read(c[reg]) if c[step] else 0
        if (c["magic"] or c["modulus_magic"]) and not 0 <= x < 1 << 31:
            raise BadCodeError("what is divided is out of range")
        x = (x * c["magic"] >> 32) >> c["shift"] if c["magic"] else x
        x -= ((x * c["modulus_magic"] >> 32) >> c["modulus_shift"]) * c["modulus"]
        return self.fits(x * c["scale"] + c["base"])

    def compute(self, r: dict[str, Any]) -> Event:
        """A map of family "compute": its tiles; what it computes is another test's."""
        units = self.record(abi.UNITS)
        offsets = struct.unpack_from("<4i", self.code, self.pc * abi.RECORD_BYTES)
        self.pc += 1
        total = r["imm"][3]
        if units["units"] % units["per_row"] or units["down"] * units["per_row"] + units["right"] != total:
            raise BadCodeError("units of another share")
        self.pc += -(-r["imm"][1] // 4)
        return ("compute", self.value(r, 0), tuple([offsets[i] + self.read(r["reg"][1 + i]) for i in range(r["aux"])]))

    def reshape(self, op: DeviceOp, r: dict[str, Any]) -> Event:
        """A transpose, a reduction or a stencil: its tiles; what it moves is another test's."""
        what = self.record(RECORDS[op])
        low, high, total = r["imm"][2] & 0xFFFF, r["imm"][2] >> 16, r["imm"][3]
        if not low < high <= total or total % 32 or low % 32 or high % 32:
            raise BadCodeError("warps share the work, not lanes")
        if op is DeviceOp.REDUCE_TILE:
            how, shape = r["aux"], (what["rows"], what["columns"])
            return ("fold", (FOLDS[how & 1], how >> 1 & 1, how >> 2), self.value(r, 0), self.value(r, 1), shape)
        if op is DeviceOp.STENCIL_TILE:
            taps = tuple(struct.iter_unpack("<if", self.code[self.pc * abi.RECORD_BYTES :][: 8 * r["aux"]]))
            self.pc += -(-r["aux"] // 4)
            return ("stencil", taps, self.value(r, 0), self.value(r, 1), (what["rows"], what["columns"]))
        blocks = what["blocks"] << 2 * what["side"]
        return ("transpose", self.value(r, 0), self.value(r, 1), blocks << what["element"])

    # ---- plain accesses
    def layout(self) -> Event:
        found = self.record(abi.LAYOUT)
        shape = tuple(found[f"shape{i}"] for i in range(found["rank"]))
        return (shape, found["pitch"], found["element_bytes"], found["swizzle_mask"], DTypeCode(found["dtype"]).name.lower()), found["tile"]

    def plain(self, op: DeviceOp, r: dict[str, Any]) -> Event:
        share = (r["imm"][2] & 0xFFFF, r["imm"][2] >> 16, r["imm"][3])
        tile = self.value(r, 0)
        layout, _ = self.layout()
        match op:
            case DeviceOp.STORE_GLOBAL:
                coords = tuple(self.read(reg) for reg in r["reg"][3 : 3 + r["aux"]])
                return ("store_global", list(self.image.arrays)[r["map"]], tile, coords, share, layout)
            case DeviceOp.FILL:
                word = r["imm"][1]
                scalar = next(((s.name, s.dtype, s.cast) for s in self.image.scalars if s.word == word), None)
                bits = struct.unpack_from("<Q", self.image.template, self.image.args_at + 8 * word)[0]
                return ("fill", tile, scalar or bits, share, layout)
            case DeviceOp.IOTA:
                return ("iota", tile, r["imm"][1], share, layout)
            case _:
                inputs = []
                for i in range(r["aux"]):
                    source, at = self.layout()
                    inputs.append((self.fits(at + self.read(r["reg"][1 + i])), source))
                code = self.code[self.pc * abi.RECORD_BYTES :][: 8 * r["imm"][1]]
                self.pc += -(-r["imm"][1] // 4)
                return ("map_tiles", tile, tuple(inputs), share, layout, code)

    # ---- scalars
    def instructions(self, count: int) -> list[dict[str, Any]]:
        at = self.pc * abi.RECORD_BYTES
        self.pc += -(-count // 4)
        if self.pc > self.end:
            raise BadCodeError("instructions behind the end")
        return [fields(self.code, abi.EVAL_INSTR, at + abi.EVAL_BYTES * i) for i in range(count)]

    def evaluate(self, code: list[dict[str, Any]], iteration: tuple[int, int | None] | None, out: dict[int, int] | None) -> None:  # noqa: C901 - one case per sort of instruction
        stack: list[int | None] = [None]  # the accumulator before anything is in it
        for i in code:
            fn, reg, imm = EvalFn(i["fn"]), i["reg"], i["imm"]
            if fn in PUSHES:
                stack.append(self.pushed(fn, reg, imm, iteration))
                if len(stack) > self.depth + 1:
                    raise BadCodeError("the stack runs over")
                continue
            top = stack.pop()
            if top is None:
                raise BadCodeError("an empty accumulator")
            if fn is EvalFn.STORE:
                if iteration is not None:
                    raise BadCodeError("a fused loop writes a register")
                self.regs[reg] = top
            elif fn is EvalFn.OUT and out is not None:
                out[reg] = top
            elif fn in POPS:
                left = stack.pop()
                if left is None:
                    raise BadCodeError("an empty stack")
                stack.append(self.wraps(int(POPS[fn](left, top))))
            elif fn is EvalFn.HIGH:
                stack.append(self.fits(top % (1 << 32) + (imm << 32)))
            else:
                right = self.read(reg) if fn in (EvalFn.ADD_REG, EvalFn.MUL_REG) else imm
                stack.append(self.wraps(int(PLAINLY[fn](top, right))))
        if stack != [None]:
            raise BadCodeError("something is left on the stack")

    def pushed(self, fn: EvalFn, reg: int, imm: int, iteration: tuple[int, int | None] | None) -> int:
        if fn is EvalFn.IMM:
            return imm
        if fn is EvalFn.REG:
            if reg == NO_REG:
                raise BadCodeError("no register")
            return self.wraps(self.read(reg) + imm)
        found = None if iteration is None else iteration[reg]
        if found is None:
            raise BadCodeError("a counter where there is none")
        return found


PUSHES = (EvalFn.IMM, EvalFn.REG, EvalFn.COUNTER)
CONTROL: dict[DeviceOp, Callable[[_Run, dict[str, Any]], Iterator[Event]]] = {
    DeviceOp.JUMP: _Run.jump,
    DeviceOp.JUMP_UNLESS: _Run.jump_unless,
    DeviceOp.LOOP: _Run.loop,
    DeviceOp.NEXT: _Run.next,
    DeviceOp.NEXT_STAGE: _Run.next_stage,
}


def _positive(fn: Callable[[int, int], int]) -> Callable[[int, int], int]:
    def checked(a: int, b: int) -> int:
        if b <= 0:
            raise BadCodeError("a divisor that is not positive")
        return fn(a, b)

    return checked


PLAINLY: dict[EvalFn, Callable[[int, int], int]] = {
    EvalFn.ADD: lambda a, b: a + b,
    EvalFn.MUL: lambda a, b: a * b,
    EvalFn.FLOORDIV: _positive(lambda a, b: a // b),
    EvalFn.MOD: _positive(lambda a, b: a % b),
    EvalFn.MIN: min,
    EvalFn.MAX: max,
    EvalFn.SHR: lambda a, b: a >> b,
    EvalFn.AND: lambda a, b: a & b,
    EvalFn.LT: lambda a, b: a < b,
    EvalFn.LE: lambda a, b: a <= b,
    EvalFn.EQ: lambda a, b: a == b,
    EvalFn.NE: lambda a, b: a != b,
    EvalFn.ADD_REG: lambda a, b: a + b,
    EvalFn.MUL_REG: lambda a, b: a * b,
    EvalFn.NOT: lambda a, _: not a,
}
POPS: dict[EvalFn, Callable[[int, int], int]] = {
    EvalFn.ADD_POP: lambda a, b: a + b,
    EvalFn.MUL_POP: lambda a, b: a * b,
    EvalFn.MIN_POP: min,
    EvalFn.MAX_POP: max,
    EvalFn.LT_POP: lambda a, b: a < b,
    EvalFn.LE_POP: lambda a, b: a <= b,
    EvalFn.EQ_POP: lambda a, b: a == b,
    EvalFn.NE_POP: lambda a, b: a != b,
    EvalFn.AND_POP: lambda a, b: a & b,
    EvalFn.OR_POP: lambda a, b: a | b,
    EvalFn.FLOORDIV_POP: _positive(lambda a, b: a // b),
    EvalFn.MOD_POP: _positive(lambda a, b: a % b),
}


def told_by(its: dict[str, Any], rank: int) -> tuple[int, ...]:
    """The CTAs that are told that a stage is free by one, as the kernel's threads find out."""
    pitch = its["pitch"]
    if its["axes"] == 0:
        return tuple(range(its["peers"]))
    rows = {i for i in range(its["size"]) if its["axes"] & 1 and i // pitch == rank // pitch}
    return tuple(sorted(rows | {i for i in range(its["size"]) if its["axes"] & 2 and i % pitch == rank % pitch}))

"""Stamps of a GPU as bytes: which op of which warp they are of, and what follows from them of copies."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

import oxidecopy as ox
from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.abi import DeviceOp
from oxidecopy.engines.cuda.code.encode import encode_program
from oxidecopy.engines.cuda.code.image import Image
from oxidecopy.engines.cuda.timed import read
from oxidecopy.errors import DeadlockError, DeviceCodeError, UsageError
from oxidecopy.host.bound import BoundLaunch
from oxidecopy.isa import ops
from oxidecopy.program.stamps import Stamped
from oxidecopy.trace import shown, trace
from tests.helpers.device_agreement import compare
from tests.helpers.fake_engine import fake_device
from tests.helpers.fake_gpu import Launch
from tests.helpers.timelines import Map, computation, computation_on, two_loads

TILES = 8  # of each of two CTAs
SILENT = (DeviceOp.EVAL, DeviceOp.JUMP, DeviceOp.JUMP_UNLESS, DeviceOp.WARP_SYNC, DeviceOp.END)
BOUND = computation(3, rows=16, ctas=2, counter=True)
START = 1_900_000_000_123_456_789  # nanoseconds since 1970: more than a float holds exactly


@pytest.fixture(scope="module")
def image() -> Image:
    return encode_program(BOUND.program, BOUND.launch, timed=True)


def op_of(image: Image, pc: int) -> DeviceOp:
    return DeviceOp(image.code[pc * abi.RECORD_BYTES])


def went_through(image: Image, entry: int) -> Iterator[tuple[int, int]]:
    """The records that a warp comes to, in order, each with the counter of its loop: its loops run `TILES` times."""
    pcs = [pc for pc in sorted(image.sites) if pc >= entry]
    ends = next(i for i, pc in enumerate(pcs) if op_of(image, pc) is DeviceOp.END)
    loop = next(i for i, pc in enumerate(pcs) if op_of(image, pc) is DeviceOp.LOOP)
    again = next(i for i, pc in enumerate(pcs) if op_of(image, pc) is DeviceOp.NEXT)
    yield from ((pc, 0) for pc in pcs[: loop + 1])
    for turn in range(TILES):
        yield from ((pc, turn) for pc in pcs[loop + 1 : again])
        yield pcs[again], turn + 1
    yield from ((pc, 0) for pc in pcs[again + 1 : ends])


def buffer(image: Image, *, capacity: int = 400, ctas: int = 2) -> bytes:
    """Every record takes 20 ns and comes 100 ns after the one before."""
    data = bytearray(struct.pack("<4I", ctas, capacity, 0, 0))
    for cta in range(ctas):
        for number, warp in enumerate(image.warps):
            made, now = b"", START + 1000 * cta + 10 * number
            for pc, counter in went_through(image, warp.entry):
                op = op_of(image, pc)
                if op in SILENT:
                    continue
                value = counter if op in (DeviceOp.LOOP, DeviceOp.NEXT) else 20
                made += struct.pack("<IIQ", pc, value, now)
                now += 100
            room = capacity * abi.STAMP_BYTES
            data += made[:room].ljust(room, b"\0")
    return bytes(data)


@pytest.fixture(scope="module")
def run(image: Image) -> Stamped:
    return read(image, BOUND.program, BOUND.launch.environment(), (2, 1, 1), buffer(image))


def test_code_that_is_stamped_is_one_record_for_each_op(image: Image) -> None:
    assert (image.family, image.entry_point) == (abi.TIMED_FAMILY, "oxidecopy_timed_global")
    assert abi.part_of(image.entry_point) == "timed"
    assert image.shares == {"tiles_given": "fixed, as the code is to be stamped"}
    found = {op_of(image, pc) for pc in image.sites}
    assert not found & {DeviceOp.PRODUCE, DeviceOp.DRAIN, DeviceOp.COMPUTE}
    assert struct.calcsize("<IIQ") == abi.STAMP_BYTES


@pytest.mark.parametrize("bound", [computation(3, rows=16, ctas=2), two_loads()], ids=["ring", "two loads"])
def test_code_that_is_stamped_does_what_the_program_says(bound: BoundLaunch) -> None:
    """By the emulator of device code, event for event."""
    compare(bound.program, bound.launch, encode_program(bound.program, bound.launch, timed=True))


def test_the_warp_table_lies_behind_the_records(image: Image) -> None:
    """As of all that `crew.cuh` interprets."""
    assert image.uploaded.startswith(image.code)
    table = image.uploaded[len(image.code) :]
    assert [struct.unpack("<4H", table[i : i + 8])[:2] for i in range(0, len(table), 8)] == [(w.entry, w.threads) for w in image.warps]


def test_the_place_for_stamps_is_the_headers_counter(image: Image) -> None:
    names = {name: bytes(abi.MAP_BYTES) for name in image.maps}
    whole = image.parameter(maps=names, addresses={}, scalars={}, report=0, limit_us=7)
    changed = image.with_counter(whole, 0x1234_5678_9ABC)
    at = abi.INLINE_MAPS_SMALL * abi.MAP_BYTES + {name: offset for name, _, offset in abi.HEADER}["counter"]
    assert changed == whole[:at] + struct.pack("<Q", 0x1234_5678_9ABC) + whole[at + 8 :]


def test_each_warp_is_a_lane(image: Image, run: Stamped) -> None:
    assert [(group.roles[-1 if group.roles[0] == "thread" else 0], len(group.threads)) for group in run.classes] == [
        ("elect", 1),
        ("consumers", 32),
        ("consumers", 31),
        ("producer", 1),
    ]
    assert [group.threads.ranges for group in run.classes] == [((0, 1),), ((1, 33),), ((33, 64),), ((64, 65),)]
    assert run.ctas == ((0, 0, 0), (1, 0, 0))


def test_times_count_from_the_first_stamp(run: Stamped) -> None:
    assert min(s.came for s in run.stamps) == 0
    assert min(s.came for s in run.stamps if s.cta == (1, 0, 0)) == 1000
    assert min(s.came for s in run.stamps if s.agent == 3) == 30
    assert {round((s.end or 0) - s.came) for s in run.stamps} == {20}


def test_loops_and_shares_are_counted(run: Stamped) -> None:
    loads = [s for s in run.stamps if isinstance(s.step.op, ops.TensorG2S)]
    assert [s.names["i0"] for s in loads if s.cta == (1, 0, 0)] == list(range(TILES))
    assert [s.names["read"] for s in loads if s.cta == (1, 0, 0)] == list(range(1, 16, 2)), "block + number * blocks"
    assert {s.names["block_idx.x"] for s in loads} == {0, 1}


def test_copies_are_over_when_the_first_wait_that_they_let_go_is(run: Stamped) -> None:
    loads = [f for f in run.flights if isinstance(run.stamps[f.stamp].step.op, ops.TensorG2S)]
    stores = [f for f in run.flights if isinstance(run.stamps[f.stamp].step.op, ops.TensorS2G)]
    assert (len(loads), len(stores)) == (2 * TILES, 2 * TILES)
    assert {f.nbytes for f in run.flights} == {4096}
    ends = {s.end for s in run.stamps if isinstance(s.step.op, ops.MbarrierWaitPhase)}
    assert all(f.end is None or (f.end in ends and f.end > f.issued) for f in loads)
    assert sum(f.end is not None for f in loads) > TILES
    reads = {s.end for s in run.stamps if isinstance(s.step.op, ops.WaitGroupRead)}
    assert all(f.read in reads and f.end is None for f in stores)
    assert all((f.read or 0) > f.issued for f in stores)


def test_it_is_shown_like_the_simulators(run: Stamped) -> None:
    made = shown(run)
    assert [lane.who for lane in made.timeline.tracks[0].lanes] == [
        "warp 0, thread 0",
        "warps 0-1, threads 1-32",
        "warp 1, threads 33-63",
        "warp 2, thread 64",
    ]
    assert "wait for ring0_full[2], phase 1" in {s.label for s in made.timeline.tracks[0].lanes[1].spans}
    assert made.html()


def test_a_full_buffer_says_so(image: Image) -> None:
    cut = read(image, BOUND.program, BOUND.launch.environment(), (2, 1, 1), buffer(image, capacity=9))
    assert cut.cut == "cut off after 9 records of a warp: what comes later is not shown"
    empty = read(image, BOUND.program, BOUND.launch.environment(), (2, 1, 1), struct.pack("<4I", 0, 9, 0, 0))
    assert (empty.stamps, empty.cut) == ((), "")


# ---- a launch on a driver without a GPU, which writes the stamps
HEADER = {name: offset for name, _, offset in abi.HEADER}


def pointer(parameter: bytes, field: str) -> int:
    at = abi.INLINE_MAPS_SMALL * abi.MAP_BYTES + HEADER[field]
    return int.from_bytes(parameter[at : at + 8], "little")


def test_a_launch_is_stamped_and_read(tmp_path: Path, image: Image) -> None:
    dev, _, driver = fake_device(tmp_path)
    launch = computation_on(dev, 3, rows=16, ctas=2, counter=True)
    seen: list[tuple[str, int, int]] = []

    def stamp(launched: Launch) -> None:
        place = pointer(launched.parameters[0], "counter")
        ctas, capacity, _, _ = struct.unpack("<4I", driver.bytes_at(place, 16))
        seen.append((launched.kernel.name, ctas, capacity))
        driver.poke(place, buffer(image, capacity=capacity, ctas=ctas))

    driver.on_launch = stamp
    made = trace(launch, ctas=2, ops_max=3200)
    assert seen == [("oxidecopy_timed_global", 2, 3200 // (2 * 4))]
    assert made.timeline.source.startswith("cuda:0, ")
    assert [track.name for track in made.timeline.tracks] == ["CTA 0", "CTA 1"]
    assert made.timeline.outcome == "ok"
    assert made.timeline.ops == sum(len(lane.spans) for track in made.timeline.tracks for lane in track.lanes)


def test_a_hang_is_shown_with_its_report(tmp_path: Path, image: Image) -> None:
    dev, _, driver = fake_device(tmp_path)
    launch = computation_on(dev, 3, rows=16, ctas=2, counter=True)

    def hang(launched: Launch) -> None:
        wait = next(pc for pc in image.sites if op_of(image, pc) is DeviceOp.MBARRIER_WAIT_PHASE)
        entry = struct.pack("<12I", abi.ReportKind.TIMEOUT, 1, 0, wait, 0, 0x400, 0, 0, 0, 0, 0, 0)
        driver.poke(pointer(launched.parameters[0], "report"), struct.pack("<4I", 1, 1, 0, 0) + entry)

    driver.on_launch = hang
    made = trace(launch, ctas=1)
    assert made.timeline.outcome == "deadlock"
    assert made.timeline.problems
    with pytest.raises(DeadlockError):
        launch()


def test_what_a_gpu_does_not_follow(tmp_path: Path) -> None:
    dev, _, _ = fake_device(tmp_path)
    with pytest.raises(UsageError) as caught:
        trace(computation_on(dev, 3, rows=16, ctas=2, counter=True), ctas=[(1, 0, 0)])
    assert caught.value.rule == "OX6052"


def test_too_many_classes_of_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from oxidecopy.engines.cuda.code.agents import Cast

    monkeypatch.setattr(Cast, "many", property(lambda _cast: True))
    dev, _, _ = fake_device(tmp_path)
    with pytest.raises(DeviceCodeError) as caught:
        trace(computation_on(dev, 3, rows=16, ctas=2, counter=True))
    assert caught.value.rules == ("OX6053",)


def test_a_clusters_sync_lasts_until_the_next_record() -> None:
    @ox.pipeline(threads=32, cluster=(2, 1, 1))
    def meet(cta: ox.ClusterCta, src: Map) -> None:
        tile = cta.shared(src)
        cta.cluster_sync()
        cta.fill(tile, 1)
        cta.cluster_sync()

    dev = ox.Device.open("sim")
    bound = meet[2].bind(ox.TmaDescriptor.tiled(dev.zeros((8, 64), ox.f32), box=(8, 64)))
    made = encode_program(bound.program, bound.launch, timed=True)
    pcs = [pc for pc in sorted(made.sites) if op_of(made, pc) not in SILENT]
    assert [op_of(made, pc) for pc in pcs] == [DeviceOp.CLUSTER_SYNC, DeviceOp.FILL, DeviceOp.CLUSTER_SYNC]
    stamps = b"".join(struct.pack("<IIQ", pc, 5, START + 70 * i) for i, pc in enumerate(pcs))
    data = struct.pack("<4I", 1, 4, 0, 0) + stamps.ljust(4 * abi.STAMP_BYTES, b"\0")
    run = read(made, bound.program, bound.launch.environment(), (2, 1, 1), data)
    assert [(s.came, s.end) for s in run.stamps] == [(0, 70), (70, 75), (140, 140)]

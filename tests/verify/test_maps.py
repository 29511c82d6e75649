"""Maps that the device replaces: programs that are right, each with twins that are wrong by one edit, before both judges."""

from __future__ import annotations

from dataclasses import replace

import pytest

import oxidecopy as ox
from oxidecopy.engines.base import Bindings
from oxidecopy.engines.sim import explore
from oxidecopy.program.check import check_operands
from oxidecopy.program.program import ArrayInfo, Launch, Program
from oxidecopy.program.text import from_text
from oxidecopy.verify.verifier import inspect
from tests.helpers.map_edits import bound_to

HEAD = """\
program p threads=64 cluster=(1, 1, 1) shared=4096:
  map src: f32 box=(8, 32)
  array x: f32 rank=2
  array y: f32 rank=2
  array cuts: i32 rank=1
  array slots: u8 rank=2
  tile m: u8 (128,) align=128 at=0 step=128
  tile t: f32 (8, 32) align=1024 at=1024 step=1024
  barrier full: TmaBarrier at=2048

  scope thread {0}:
    mbarrier.init full, count=1
  bar.sync number=0, threads=64
"""
ONE_WARP = """\
  scope warps {0..31}:
    loop i, start=0, stop=4, step=1:
      scope elect {0}:
        tensormap.copy src, m
        tensormap.replace.array x, [i * 8, 0], [i * 8 + 5, 64], m
      tensormap.cp_fenceproxy slots[0], m
      scope elect {0}:
        fence.proxy.tensormap.acquire slots[0]
        mbarrier.arrive.expect_tx full, nbytes=1024 -> %0
        cp.async.bulk.tensor.g2s src@slots[0], t, [0, 0], full
        mbarrier.wait full, %0
        cp.async.bulk.tensor.s2g src@slots[0], t, [0, 32]
        cp.async.bulk.commit_group
        cp.async.bulk.wait_group.read pending=0
"""
TWO_WARPS = """\
  loop i, start=0, stop=3, step=1:
    scope warps {32..63}:
      scope elect {40}:
        tensormap.copy src, m
        tensormap.replace.array x, [i * 8, 0], [i * 8 + 5, 64], m
      bar.sync number=1, threads=32
      tensormap.cp_fenceproxy slots[1], m
    bar.sync number=0, threads=64
    scope thread {3}:
      fence.proxy.tensormap.acquire slots[1]
      mbarrier.arrive.expect_tx full, nbytes=1024 -> %0
      cp.async.bulk.tensor.g2s src@slots[1], t, [0, 0], full
    mbarrier.wait.phase full, phase=i
    bar.sync number=0, threads=64
"""
RIGHT = {"one warp": ONE_WARP, "two warps": TWO_WARPS}
# Program, what is taken out (all of it) or put in, the verifier's rule, what the simulator finds.
WRONG = [
    ("one warp", "        fence.proxy.tensormap.acquire slots[0]\n", "", "OX3213", "OX4120"),
    ("one warp", "fence.proxy.tensormap.acquire slots[0]", "fence.proxy.tensormap.acquire slots[1]", "OX3213", "OX4120"),
    ("one warp", "      tensormap.cp_fenceproxy slots[0], m\n", "", "OX3213", "OX4010|OX4011"),
    ("one warp", "src@slots[0], t, [0, 0]", "src@slots[1], t, [0, 0]", "OX3213", "OX4010|OX4011"),
    ("one warp", "        mbarrier.wait full, %0\n", "", "OX3214", "OX4121"),
    ("one warp", "        cp.async.bulk.wait_group.read pending=0\n", "", "OX3214", "OX4121"),
    ("one warp", "wait_group.read pending=0", "wait_group.read pending=1", "OX3214", "OX4121"),
    ("one warp", "        cp.async.bulk.commit_group\n", "        cp.async.bulk.prefetch.tensor src@slots[0], [0, 0]\n"
     "        cp.async.bulk.commit_group\n", "OX3214", "OX4121"),
    ("one warp", "      scope elect {0}:\n        tensormap.copy", "      scope warps {0..1}:\n        tensormap.copy", "OX3210", "OX4101"),
    ("one warp", "scope warps {0..31}", "scope warps {0..32}", "OX3210", "OX4122"),
    ("one warp", "        tensormap.copy src, m\n", "", "OX3041", "OX4107"),
    ("one warp", "[i * 8 + 5, 64]", "[i * 8 + 41, 64]", "OX3212", ""),
    ("one warp", "[i * 8, 0], [", "[i * 8 - 8, 0], [", "OX3212", ""),
    ("one warp", "[i * 8, 0], [", "[i * 8, i], [", "OX3212", ""),
    ("one warp", "[i * 8 + 5, 64]", "[i * 8, 64]", "OX3212", "OX4017"),
    ("one warp", "        tensormap.copy src, m\n", "        tensormap.copy src, m\n        tensormap.replace rank ord=0, value=1, m\n",
     "OX3215", ""),
    ("one warp", "        fence.proxy", "        st.shared.fill m, 0\n        fence.proxy", "OX3211", ""),
    ("one warp", "tile m: u8 (128,) align=128 at=0", "tile m: u8 (128,) align=64 at=64", "OX3211", ""),
    ("one warp", "tile m: u8 (128,) align", "tile m: u8 (64,) align", "OX3211", "OX4014"),
    ("two warps", "      bar.sync number=1, threads=32\n", "", "OX3044", "OX4101"),
    ("two warps", "    bar.sync number=0, threads=64\n    scope thread {3}", "    scope thread {3}", "OX3213", "OX4120|OX4010|OX4011"),
    ("two warps", "    mbarrier.wait.phase full, phase=i\n    bar.sync number=0, threads=64\n",
     "    scope thread {3}:\n      mbarrier.wait.phase full, phase=i\n", "OX3214", "OX4121"),
]  # fmt: skip


def program(body: str) -> Program:
    return from_text(HEAD + body)


def launch_of(**arrays: ArrayInfo) -> tuple[Launch, Bindings]:
    """One block over 48 x 64 elements; x and the map's own array are different memory."""
    return bound_to(ox.Device.open("sim"), (1, 1, 1), arrays)


def rules(body: str, launch: Launch) -> set[str]:
    made = program(body)
    broken = {d.rule for d in check_operands(made)}
    return broken or {d.rule for d in inspect(made, launch).violations}


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right(name: str) -> None:
    launch, bindings = launch_of()
    assert rules(RIGHT[name], launch) == set()
    for seed in range(3):
        explore(program(RIGHT[name]), bindings, seed=seed).check()


@pytest.mark.parametrize(("name", "old", "new", "rule", "found"), WRONG, ids=[f"{row[3]} {i}" for i, row in enumerate(WRONG)])
def test_one_edit_away(name: str, old: str, new: str, rule: str, found: str) -> None:
    launch, bindings = launch_of()
    whole = (HEAD + RIGHT[name]).replace(old, new)
    assert whole != HEAD + RIGHT[name]
    made = from_text(whole)
    broken = {d.rule for d in check_operands(made)} or {d.rule for d in inspect(made, launch).violations}
    assert rule in broken, broken
    if found:
        seen = explore(made, bindings)
        assert {d.rule for d in (*seen.diagnostics, *seen.findings)} & set(found.split("|")), seen


@pytest.mark.parametrize(
    "changed",
    [
        {"shape": (0, 128)},
        {"strides_bytes": (256, 1)},
        {"shape": (2, 64)},
        {"align": 64},
    ],
    ids=str,
)
def test_where_maps_lie(changed: dict[str, object]) -> None:
    info = {"dtype": "u8", "shape": (2, 128), "strides_bytes": (128, 1), "align": 128}
    assert rules(ONE_WARP, launch_of(slots=ArrayInfo(**info))[0]) == set()  # type: ignore[arg-type]
    assert rules(ONE_WARP, launch_of(slots=ArrayInfo(**info | changed))[0]) == {"OX3211"}  # type: ignore[arg-type]


@pytest.mark.parametrize("info", [
    ArrayInfo(dtype="f32", shape=(48, 64), strides_bytes=(260, 4)),
    ArrayInfo(dtype="f32", shape=(48, 64), strides_bytes=(512, 8)),
    ArrayInfo(dtype="f32", shape=(1 << 32, 64), strides_bytes=(256, 4)),
    ArrayInfo(dtype="f32", shape=(48, 64), strides_bytes=(1 << 40, 4)),
], ids=str)  # fmt: skip
def test_what_no_map_can_point_at(info: ArrayInfo) -> None:
    assert rules(ONE_WARP, launch_of(x=info)[0]) == {"OX3215"}


def test_an_array_off_the_grid() -> None:
    info = ArrayInfo(dtype="f32", shape=(48, 64), strides_bytes=(256, 4), align=8)
    assert rules(ONE_WARP, launch_of(x=info)[0]) == {"OX3212"}


def test_memory_for_maps_is_for_nothing_else() -> None:
    launch, _ = launch_of()
    stored = ONE_WARP + "  scope elect {0}:\n    st.global.tile slots, b, [0, 0]\n"
    whole = HEAD.replace("  barrier full", "  tile b: u8 (1, 16) align=16 at=3000 step=16\n  barrier full") + stored
    assert "OX3216" in {d.rule for d in inspect(from_text(whole), launch).violations}
    for shared in ({"same": (("slots", "y"),)}, {"overlapping": (("slots", "y"),)}):
        other = Launch(grid=launch.grid, maps=launch.maps, arrays=launch.arrays, **shared)  # type: ignore[arg-type]
        assert rules(ONE_WARP, other) == {"OX3216"}


def test_windows_that_may_be_empty_are_a_warning() -> None:
    launch, _ = launch_of()
    read = (
        "        ld.global.index a, cuts, index=i, below=x.dim[0] + 1\n        ld.global.index b, cuts, index=i + 1, below=x.dim[0] + 1\n"
        "        tensormap.copy src, m\n"
    )
    body = ONE_WARP.replace("        tensormap.copy src, m\n", read)
    for first, stop, expected in (
        ("a", "b", {"OX3108"}),
        ("a", "a + 1", {"OX3212"}),
        ("a", "min(a + 5, x.dim[0])", {"OX3108"}),
        ("0", "b", {"OX3108"}),
    ):
        report = inspect(program(body.replace("[i * 8, 0], [i * 8 + 5, 64]", f"[{first}, 0], [{stop}, 64]")), launch)
        assert {d.rule for d in (*report.violations, *report.warnings)} & {"OX3108", "OX3212"} == expected
    loads = body[: body.index("        cp.async.bulk.tensor.s2g")].replace("[i * 8, 0], [i * 8 + 5, 64]", "[a, 0], [b, 64]")
    report = inspect(program(loads), launch)
    assert report.ok
    assert {d.rule for d in report.warnings} == {"OX3108"}


def test_a_store_may_write_behind_a_narrow_window() -> None:
    launch, _ = launch_of()
    report = inspect(program(ONE_WARP.replace("[i * 8 + 5, 64]", "[i * 8 + 5, 61]")), launch)
    assert "OX3103" in {d.rule for d in report.warnings}
    assert "OX3103" not in {d.rule for d in inspect(program(ONE_WARP), launch).warnings}


def test_each_block_has_rows_of_its_own() -> None:
    launch, bindings = bound_to(ox.Device.open("sim"), (4, 1, 1), {})
    made = program(TWO_WARPS)
    assert not inspect(made, launch).violations
    explore(made, bindings).check()
    few = bound_to(ox.Device.open("sim"), (4, 1, 1), {"slots": ArrayInfo(dtype="u8", shape=(7, 128), strides_bytes=(128, 1), align=128)})[0]
    assert rules(TWO_WARPS, few) == {"OX3211"}


def test_maps_of_one_kind_in_a_place() -> None:
    launch, _ = launch_of()
    two = HEAD.replace("  array x", "  map other: f32 box=(8, 32) swizzle=128B\n  array x") + ONE_WARP
    wrong = two.replace(
        "tensormap.copy src, m\n        tensormap.replace.array x, [i * 8, 0], [i * 8 + 5, 64], m\n", "tensormap.copy other, m\n"
    )
    bound = dict(launch.maps)["src"]

    both = Launch(grid=launch.grid, maps=(("other", replace(bound, swizzle="128B")), ("src", bound)), arrays=launch.arrays)
    assert "OX3215" in {d.rule for d in inspect(from_text(wrong), both).violations}


def test_long_loops_repeat() -> None:
    launch, _ = launch_of()
    long = ONE_WARP.replace("stop=4", "stop=100000").replace("i * 8", "i % 6 * 8")
    assert rules(long, launch) == set()

"""One-shot programs: which are one record, and twins that one edit makes something else."""

from __future__ import annotations

import pytest

from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.code import Image
from oxidecopy.engines.cuda.code.coordinates import COORDINATE
from oxidecopy.engines.cuda.code.listing import listing
from oxidecopy.program.program import ArrayInfo, Launch
from oxidecopy.program.tensor_map import TensorMap
from oxidecopy.program.text import from_text
from tests.helpers.device_agreement import check

HEAD = """\
program once threads=32 cluster=(1, 1, 1) shared=8192:
  map src: f32 box=(8, 32)
  map dst: f32 box=(8, 32)
  array out: f32 rank=2
  idx n
  tile t: f32 (8, 32) align=1024 stages=4 at=0 step=1024
  barrier full: TmaBarrier at=8000
  barrier other: TmaBarrier at=8008
"""
BODY = """\
  scope thread {0}:
    mbarrier.init full, count=1
  bar.sync number=0, threads=32
  scope elect {0}:
    loop i, start=0, stop=1, step=1:
      mbarrier.arrive.expect_tx full, nbytes=1024 -> %0
      cp.async.bulk.tensor.g2s src, t, [block_idx.x // 4 * 8, block_idx.x % 4 * 32], full
      mbarrier.wait full, %0
      cp.async.bulk.tensor.s2g dst, t, [block_idx.x // 4 * 8, block_idx.x % 4 * 32]
      cp.async.bulk.commit_group
      cp.async.bulk.wait_group.read pending=0
"""
MAP = TensorMap(dtype="f32", global_dim=(800, 640), global_strides=(2560,), box_dim=(8, 32), element_strides=(1, 1))
OUT = ArrayInfo(dtype="f32", shape=(64, 64), strides_bytes=(256, 4))
LOAD = "      cp.async.bulk.tensor.g2s src, t, [block_idx.x // 4 * 8, block_idx.x % 4 * 32], full\n"
STORE = "      cp.async.bulk.tensor.s2g dst, t, [block_idx.x // 4 * 8, block_idx.x % 4 * 32]\n"
AT = "[block_idx.x // 4 * 8, block_idx.x % 4 * 32]"


def image_of(*edits: tuple[str, str], grid: tuple[int, int, int] = (11, 1, 1)) -> Image:
    text = HEAD + BODY
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    used = (("out", OUT),) if "st.global" in text else ()
    text = text if used else text.replace("  array out: f32 rank=1\n", "")
    entries = int(text.split("entries=")[1].split()[0]) if "entries=" in text else 0
    names = ["dst", *[f"src[{i}]" for i in range(entries)]] if entries else ["dst", "src"]
    maps = tuple((name, MAP) for name in sorted(names))
    return check(from_text(text), Launch(grid=grid, maps=maps, arrays=used, idx=(("n", 1),)))


def table(entries: int) -> tuple[str, str]:
    return "map src: f32 box=(8, 32)", f"map src: f32 box=(8, 32) entries={entries}"


SAME = {
    "as it is": (),
    "no loop": (("    loop i, start=0, stop=1, step=1:\n", "    scope elect {0}:\n"),),
    "a loop that runs once for each block": (("start=0, stop=1, step=1", "start=block_idx.x, stop=11, step=11"),),
    "a loop down": (("start=0, stop=1, step=1", "start=0, stop=-1, step=-1"),),
    "a count that is known at the launch": (("stop=1,", "stop=n,"),),
    "wait for all of the group": (("wait_group.read", "wait_group"),),
    "inval": (("pending=0\n", "pending=0\n    mbarrier.inval full\n"),),
    "a decided branch": (("    loop i, start=0, stop=1, step=1:\n", "    when block_idx.x < 11:\n"),),
    "two loads": ((LOAD, LOAD + LOAD.replace(", t,", ", t[1],")), ("nbytes=1024", "nbytes=2048")),
    "four loads, four stores": (
        (LOAD, "".join(LOAD.replace(", t,", f", t[{i}],") for i in range(4))),
        (STORE, "".join(STORE.replace(", t,", f", t[{i}],") for i in range(4))),
        ("nbytes=1024", "nbytes=4096"),
    ),
    "a reduction": (("cp.async.bulk.tensor.s2g", "cp.reduce.async.bulk.tensor.s2g max"),),
    "a known entry of a table": (table(7), ("src, t,", "src[6], t,")),
    "no store": ((STORE, ""),),
    "other coordinates to store": ((STORE, STORE.replace("block_idx.x // 4 * 8", "block_idx.x // 4 * 8 - 16")),),
    "indices as they are": ((AT, "[block_idx.x * 8 - 40, block_idx.y * 32 + 5]"),),
    "constants": ((AT, "[0, -7]"),),
    "a sum of indices": ((AT, "[(block_idx.x + 11 * block_idx.y + 3) // 3 * -8, (block_idx.x * 5 + block_idx.z) % 7 + 1]"),),
    "numbers below zero": ((AT, "[(5 - block_idx.x) // 4, (7 - 2 * block_idx.x) % 5 * 3 - (block_idx.x - block_idx.x)]"),),
    "a remainder of a quotient below zero": ((AT, "[(5 - block_idx.x) // 4 % 3, (5 - block_idx.x) // 4 * 3 + 1]"),),
    "a constant in a remainder of a quotient": ((AT, "[(block_idx.x // 3 + 1) % 2, 0]"),),
    "a remainder of a quotient": ((AT, "[block_idx.x // 3 % 2 * 8, block_idx.x // 7]"),),
}


@pytest.mark.parametrize("edits", SAME.values(), ids=list(SAME))
def test_straight_lines(edits: tuple[tuple[str, str], ...]) -> None:
    image = image_of(*edits, grid=(11, 3, 2))
    assert image.family == abi.ONCE_FAMILY
    assert image.entry_point in abi.ENTRY_POINTS
    assert image.threads == 32
    assert list(image.sites) == [0]
    assert {(note.fused, note.why) for note in image.loops} <= {("once", "")}
    assert image.args_at - abi.WARP_ENTRY_BYTES + abi.ONCE_CODE == image.template.index(image.code)


OTHER = {
    "two trips": (("stop=1,", "stop=2,"), ("-> %0\n", "-> %0\n")),
    "maybe no trip": (("stop=1,", "stop=block_idx.x,"),),
    "count 2": (("count=1", "count=2"),),
    "another barrier beside it": (("count=1\n", "count=1\n    mbarrier.init other, count=1\n"),),
    "announced on another": (("expect_tx full", "expect_tx other"), ("mbarrier.wait full, %0", "mbarrier.wait.phase full, phase=0")),
    "a wait for another": (("mbarrier.wait full, %0", "mbarrier.wait.phase other, phase=0"),),
    "a load reports elsewhere": ((LOAD, LOAD.replace("], full", "], other")),),
    "a wait for the phase after": (("mbarrier.wait full, %0", "mbarrier.wait.phase full, phase=1"),),
    "a wait by parity": (("mbarrier.wait full, %0", "mbarrier.wait.parity full, parity=0"),),
    "a group left": (("pending=0", "pending=1"),),
    "no wait for the group": (("      cp.async.bulk.wait_group.read pending=0\n", ""),),
    "a store before the wait": ((LOAD, LOAD + STORE),),
    "a load after the wait": ((STORE, LOAD + STORE),),
    "an arrive more": (("pending=0\n", "pending=0\n      mbarrier.arrive full -> %1\n"),),
    "inval of another": (("pending=0\n", "pending=0\n    mbarrier.inval other\n"),),
    "a plain store": ((STORE, "      st.global.tile out, t, [0, 0]\n" + STORE),),
    "a fence": ((LOAD, "      fence.proxy.async.shared::cta\n" + LOAD),),
    "five loads": ((LOAD, LOAD * 5),),
    "a tile of the block": ((LOAD, LOAD.replace(", t,", ", t[block_idx.x % 4],")),),
    "a chosen entry of a table": (table(3), ("src, t,", "src[block_idx.x % 3], t,")),
    "a table that is not in the parameter": (table(8), ("src, t,", "src[0], t,")),
    "a sum of quotients": ((AT, "[block_idx.x // 4 + block_idx.x // 3, 0]"),),
    "a least": ((AT, "[min(block_idx.x, 5), 0]"),),
    "a product": ((AT, "[block_idx.x * block_idx.y, 0]"),),
    "a quotient of a remainder": ((AT, "[block_idx.x % 9 // 2, 0]"),),
    "another thread with work": (("  scope elect {0}", "  scope warps {5}:\n    mbarrier.init other, count=1\n  scope elect {0}"),),
}
WHY = {  # nothing is said where it is no single thread's, or does not fit into the parameter
    "two trips": "a loop or a branch",
    "maybe no trip": "a loop or a branch",
    "count 2": "mbarrier_init of another count than a copy has",
    "another barrier beside it": "more than one barrier",
    "announced on another": "more than one barrier",
    "a wait for another": "more than one barrier",
    "a load reports elsewhere": "more than one barrier",
    "a wait for the phase after": "a wait for another phase than the first",
    "a wait by parity": "mbarrier_wait_parity, where a copy has its mbarrier_wait_phase",
    "a group left": "wait_group_read of another count than a copy has",
    "no wait for the group": "no wait_group at its end",
    "a store before the wait": "tensor_s2g, where a copy has its mbarrier_wait_phase",
    "a load after the wait": "tensor_g2s, where a copy has its commit_group",
    "an arrive more": "mbarrier_arrive, where a copy has its mbarrier_inval",
    "inval of another": "more than one barrier",
    "a fence": "fence_proxy_async, where a copy has its mbarrier_wait_phase",
    "five loads": "5 loads and 1 stores, at most 4 of each are",
    "a tile of the block": "a barrier, phase or tile that is known only when it runs",
    "a chosen entry of a table": "an entry of a table of descriptors",
    "a sum of quotients": "a coordinate that is no place of a box in a grid",
    "a least": "a coordinate that is no place of a box in a grid",
    "a product": "a coordinate that is no place of a box in a grid",
    "a quotient of a remainder": "a coordinate that is no place of a box in a grid",
}


@pytest.mark.parametrize("name", OTHER)
def test_twins(name: str) -> None:
    image = image_of(*OTHER[name], grid=(11, 3, 1))
    assert (image.family, image.left) == ("move", WHY.get(name, ""))
    assert all(note.fused != "once" for note in image.loops)


def test_the_listing_says_what_it_does() -> None:
    lines = listing(image_of(("pending=0\n", "pending=0\n    mbarrier.inval full\n"))).splitlines()
    assert [line.strip() for line in lines[5:]] == [
        "init full, announce 1024 on it",
        "tensor_g2s src 0 [(r0 // 4) * 8, (r0 % 4) * 32]",
        "wait full for 0",
        "tensor_s2g dst 0 [(r0 // 4) * 8, (r0 % 4) * 32]",
        "commit, wait for its reads",
        "inval full",
    ]
    twin = listing(image_of((STORE, ""), (AT, "[block_idx.x + 3, 5]"), ("wait_group.read", "wait_group")))
    assert [line.strip() for line in twin.splitlines()[5:]] == ["tensor_g2s src 0 [r0 + 3, 5]", "wait full for 0", "commit, wait for it"]
    assert "tensor_reduce dst 0 [(r0 // 4) * 8, (r0 % 4) * 32] max" in listing(image_of(*SAME["a reduction"]))


def test_copies_of_the_same_place_share_coordinates() -> None:
    assert len(image_of().code) == abi.RECORD_BYTES * 6
    assert len(image_of(*SAME["other coordinates to store"]).code) == abi.RECORD_BYTES * 9
    assert COORDINATE.size == abi.COORDINATE_BYTES

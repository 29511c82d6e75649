"""Shares that the launch's counter deals, and twins that one edit makes unfit for it: those are dealt by a fixed rule, with a reason."""

from __future__ import annotations

import pytest

from oxidecopy.engines.cuda.abi import NO_TILE
from oxidecopy.engines.cuda.code import Image, encode_program
from oxidecopy.isa.limits import SHARED_BYTES_MAX
from oxidecopy.program.program import ArrayInfo, Launch
from oxidecopy.program.tensor_map import TensorMap
from oxidecopy.program.text import from_text
from tests.helpers.device_agreement import compare, deal
from tests.helpers.device_machine import run

INITS = "".join(f"    mbarrier.init full[{i}], count=1\n    mbarrier.init empty[{i}], count=1\n" for i in range(4))
HEAD = f"""\
program counted threads=160 cluster=(1, 1, 1) shared=8192:
  map src: f32 box=(8, 32)
  map dst: f32 box=(8, 32)
  array out: f32 rank=2
  idx n
  tile t: f32 (8, 32) align=1024 stages=4 at=0 step=1024
  barrier full: TmaBarrier stages=4 at=8000
  barrier empty: TmaBarrier stages=4 at=8032
  scope thread {{0}}:
{INITS}  bar.sync number=0, threads=160
  share.tiles given, tiles=n * 7
"""
PRODUCE = """\
  scope producer {128}:
    loop i, start=0, stop=given, step=1:
      share.next a, trips=given, index=i
      mbarrier.wait.phase empty[i % 4], phase=i // 4 - 1
      mbarrier.arrive.expect_tx full[i % 4], nbytes=1024 -> %0
      cp.async.bulk.tensor.g2s src, t[i % 4], [a // 7 * 8, a % 7 * 32], full[i % 4]
"""
CONSUME = """\
  scope consumers {0..127}:
    loop j, start=0, stop=given, step=1:
      share.next b, trips=given, index=j
      mbarrier.wait.phase full[j % 4], phase=j // 4
      st.global.tile out, t[j % 4], [b // 7 * 8, b % 7 * 32]
      bar.sync number=1, threads=128
      scope elect {0}:
        mbarrier.arrive empty[j % 4] -> %1
"""
DRAIN = """\
  scope storer {0}:
    loop j, start=0, stop=given, step=1:
      share.next b, trips=given, index=j
      mbarrier.wait.phase full[j % 4], phase=j // 4
      cp.async.bulk.tensor.s2g dst, t[j % 4], [b // 7 * 8, b % 7 * 32]
      cp.async.bulk.commit_group
      cp.async.bulk.wait_group.read pending=1
      when 1 <= j:
        mbarrier.arrive empty[(j - 1) % 4] -> %1
    cp.async.bulk.wait_group.read pending=0
"""
MAP = TensorMap(dtype="f32", global_dim=(800, 224), global_strides=(896,), box_dim=(8, 32), element_strides=(1, 1))
OUT = ArrayInfo(dtype="f32", shape=(800, 224), strides_bytes=(896, 4))
ALL = HEAD + PRODUCE + CONSUME


def checked(text: str, grid: int = 3) -> Image:
    program = from_text(text)
    launch = Launch(grid=(grid * program.cluster[0], 1, 1), maps=(("dst", MAP), ("src", MAP)), arrays=(("out", OUT),), idx=(("n", 9),))
    image = encode_program(program, launch)
    if image.counted:
        for seed in range(4):
            compare(program, launch, image, deal(program, launch, seed))
            run(program, launch, image, deal(program, launch, seed), seed)
    else:
        compare(program, launch, image)
    return image


@pytest.mark.parametrize("text", [ALL, HEAD + PRODUCE + DRAIN], ids=["op by op", "fused"])
def test_dealt_by_the_counter(text: str) -> None:
    image = checked(text)
    assert image.shares == {"given": "counter"}
    assert image.counted
    assert image.shared_bytes == 8192 + 4 * 5
    assert int.from_bytes(image.template[256 + 56 :][:4] if image.form == "small" else image.template[1024 + 56 :][:4], "little") == 8192
    assert {note.fused for note in image.loops} >= {"produce"}


def test_one_block_and_odd_sizes() -> None:
    assert checked(ALL.replace("shared=8192", "shared=8191"), grid=1).shared_bytes == 8192 + 4 * 5


LATE = ("      bar.sync number=1, threads=128\n      scope elect {0}:\n        mbarrier.arrive empty[j % 4] -> %1\n",
        "      scope elect {0}:\n        mbarrier.arrive empty[j % 4] -> %1\n      bar.sync number=1, threads=128\n")  # fmt: skip
TWINS = {
    "stages filled by two": (("full[0], count=1", "full[0], count=2"), "others arrive on the barriers that its tiles land at"),
    "stages freed by two": (("empty[1], count=1", "empty[1], count=2"), "its stages are not let go of in each iteration"),
    "freed by somebody else too": (
        ("  share.tiles", "  scope thread {5}:\n    mbarrier.arrive empty[0] -> %7\n  share.tiles"),
        "its stages are not let go of in each iteration",
    ),
    "freed while tiles are left": (
        ("mbarrier.arrive empty[j", "when j < given - 4:\n          mbarrier.arrive empty[j"),
        "is used outside of loops",
    ),
    "freed now and then": (
        ("mbarrier.arrive empty[j", "when j % 2 == 0:\n          mbarrier.arrive empty[j"),
        "it releases under a condition",
    ),
    "freed from later on": (
        ("mbarrier.arrive empty[j", "when 2 <= j:\n          mbarrier.arrive empty[j"),
        "its first stages are never let go of",
    ),
    "freed in other order": (("empty[j % 4] ->", "empty[j % 3] ->"), "the stage that it releases is not that of k"),
    "freed, then met": (LATE, "but do not hold up those who let go of the stage"),
    "nobody waits": (("      mbarrier.wait.phase full[j % 4], phase=j // 4\n", ""), "does not begin with a wait"),
    "waits late": (
        ("      mbarrier.wait.phase full[j", "      fence.proxy.async.shared::cta\n      mbarrier.wait.phase full[j"),
        "does not begin with a wait",
    ),
    "waits for another phase": (("full[j % 4], phase=j // 4\n", "full[j % 4], phase=j // 5\n"), "its wait is not for phase k // stages"),
    "waits a turn ahead": (("full[j % 4], phase=j // 4\n", "full[j % 4], phase=j // 4 + 1\n"), "are not counted from 0"),
    "loads a turn ahead": (("phase=i // 4 - 1", "phase=i // 4"), "are not counted from 0"),
    "loads op by op": (
        ("[a // 7 * 8, a % 7 * 32], full", "[a // 7 * 8, a % 7 * 32], empty"),
        "the loop that loads its tiles runs op by op: a load reports to another",
    ),
    "from the second on": (("loop j, start=0", "loop j, start=1"), "a loop over it skips tiles"),
    "its size is used": (("    loop j, start=0, stop=given", "    loop j, start=0, stop=given - 1"), "is used outside of loops"),
    "two shares": (("  share.tiles given", "  share.tiles other, tiles=n\n  share.tiles given"), "there is more than one share"),
    "no room": (("shared=8192", f"shared={SHARED_BYTES_MAX[90] - 16}"), "more bytes of shared memory"),
    "a cluster": (("cluster=(1, 1, 1)", "cluster=(2, 1, 1)"), "blocks of a cluster work together"),
}


@pytest.mark.parametrize(("edit", "why"), TWINS.values(), ids=list(TWINS))
def test_dealt_by_the_fixed_rule(edit: tuple[str, str], why: str) -> None:
    assert edit[0] in ALL
    image = checked(ALL.replace(edit[0], edit[1]))
    assert not image.counted
    assert image.shared_bytes == from_text(ALL.replace(edit[0], edit[1])).shared_bytes
    assert why in image.shares["given"]


def test_blocks_around() -> None:
    head, loop, body = ALL.rpartition("    loop j")
    inner = (loop + body).replace("\n    ", "\n      ").replace("    loop", "      loop", 1)
    image = checked(head + "    when block_idx.x < 2:\n" + inner.rstrip(" "))
    assert "a loop over it stands in a loop or branch" in image.shares["given"]


def test_two_loops_of_one_thread() -> None:
    again = (
        PRODUCE.partition("\n")[2].replace("loop i", "loop k").replace("index=i", "index=k").replace("i %", "k %").replace("i //", "k //")
    )
    again = again.replace("next a", "next c").replace("[a ", "[c ").replace(" a %", " c %").replace("%0", "%9")
    assert "one thread runs two of them" in checked(HEAD + PRODUCE + again + CONSUME).shares["given"]


def test_dealt_to_some() -> None:
    head, share, body = ALL.partition("  share.tiles")
    text = head + "  scope warps {0..159}:\n" + "".join(f"  {line}\n" for line in (share + body).splitlines())
    assert "it is dealt out in a block or by some of the threads" in checked(text).shares["given"]


def test_what_no_loop_loads() -> None:
    assert "no loop that runs as one record loads its tiles" in checked(HEAD + CONSUME).shares["given"]


def test_more_tiles_than_a_slot_can_say() -> None:
    program = from_text(ALL)
    for tiles, why in ((NO_TILE // 7 * 7, "counter"), (NO_TILE // 7 * 7 + 7, "fixed, as it may have more than 268,435,455 tiles")):
        launch = Launch(grid=(3, 1, 1), maps=(("dst", MAP), ("src", MAP)), arrays=(("out", OUT),), idx=(("n", tiles // 7),))
        assert encode_program(program, launch).shares == {"given": why}

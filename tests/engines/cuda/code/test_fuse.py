"""Which loops run as one record: rings in many ways of writing, and twins that one edit makes something else."""

from __future__ import annotations

import pytest

from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.code import Image
from oxidecopy.engines.cuda.code.listing import listing
from oxidecopy.program.program import Launch, Program
from oxidecopy.program.tensor_map import TensorMap
from oxidecopy.program.text import from_text
from tests.helpers.device_agreement import check

HEAD = """\
program ring threads=64 cluster=(1, 1, 1) shared=8192:
  map src: f32 box=(8, 32)
  map dst: f32 box=(8, 32)
  idx n
  tile t: f32 (8, 32) align=1024 stages=4 at=0 step=1024
  tile u: f32 (8, 32) align=1024 stages=4 at=4096 step=1024
  barrier full: TmaBarrier stages=4 at=8000
  barrier empty: TmaBarrier stages=4 at=8032
"""
PRODUCE = """\
  scope producer {0}:
    loop i, start=0, stop=n, step=1:
      mbarrier.wait.phase empty[i % 4], phase=i // 4 - 1
      mbarrier.arrive.expect_tx full[i % 4], nbytes=1024 -> %0
      cp.async.bulk.tensor.g2s src, t[i % 4], [i * 8, block_idx.x * 32], full[i % 4]
"""
DRAIN = """\
  scope storer {32}:
    loop j, start=0, stop=n, step=1:
      mbarrier.wait.phase full[j % 4], phase=j // 4
      cp.async.bulk.tensor.s2g dst, t[j % 4], [j * 8, block_idx.x * 32]
      cp.async.bulk.commit_group
      cp.async.bulk.wait_group.read pending=1
      when 1 <= j:
        mbarrier.arrive empty[(j - 1) % 4] -> %1
"""
MAP = TensorMap(dtype="f32", global_dim=(800, 640), global_strides=(2560,), box_dim=(8, 32), element_strides=(1, 1))


def edited(text: str, *edits: tuple[str, str]) -> str:
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    return text


def image_of(body: str, *, n: int = 11, grid: int = 2, head: str = HEAD) -> tuple[Image, Program]:
    program = from_text(head + body)
    return check(program, Launch(grid=(grid, 1, 1), maps=(("dst", MAP), ("src", MAP)), idx=(("n", n),))), program


SAME_PRODUCE = {
    "as it is": (),
    "a turn ahead": (("i // 4 - 1", "i // 4"),),
    "phase of k - 4": (("phase=i // 4 - 1", "phase=(i - 4) // 4"),),
    "index turned once": (("empty[i % 4]", "empty[(i + 8) % 4]"),),
    "wait where it can fail": (("      mbarrier.wait.phase empty", "      when 4 <= i:\n        mbarrier.wait.phase empty"),),
    "wait where it can fail, strictly": (("      mbarrier.wait.phase empty", "      when 3 < i:\n        mbarrier.wait.phase empty"),),
    "two loads": (
        ("full[i % 4]\n", "full[i % 4]\n      cp.async.bulk.tensor.g2s dst, u[i % 4], [0, i], full[i % 4]\n"),
        ("src, t[", "src, t["),
    ),
    "one ahead": (("i % 4", "(i + 1) % 4"), ("i // 4 - 1", "(i + 1) // 4 - 1")),
    "from two on": (("start=0", "start=2"), ("stop=n", "stop=n + 2"), ("i % 4", "(i - 2) % 4"), ("i // 4 - 1", "(i - 2) // 4 - 1")),
    "below zero": (("start=0", "start=-3"), ("stop=n", "stop=n - 3"), ("i % 4", "(i + 3) % 4"), ("i // 4 - 1", "(i + 3) // 4 - 1")),
    "from the block on": (
        ("start=0", "start=block_idx.x"),
        ("stop=n", "stop=n + block_idx.x"),
        ("i % 4", "(i - block_idx.x) % 4"),
        ("i // 4 - 1", "(i - block_idx.x) // 4 - 1"),
    ),
    "other coordinates": (("[i * 8, block_idx.x * 32]", "[(i + block_idx.x * 5) // 3 * 8, (i + block_idx.x * 5) % 3 * 32]"),),
    "part of a tile": (("t[i % 4]", "t[i % 4].part(block_idx.x, of=2)"),),
    "tile one stage on": (("t[i % 4]", "t[(i + 4) % 4]"),),
}


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 11])
@pytest.mark.parametrize("edits", SAME_PRODUCE.values(), ids=list(SAME_PRODUCE))
def test_loads_in_any_writing(edits: tuple[tuple[str, str], ...], n: int) -> None:
    image, _ = image_of(edited(PRODUCE, *edits), n=n)
    (note,) = image.loops
    assert (note.fused, note.why) == (("produce", "") if n > 1 else ("", "it runs at most once"))


def least(moduli: range) -> str:
    """A minimum of minima, all of the same depth: 16 remainders need five values at once."""
    if len(moduli) == 1:
        return f"i % {moduli[0]}"
    half = len(moduli) // 2
    return f"min({least(moduli[:half])} + 1, {least(moduli[half:])})"


LOADED = "src, t[i % 4], [i * 8, block_idx.x * 32], full[i % 4]\n"
LOAD = "      cp.async.bulk.tensor.g2s "
OTHER_PRODUCE = {
    "step 2": (("step=1", "step=2"), "its step is 2, not 1"),
    "phase too early": (("i // 4 - 1", "i // 4 - 2"), "its count of stages may start below 0"),
    "other stage count in the phase": (("i // 4 - 1", "i // 3 - 1"), "its wait is not for phase"),
    "stage one on": (("empty[i % 4]", "empty[(i + 1) % 4]"), "its wait is not for phase"),
    "full of another stage": (("full[i % 4]", "full[(i + 1) % 4]"), "the barrier that its loads report to is not"),
    "tile of another stage": (("t[i % 4]", "t[(i + 1) % 4]"), "a tile is not the ring's stage k % stages"),
    "tile that turns otherwise": (("t[i % 4]", "t[i % 3]"), "a tile is not the ring's stage k % stages"),
    "k grows by 2": (("i % 4", "(i * 2) % 4"), "its wait is not for phase"),
    "load reports elsewhere": (("32], full[i % 4]", "32], empty[i % 4]"), "a load reports to another barrier"),
    "no wait": (("      mbarrier.wait.phase empty[i % 4], phase=i // 4 - 1\n", ""), "its wait is not for phase"),
    "parity": (("wait.phase empty[i % 4], phase=i // 4 - 1", "wait.parity empty[i % 4], parity=i // 4"), "it starts with mbarrier.wait."),
    "two arrivals": (
        ("-> %0\n", "-> %0\n      mbarrier.arrive full[i % 4] -> %1\n"),
        "mbarrier.arrive stands in it, or a load under a condition",
    ),
    "announced apart": (
        ("arrive.expect_tx full[i % 4], nbytes=1024 -> %0", "expect_tx full[i % 4], nbytes=1024"),
        "mbarrier.expect_tx follows the wait",
    ),
    "load under a condition": (
        ("      cp.async.bulk.tensor.g2s src", "      when i < 7:\n        cp.async.bulk.tensor.g2s src"),
        "stands in it, or a load under a condition",
    ),
    "wait under another condition": (
        ("      mbarrier.wait.phase empty", "      when 5 <= i:\n        mbarrier.wait.phase empty"),
        "its wait stands under",
    ),
    "five loads": (
        (LOADED, LOAD.join([LOADED] * 5)),
        "it holds 5 copies, more than 4",
    ),
    "a fence in it": (("-> %0\n", "-> %0\n      fence.proxy.async.shared::cta\n"), "fence.proxy.async.shared::cta stands in it"),
    "an index in it": (("start=0", "start=-1"), "its count of stages may start below 0"),
    "a store in it": (("full[i % 4]\n", "full[i % 4]\n      cp.async.bulk.tensor.s2g dst, u, [0, 0]\n"), "it both loads and stores"),
    "deep coordinates": (("[i * 8,", f"[{least(range(3, 19))},"), "its coordinates need more than four values at once"),
}  # fmt: skip


@pytest.mark.parametrize(("edit", "why"), OTHER_PRODUCE.values(), ids=list(OTHER_PRODUCE))
def test_other_loops_that_load_stay_as_they_are(edit: tuple[str, str], why: str) -> None:
    body = PRODUCE
    if edit[1].count("full[i % 4]") and edit[0] == "full[i % 4]\n":
        before, _, after = body.rpartition(edit[0])
        body = before + edit[1] + after
    elif edit[0].startswith("full[i % 4]"):
        body = body.replace("expect_tx full[i % 4]", "expect_tx full[(i + 1) % 4]").replace("32], full[i % 4]", "32], full[(i + 1) % 4]")
    else:
        body = edited(body, edit)
    image, _ = image_of(body, n=25)
    (note,) = image.loops
    assert note.fused == ""
    assert why in note.why


SAME_DRAIN = {
    "as it is": (),
    "later": (("pending=1", "pending=3"), ("1 <= j", "2 <= j"), ("(j - 1) % 4", "(j - 2) % 4")),
    "at once": (("pending=1", "pending=0"), ("      when 1 <= j:\n  ", ""), ("(j - 1) % 4", "j % 4")),
    "written, not only read": (("wait_group.read", "wait_group"),),
    "strictly": (("1 <= j", "0 < j"),),
    "k negated": (("1 <= j", "1 - j <= 0"),),
    "released late": (("1 <= j", "3 <= j"),),
    "two stores": (
        ("      cp.async.bulk.commit_group\n", "      cp.async.bulk.tensor.s2g src, u[j % 4], [0, j]\n      cp.async.bulk.commit_group\n"),
    ),
    "combined": (("cp.async.bulk.tensor.s2g dst", "cp.reduce.async.bulk.tensor.s2g add dst"),),
    "a turn ahead": (("phase=j // 4", "phase=j // 4 + 1"),),
    "once round": (("      when 1 <= j:\n        mbarrier.arrive empty[(j - 1) % 4] -> %1\n", ""),),
    "one ahead": (("j % 4", "(j + 1) % 4"), ("phase=j // 4", "phase=(j + 1) // 4"), ("1 <= j", "0 <= j"), ("(j - 1) % 4", "j % 4")),
}


@pytest.mark.parametrize("n", [2, 3, 4, 5, 11])
@pytest.mark.parametrize("edits", SAME_DRAIN.values(), ids=list(SAME_DRAIN))
def test_stores_in_any_writing(edits: tuple[tuple[str, str], ...], n: int) -> None:
    image, _ = image_of(edited(DRAIN, *edits), n=n)
    (note,) = image.loops
    assert (note.fused, note.why) == ("drain", "")


OTHER_DRAIN = {
    "step 2": (("step=1", "step=2"), "its step is 2, not 1"),
    "other stage count": (("phase=j // 4", "phase=j // 5"), "its wait is not for phase k // stages of stage k % stages"),
    "tile of another stage": (("t[j % 4]", "t[(j + 1) % 4]"), "a tile is not the ring's stage k % stages"),
    "no commit": (("      cp.async.bulk.commit_group\n", ""), "no commit follows its stores"),
    "no wait for groups": (("      cp.async.bulk.wait_group.read pending=1\n", ""), "follows the commit, not a wait for groups"),
    "released twice": (("-> %1\n", "-> %1\n        mbarrier.arrive empty[(j - 1) % 4] -> %2\n"), "is not one release of a stage"),
    "released before the first": (("      when 1 <= j:\n  ", ""), "its first releases are of stages before the first"),
    "released to an end": (("when 1 <= j:", "when (1 <= j) & (j < n - 2):"), "it releases under a condition other than"),
    "released every second time": (("when 1 <= j:", "when j % 2 == 1:"), "it releases under a condition other than"),
    "stage that does not turn": (("empty[(j - 1) % 4]", "empty[j % 3]"), "the stage that it releases is not that of k"),
    "store under a condition": (
        ("      cp.async.bulk.tensor.s2g", "      when j < 7:\n        cp.async.bulk.tensor.s2g"),
        "or stand under a condition",
    ),
    "one peer missing": (
        ("mbarrier.arrive empty[(j - 1) % 4] -> %1", "mbarrier.arrive.shared::cluster empty[(j - 1) % 4], rank=1"),
        "is not one release of a stage",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("edit", "why"), OTHER_DRAIN.values(), ids=list(OTHER_DRAIN))
def test_other_loops_that_store_stay_as_they_are(edit: tuple[str, str], why: str) -> None:
    image, _ = image_of(edited(DRAIN, edit), n=25, head=HEAD.replace("(1, 1, 1)", "(2, 1, 1)"))
    (note,) = image.loops
    assert note.fused == ""
    assert why in note.why


def test_releases_on_all_blocks_of_a_cluster() -> None:
    arrive = "        mbarrier.arrive.shared::cluster empty[(j - 1) % 4], rank={}\n"
    body = edited(DRAIN, ("        mbarrier.arrive empty[(j - 1) % 4] -> %1\n", arrive.format(0) + arrive.format(1)))
    image, _ = image_of(body, head=HEAD.replace("(1, 1, 1)", "(2, 1, 1)"))
    assert image.loops[0].fused == "drain"


def test_multicast_with_a_mask_and_a_part_of_the_rank() -> None:
    load = (
        "cp.async.bulk.tensor.g2s.multicast src, t[i % 4].part(cta_rank, of=2), [i * 8, cta_rank * 32], full[i % 4], cta_mask=cta_rank + 1"
    )
    body = edited(PRODUCE, ("cp.async.bulk.tensor.g2s src, t[i % 4], [i * 8, block_idx.x * 32], full[i % 4]", load))
    image, _ = image_of(body, head=HEAD.replace("(1, 1, 1)", "(2, 1, 1)"))
    assert image.loops[0].fused == "produce"
    body = body.replace("cta_mask=cta_rank + 1", "cta_mask=i % 2 + 1")
    image, _ = image_of(body, head=HEAD.replace("(1, 1, 1)", "(2, 1, 1)"))
    assert image.loops[0].why == "a multicast mask changes in it"


def test_one_stage() -> None:
    for body in (
        PRODUCE.replace("i % 4", "0").replace("i // 4", "i"),
        DRAIN.replace("(j - 1) % 4", "0").replace("j % 4", "0").replace("j // 4", "j"),
    ):
        text = body.replace("      when 1 <= j:\n  ", "").replace("pending=1", "pending=0")
        image, _ = image_of(text, head=HEAD.replace("stages=4 at=8", "stages=1 at=8"))
        assert image.loops[0].fused


def test_one_stage_that_skips_phases() -> None:
    body = DRAIN.replace("(j - 1) % 4", "0").replace("j % 4", "0").replace("j // 4", "j * 2")
    image, _ = image_of(body, head=HEAD.replace("stages=4 at=8", "stages=1 at=8"))
    assert image.loops[0].why.startswith("its wait is not for phase")


def test_a_ring_that_goes_on_through_an_outer_loop() -> None:
    inner = PRODUCE.partition("\n")[2].replace("\n    ", "\n      ").replace("    loop i", "      loop i", 1)
    inner = inner.replace("i % 4", "(o * n + i) % 4").replace("i // 4", "(o * n + i) // 4").replace("[i * 8", "[o * 80 + i * 8")
    image, _ = image_of("  scope producer {0}:\n    loop o, start=0, stop=3, step=1:\n" + inner, n=7)
    assert [note.fused for note in image.loops] == ["", "produce"]


def test_threads_together() -> None:
    image, _ = image_of(
        edited(PRODUCE, ("{0}", "{0..1}"), ("      cp.async.bulk.tensor.g2s src, t[i % 4], [i * 8, block_idx.x * 32], full[i % 4]\n", ""))
    )
    assert image.loops[0].why == "2 threads run it together; a fused loop is one thread's"


def test_stages_as_the_recorder_makes_them() -> None:
    body = """\
  scope producer {0}:
    loop i, start=0, stop=n, step=1:
      stage.produce empty[i % 4], free=i // 4 - 1, full[i % 4], nbytes=1024 -> %0:
        cp.async.bulk.tensor.g2s src, t[i % 4], [i * 8, 0], full[i % 4]
  scope storer {32}:
    loop j, start=0, stop=n, step=1:
      stage.load_store full[j % 4], landed=j // 4, dst, t[j % 4], [j * 8, 0], pending=2, empty[(j - 2) % 4], 2 <= j -> %1
"""
    image, _ = image_of(body)
    assert [note.fused for note in image.loops] == ["produce", "drain"]


AT = "[i * 8, block_idx.x * 32]"
BY_RECORDS = {
    "as it is": AT,
    "a block's own boxes": "[(i * 3 + block_idx.x) // 4 * 8, (i * 3 + block_idx.x) % 4 * 32]",
    "constants": "[0, 32]",
    "rows and what does not move": "[i // 2 * 8 + block_idx.x // 2, block_idx.x % 2]",
}
BY_INSTRUCTIONS = {
    "a least": "[min(i, 5) * 8, block_idx.x * 32]",
    "a quotient of a remainder": "[i % 5 // 2 * 8, block_idx.x * 32]",
    "a sum of quotients": "[(i // 2 + i // 3) * 8, block_idx.x * 32]",
}


@pytest.mark.parametrize("at", BY_RECORDS.values(), ids=list(BY_RECORDS))
def test_coordinates_that_are_records(at: str) -> None:
    image, _ = image_of(edited(PRODUCE, (AT, at)), grid=8)
    assert "push" not in listing(image).partition("tensor_g2s")[2]


@pytest.mark.parametrize("at", BY_INSTRUCTIONS.values(), ids=list(BY_INSTRUCTIONS))
def test_coordinates_that_are_instructions(at: str) -> None:
    image, _ = image_of(edited(PRODUCE, (AT, at)), grid=8)
    assert "push counter" in listing(image).partition("tensor_g2s")[2]


def test_copies_of_the_same_place_share_their_records() -> None:
    two = edited(PRODUCE, ("full[i % 4]\n", f"full[i % 4]\n      cp.async.bulk.tensor.g2s dst, u[i % 4], {AT}, full[i % 4]\n"))
    same, other = (len(image_of(text)[0].code) for text in (two, edited(two, (f"dst, u[i % 4], {AT}", "dst, u[i % 4], [i, 0]"))))
    assert other - same == 2 * abi.COORDINATE_BYTES


def test_the_listing_of_records() -> None:
    image, _ = image_of(edited(PRODUCE, (AT, "[(i * 3 + block_idx.x) // 4 * 8, block_idx.x + 3]")), grid=8)
    assert "tensor_g2s src 0 + 1024 * stage [((3 * counter + r0) // 4) * 8, r0 + 3]" in listing(image)


def test_more_stages_than_a_record_can_say() -> None:
    head = HEAD.replace("shared=8192", "shared=80000").replace("stages=4 at=8000", "stages=4096 at=8000")
    head = head.replace("stages=4 at=8032", "stages=4096 at=44000")
    body = PRODUCE.replace("full[i % 4]", "full[i % 4096]").replace("empty[i % 4]", "empty[i % 4096]").replace("i // 4 ", "i // 4096 ")
    body = body.replace("t[i % 4]", "t[0]")
    image, _ = image_of(body, head=head, n=5000)
    assert image.loops[0].why.startswith("its wait is not for phase")
    fewer, _ = image_of(body.replace("4096", "4095"), head=head.replace("4096", "4095"), n=5000)
    assert fewer.loops[0].fused == "produce"

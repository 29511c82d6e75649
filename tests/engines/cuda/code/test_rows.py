"""Rows that are loaded by number: which loops are LOAD_ROWS records, that those do what the program says, and why others are none."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from oxidecopy.engines.cuda.abi import RECORD_BYTES, DeviceOp
from oxidecopy.engines.cuda.code import Image
from oxidecopy.engines.cuda.code.listing import listing
from oxidecopy.program.program import ArrayInfo, Launch
from oxidecopy.program.tensor_map import TensorMap
from oxidecopy.program.text import from_text
from tests.helpers.device_agreement import check

ROW = TensorMap(dtype="f32", global_dim=(640, 800), global_strides=(2560,), box_dim=(64, 1), element_strides=(1, 1))
HEAD = """\
program rows threads=64 cluster=(1, 1, 1) shared=40000:
  map table: f32 box=(1, 64)
  map pages: f32 box=(1, 64) entries=3
  array list: i32 rank=1
  array more: u8 rank=1
  idx n
  tile t: f32 (64, 64) align=128 stages=2 at=0 step=16384
  barrier full: TmaBarrier stages=2 at=32768
  scope producer {{0}}:
    loop k, start=0, stop=n, step=1:
      loop i, start={start}, stop={stop}, step={step}:
{body}"""
READ = "ld.global.index at, list, index=k * 64 + i, below=800"
LOAD = "cp.async.bulk.tensor.g2s table, t[k % 2].part(i, of=64), [at, block_idx.x * 64], full[k % 2]"
LAST = "ld.global.index at, list, index=min(k * 64 + i, 99), below=800"


def image_of(*body: str, start: str = "0", stop: str = "64", step: int = 1, n: int = 3) -> Image:
    maps = {"table": ROW, **{f"pages[{i}]": ROW for i in range(3)}}
    arrays = tuple((name, ArrayInfo(dtype=dtype, shape=(5000,), strides_bytes=(1,))) for name, dtype in (("list", "i32"), ("more", "u8")))
    launch = Launch(grid=(2, 1, 1), maps=tuple(sorted(maps.items())), arrays=arrays, idx=(("n", n),))
    lines = "".join(f"        {line}\n" for line in body)
    return check(from_text(HEAD.format(body=lines, start=start, stop=stop, step=step)), launch)


def rows_of(image: Image) -> int:
    return sum(image.code[pc * RECORD_BYTES] == DeviceOp.LOAD_ROWS for pc in image.sites)


@pytest.mark.parametrize(
    ("body", "loop", "records"),
    [
        ((READ, LOAD), {}, 2),
        ((READ, LOAD), {"stop": "16"}, 1),
        ((READ, LOAD), {"stop": "33"}, 2),
        ((READ, LOAD), {"start": "5", "stop": "9"}, 1),
        ((READ, LOAD), {"start": "block_idx.x * 8", "stop": "block_idx.x * 8 + 8"}, 1),
        ((READ, LOAD), {"start": "7", "stop": "-1", "step": -1}, 1),
        ((READ, LOAD), {"stop": "32", "step": 3}, 1),
        ((LAST, LOAD), {}, 2),
        ((READ.replace("+ i", "+ 9 - 2 * i + 140"), LOAD), {}, 2),
        ((READ, LOAD.replace("[at,", "[at * 16 + k,")), {}, 2),
        ((READ, LOAD.replace("[at,", "[7 - at,")), {}, 2),
        ((READ, LOAD.replace("[at, block_idx.x * 64]", "[k, at * 4]")), {}, 2),
        ((READ, LOAD.replace("table,", "pages[2],")), {}, 2),
        ((READ, LOAD.replace("table,", "pages[block_idx.x],")), {}, 2),
        ((READ, LOAD.replace("part(i, of=64)", "part(63 - i, of=64)")), {}, 2),
        ((READ, LOAD, LOAD.replace("table,", "pages[1],").replace("t[k", "t[(k + 1)")), {}, 4),
        ((READ, READ.replace("at, list", "by, more"), LOAD, LOAD.replace("[at", "[by")), {}, 4),
        ((READ, LOAD, READ.replace("at, list", "by, more"), LOAD.replace("[at", "[by")), {}, 4),
    ],
)
def test_one_record_for_as_many_rows_as_a_warp_has_lanes(body: tuple[str, ...], loop: dict[str, Any], records: int) -> None:
    image = image_of(*body, **loop)
    assert rows_of(image) == records
    assert [note.fused for note in image.loops] == ["", "load_rows"]
    assert "load_rows" in listing(image)


@pytest.mark.parametrize(
    ("body", "loop", "why"),
    [
        ((READ, LOAD), {"stop": "block_idx.x + 2"}, "2 to 3 times, not a known number of times"),
        ((READ, LOAD), {"stop": "300"}, "300 to 300 times, not a known number of times up to 256"),
        ((READ.replace("+ i", "+ i // 2"), LOAD), {}, "does not grow by as much each turn"),
        ((READ.replace("below=800", "below=n"), LOAD), {"n": 1}, "leaves it no choice"),
        ((READ, LOAD.replace("[at,", "[at // 2,")), {}, "by a multiple of the index"),
        ((READ, LOAD.replace("block_idx.x * 64]", "i * 4]")), {}, "more of a load changes"),
        ((READ, LOAD.replace("block_idx.x * 64]", "at * 4]")), {}, "more of a load changes"),
        ((READ, LOAD.replace("[at,", "[k,")), {}, "a load goes by 0 of them"),
        ((READ, LOAD.replace("full[k % 2]", "full[i % 2]")), {}, "more of a load changes"),
        ((READ, LOAD.replace("table,", "pages[i % 3],")), {}, "more of a load changes"),
        ((READ, READ.replace("at, list", "by, more"), LOAD), {}, "no load goes by one of them"),
        ((READ, READ.replace("at, list", "by, more"), LOAD.replace("[at,", "[at + by,")), {}, "a load goes by 2 of them"),
        (
            (READ, READ.replace("at, list, index=k * 64 + i", "by, more, index=at"), LOAD, LOAD.replace("[at", "[by")),
            {},
            "another one is read",
        ),
        (
            (READ, READ.replace("at, list", "by, more"), LOAD.replace(".part(i", ".part(by % 64"), LOAD.replace("[at", "[by")),
            {},
            "more of a load changes",
        ),
        ((READ, LOAD, "mbarrier.arrive.expect_tx full[k % 2], nbytes=256 -> %0"), {}, "mbarrier.arrive.expect_tx stands in it"),
        ((READ, LOAD.replace("full[k % 2]", "full[k % 2], hint=evict_first")), {}, "stands in it"),
    ],
)
def test_why_a_loop_runs_op_by_op(body: tuple[str, ...], loop: dict[str, Any], why: str) -> None:
    image = image_of(*body, **loop)
    assert not rows_of(image)
    assert why in image.loops[-1].why
    assert image.loops[-1].why.startswith("it loads by indices that it reads, and ")


def number(random: Random, *names: str) -> str:
    """A sum of multiples of some of these, now and then of a quotient or a remainder."""
    parts = [f"{name} * {random.choice((1, 1, 2, 3, 64, -1, -5))}" for name in names if random.random() < 0.7]
    parts += [f"{name} {random.choice(('//', '%'))} {random.choice((2, 3, 8))}" for name in names if random.random() < 0.08]
    made = " + ".join([*parts, str(random.randrange(90))])
    return f"min({made}, {random.randrange(200)})" if random.random() < 0.2 else made


@pytest.mark.parametrize("seed", range(150))
def test_any_loop(seed: int) -> None:
    """Whether it is one or none, the records do what the program says."""
    random = Random(seed)
    body = []
    for name, array in (("at", "list"), ("by", "more"))[: random.choice((1, 1, 2))]:
        body.append(
            f"ld.global.index {name}, {array}, index={number(random, 'k', 'i', 'block_idx.x')}, below={random.choice((2, 77, 800))}"
        )
        for _ in range(random.choice((1, 1, 2))):
            coords = [f"{name} * {random.choice((1, 4, -2))} + {number(random, 'k', 'block_idx.x')}", number(random, "k", "block_idx.x")]
            random.shuffle(coords)
            part = f"({number(random, 'i', 'k')}) % 64" if random.random() < 0.2 else random.choice(("i", "63 - i", "k"))
            table = random.choice(("table", "pages[1]", "pages[block_idx.x]"))
            tile = f"t[k % 2].part({part}, of=64)"
            body.append(f"cp.async.bulk.tensor.g2s {table}, {tile}, [{', '.join(coords)}], full[{random.choice(('0', 'k % 2'))}]")
    start, turns, step = random.choice((0, 0, 3)), random.choice((1, 2, 7, 32, 40, 64)), random.choice((1, 1, 2))
    image_of(*body, start=str(start), stop=str(min(start + turns * step, 64)), step=step, n=random.choice((1, 3)))


def test_what_leaves_32_bits_is_wide_code() -> None:
    assert image_of(READ, LOAD.replace("[at,", "[at * 9000000,")).family == "wide"

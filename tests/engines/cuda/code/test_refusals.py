"""What cannot be device code is refused by its rule, and what is one step less is not."""

from __future__ import annotations

import pytest

from oxidecopy.engines.cuda.code import Image, encode_program, lower, refusals, tile_maps
from oxidecopy.errors import DeviceCodeError
from oxidecopy.program.program import ArrayInfo, Launch
from oxidecopy.program.tensor_map import TensorMap
from oxidecopy.program.text import from_text
from tests.helpers.device_agreement import check, compare

HEAD = """\
program p threads={threads} cluster=(1, 1, 1) shared=4096:
  map m: f32 box=(8, 32)
  array out: f32 rank=1
  array idx: i32 rank=1
  idx n
  tile t: f32 (8, 32) align=1024 at=0 step=1024
  tile s: f32 (32) align=1024 at=1024 step=128
  barrier b: TmaBarrier stages=4 at=4000
"""
MAP = TensorMap(dtype="f32", global_dim=(800, 224), global_strides=(896,), box_dim=(8, 32), element_strides=(1, 1))
LINE = ArrayInfo(dtype="f32", shape=(1 << 20,), strides_bytes=(4,))
INDEX = ArrayInfo(dtype="i32", shape=(999,), strides_bytes=(4,))


def launch_of(n: int = 3, grid: int = 2) -> Launch:
    return Launch(grid=(grid, 1, 1), maps=(("m", MAP),), arrays=(("idx", INDEX), ("out", LINE)), idx=(("n", n),))


def checked(body: str, *, threads: int = 64, n: int = 3, grid: int = 2) -> Image:
    return check(from_text(HEAD.format(threads=threads) + body), launch_of(n, grid))


def rules_of(body: str, *, threads: int = 64, n: int = 3, grid: int = 2) -> tuple[str, ...]:
    with pytest.raises(DeviceCodeError) as caught:
        checked(body, threads=threads, n=n, grid=grid)
    assert all(d.fix and d.required and d.what for d in caught.value.diagnostics)
    return caught.value.rules


def test_agents() -> None:
    def fills(count: int) -> str:
        return "".join(f"  scope thread {{{i}}}:\n    st.shared.fill s, {i}\n" for i in range(count))

    assert checked(fills(32)).family == "move"
    image = checked(fills(33))
    assert (image.family, len(image.agents), image.threads) == ("many", 33, 1024)
    alone = [warp.agent for i, warp in enumerate(image.warps) if i % 32]
    assert sorted(alone) == list(range(1, 32)), "the first hardware warp has two of them"


def test_agents_that_only_wait_need_no_warps() -> None:
    waits = "".join(f"  scope thread {{{i}}}:\n    mbarrier.wait.phase b[0], phase={i}\n" for i in range(40))
    image = checked("  scope thread {0}:\n    st.shared.fill s, 1\n" + waits + "  bar.sync number=0, threads=64\n")
    assert [agent.words for agent in image.agents] == ["thread 0 (thread)"]
    assert image.threads == 32


def test_an_index_out_of_range_is_found_by_somebody() -> None:
    image = checked("  ld.global.index i, idx, index=3, below=5\n")
    assert len(image.agents) == 1


def test_thirty_two_bits() -> None:
    store = "  st.global.tile out, s, [block_idx.x * {}]\n"
    checked(store.format("2147483647"))
    assert checked(store.format("2147483648")).family == "wide"
    assert checked(store.format("n"), n=(1 << 30) - 1, grid=3).family == "move"
    assert checked(store.format("n"), n=1 << 30, grid=3).family == "wide"
    assert checked("  st.global.tile out, s, [(block_idx.x * 2147483649) // 2147483648]\n").family == "wide"


def test_sixty_four_bits() -> None:
    store = "  st.global.tile out, s, [{}]\n"
    checked(store.format("block_idx.x * n"), n=(1 << 62) - 1, grid=3)
    assert rules_of(store.format("block_idx.x * n"), n=1 << 62, grid=3) == ("OX5503",)
    assert checked(store.format("(block_idx.x * 4611686018427387905) // 4611686018427387904"), grid=2).family == "wide"
    assert rules_of(store.format("(block_idx.x * 4611686018427387905) // 4611686018427387904"), grid=3) == ("OX5503",)
    wraps = "block_idx.x * 6917529027641081859 % 4611686018427387905"  # the factor is reduced first
    assert checked(store.format(wraps), grid=2).family == "wide"


def test_a_counter_beyond_its_last_value() -> None:
    loop = "  loop i, start=0, stop=2147483647, step={}:\n    when i < 3:\n      st.shared.fill s, 1\n"
    program = HEAD.format(threads=64) + loop
    assert encode_program(from_text(program.format(1)), launch_of()).family == "move"
    assert encode_program(from_text(program.format(2)), launch_of()).family == "wide"
    far = program.replace("2147483647", "9223372036854775807")
    assert encode_program(from_text(far.format(1)), launch_of()).family == "wide"
    with pytest.raises(DeviceCodeError, match="a loop's counter"):
        encode_program(from_text(far.format(2)), launch_of())


def test_division_by_zero() -> None:
    store = "  st.global.tile out, s, [block_idx.x // n]\n"
    checked(store, n=1)
    assert rules_of(store, n=0) == ("OX5503",)
    assert rules_of("  ld.global.index i, idx, index=5 % n, below=9\n  st.global.tile out, s, [i]\n", n=0) == ("OX5503",)


def test_registers() -> None:
    def reads(count: int) -> str:
        return "".join(f"  ld.global.index i{i}, idx, index={i}, below=500\n" for i in range(count)) + "".join(
            f"  st.global.tile out, s, [i{i}]\n" for i in range(count)
        )

    checked(reads(58))
    assert rules_of(reads(61)) == ("OX5504",)


def test_values_that_have_no_register_are_computed_again() -> None:
    places = [f"block_idx.x * {k} // 7 + n" for k in range(8, 108)]
    body = "".join(f"  st.global.tile out, s, [{p}]\n" for p in places * 2)
    image = checked(body, grid=9)
    assert len(image.code) // 32 > 2 * len(places) * 3


@pytest.mark.parametrize("deep", [True, False])
def test_element_expressions(monkeypatch: pytest.MonkeyPatch, *, deep: bool) -> None:
    quotients = "x0:f32"
    for _ in range(7 if deep else 2):
        quotients = f"x0:f32 / ({quotients})"
    body = f"  map.tiles (s), s, fn={quotients}\n"
    monkeypatch.setattr(lower, "computes", lambda *_: False)  # else vectors hold them
    checked(body)
    monkeypatch.setattr(tile_maps, "DEPTH_MAX" if deep else "ELEM_INSTRUCTIONS_MAX", 7 if deep else 4)
    assert rules_of(body) == ("OX5505",)


def test_length(monkeypatch: pytest.MonkeyPatch) -> None:
    records = len(checked("  st.shared.fill s, 1\n" * 5).code) // 32
    monkeypatch.setattr(refusals, "RECORDS_MAX", records)
    checked("  st.shared.fill s, 1\n" * 5)
    assert rules_of("  st.shared.fill s, 1\n" * 6) == ("OX5506",)


def test_copies_by_several_threads() -> None:
    copy = "  scope thread {threads}:\n    cp.async.bulk.tensor.s2g m, t, [0, 0]\n"
    checked(copy.replace("{threads}", "{1}"))
    assert rules_of(copy.replace("{threads}", "{1..2}")) == ("OX5507",)


def test_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "  scope thread {1}:\n    cp.async.bulk.tensor.s2g m, t, [0, 0]\n"
    monkeypatch.setattr(refusals, "MAPS_MAX", 1)
    checked(body)
    monkeypatch.setattr(refusals, "MAPS_MAX", 0)
    assert rules_of(body) == ("OX5508",)


def test_arguments() -> None:
    def text(constants: int) -> str:
        return "".join(f"  st.shared.fill s, {i}\n" for i in range(1, constants + 1))

    assert checked(text(87), threads=32).form == "global"
    assert rules_of(text(88), threads=32) == ("OX5509",)


def test_barriers_of_threads() -> None:
    one = "  scope warps {{{}}}:\n    st.shared.fill s, 1\n    bar.sync number=1, threads={}\n"
    both = one.format("0..31", 64) + one.format("32..63", 64)
    program = from_text(HEAD.format(threads=64) + both)
    compare(program, launch_of(), encode_program(program, launch_of()))
    assert rules_of(one.format("0..31", 64) + one.format("32..95", 64), threads=96) == ("OX5511",)


def test_all_that_is_wrong_is_said_at_once() -> None:
    body = "  scope thread {0..1}:\n    cp.async.bulk.tensor.s2g m, t, [0, 0]\n  st.global.tile out, s, [block_idx.x // (n - 3)]\n"
    assert set(rules_of(body)) == {"OX5503", "OX5507"}


def test_threads_are_spread_over_fewer_warps() -> None:
    image = checked("  scope thread {5}:\n    mbarrier.arrive b[0] -> %0\n  mbarrier.arrive b[1] -> %1\n", threads=1024)
    by_agent = {i: [w for w in image.warps if w.agent == i] for i in range(2)}
    assert sorted(sum(w.threads for w in warps) for warps in by_agent.values()) == [1, 1023]
    assert len(image.warps) == 32
    assert all(w.threads >= 1 for w in image.warps)


def test_barriers_of_threads_are_numbered_anew() -> None:
    def text(*numbers: int) -> str:
        first, second = (f"  scope warps {{{span}}}:\n    st.shared.fill s, 1\n" for span in ("0..31", "32..63"))
        return "".join(f"{first}  bar.sync number={number}, threads=64\n{second}" for number in numbers)

    assert checked(text(5, 9, 5)).family == "move"
    assert checked(text(5, 9, 0)).family == "move_named"
    alone = "  scope warps {0..31}:\n    st.shared.fill s, 3\n    bar.sync number=7, threads=32\n"
    assert checked(alone + text(5, 9)).family == "move", "a barrier of one warp needs no number"

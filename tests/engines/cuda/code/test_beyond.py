"""What ordinary device code does not hold: carried tokens, integers of 64 bits, more thread classes than warps."""

from __future__ import annotations

import struct

import pytest

import oxidecopy as ox
from oxidecopy.conformance import carried, classes, mixed, wide
from oxidecopy.conformance.case import Case
from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.abi import DeviceOp, EvalFn
from oxidecopy.engines.cuda.code import Image, encode, encode_program
from oxidecopy.engines.cuda.code.image import INLINE_MAPS
from oxidecopy.engines.cuda.code.listing import listing
from oxidecopy.engines.cuda.emit import emitted
from oxidecopy.errors import DeviceCodeError
from oxidecopy.fuzz.mutants import mutants
from oxidecopy.fuzz.pipelines import pipeline
from oxidecopy.program.program import ArrayInfo, Launch, Program
from oxidecopy.program.text import from_text
from oxidecopy.verify import inspect, verify
from tests.helpers import device_machine
from tests.helpers.device_agreement import check, compare
from tests.helpers.device_emulator import fields

CASES = [case for suite in (carried, wide, classes) for case in suite.cases()]
SEEDS = 40
PIPELINES = 30


def launched(case: Case) -> tuple[Program, Launch]:
    verified = case.make(ox.Device.open("sim-fast")).launch.verify()
    return verified.program, verified.assumptions.launch


def records(image: Image, op: DeviceOp) -> list[dict[str, object]]:
    found = [fields(image.code, abi.RECORD, pc * abi.RECORD_BYTES) for pc in image.sites]
    return [record for record in found if record["op"] == op]


# ---- programs that the verifier accepts
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.group}: {case.name}")
def test_cases(case: Case) -> None:
    """Every agent does what the program says, and all of them together get to the end."""
    program, launch = launched(case)
    image = check(program, launch)
    assert image.family in (abi.WIDE_FAMILY, abi.MANY_FAMILY)
    assert (image.family == abi.MANY_FAMILY) == (len(image.agents) > 32)
    assert listing(image).count("\n") > len(image.agents)
    for seed in range(2):
        device_machine.run(program, launch, image, seed=seed)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_mixed_programs_are_never_refused(seed: int) -> None:
    program, launch = launched(Case(name="", group="", make=lambda dev: mixed.made(seed, dev)))
    device_machine.run(program, launch, check(program, launch), seed=seed)


def test_what_the_verifier_accepts_is_never_refused() -> None:
    seen = 0
    for seed in range(PIPELINES):
        for case in (pipeline(seed), *mutants(pipeline(seed), seed, 3)):
            if not inspect(case.program, case.launch()).violations:
                encode_program(case.program, case.launch())
                seen += 1
    assert seen > PIPELINES


# ---- what needs it and what does not
HEAD = """\
program p threads=64 cluster=(1, 1, 1) shared={shared}:
  tile s: f32 (32) align=1024 at=0 step=128
  barrier b: GeneralBarrier at=128
  scope thread {{0}}:
    mbarrier.init b, count={count}
"""
LOOP = """\
  loop i, start=0, stop=6, step=1:
    when {cond}:
      scope thread {{3}}:
        mbarrier.arrive b -> %1
      scope {waiter}:
        mbarrier.wait b, %1
        st.shared.fill s, 1
"""


def of_text(cond: str, waiter: str, *, shared: int = 136, count: int = 1) -> Image:
    program = from_text(HEAD.format(shared=shared, count=count) + LOOP.format(cond=cond, waiter=waiter))
    launch = Launch(grid=(2, 1, 1))
    image = encode_program(program, launch)
    compare(program, launch, image)
    return image


def test_a_token_whose_phase_is_known_is_not_carried() -> None:
    assert of_text("block_idx.x == 0", "thread {3}").family == "move"
    assert of_text("i % 2 == 0", "thread {3}").family == "wide"


def test_who_makes_a_token_keeps_it_in_registers() -> None:
    image = of_text("i % 2 == 0", "thread {3}")
    assert image.shared_bytes == 136, "nothing of it lies in shared memory"
    (arrive,), (wait,) = records(image, DeviceOp.MBARRIER_ARRIVE), records(image, DeviceOp.MBARRIER_WAIT_TOKEN)
    assert arrive["flags"] == wait["flags"] == abi.TOKEN_KEPT
    assert arrive["reg"][5:7] == wait["reg"][5:7]  # type: ignore[index]


def test_others_find_it_in_shared_memory() -> None:
    image = of_text("i % 2 == 0", "thread {4}", count=3)
    (arrive,), (wait,) = records(image, DeviceOp.MBARRIER_ARRIVE), records(image, DeviceOp.MBARRIER_WAIT_TOKEN)
    assert arrive["flags"] == wait["flags"] == abi.TOKEN_SHARED
    assert arrive["imm"][3:] == wait["imm"][3:] == [136, 2 * 3 + 1], "as many as arrive in two phases, and one on its way"  # type: ignore[index]
    assert image.shared_bytes == 136 + 8 * (1 + 7 * abi.HISTORY_WORDS)


def test_who_makes_it_and_others() -> None:
    image = of_text("i % 2 == 0", "warps {0..5}")
    (arrive,) = records(image, DeviceOp.MBARRIER_ARRIVE)
    assert arrive["flags"] == abi.TOKEN_KEPT | abi.TOKEN_SHARED
    assert sorted(str(wait["flags"]) for wait in records(image, DeviceOp.MBARRIER_WAIT_TOKEN)) == ["1", "2", "2"]


SYNC = "  bar.sync number=0, threads=64\n"
FIRST = """\
  loop i, start=0, stop=6, step=1:
    when i % 2 == 0:
      scope thread {4}:
        mbarrier.wait b, %1
        st.shared.fill s, 1
      scope thread {3}:
        mbarrier.arrive b -> %1
    bar.sync number=0, threads=64
"""
TWICE = """\
  loop i, start=0, stop=6, step=1:
    loop k, start=0, stop=2, step=1:
      when i % 2 == 0:
        scope thread {3}:
          mbarrier.arrive b -> %1
    loop j, start=0, stop=2, step=1:
      when i % 2 == 0:
        scope thread {3}:
          mbarrier.wait b, %1
          st.shared.fill s, 1
"""


@pytest.mark.parametrize(
    ("steps", "count"),
    [
        (FIRST, 1),
        (TWICE, 2),
        (TWICE.replace("start=0, stop=2", "start=-1, stop=1"), 2),
        (TWICE.replace("j, start=0, stop=2", "j, start=0, stop=1"), 2),
    ],
    ids=["a wait before the arrival", "in a loop behind its own", "in loops that begin below zero", "in one that ends earlier"],
)
def test_tokens_that_are_waited_for_elsewhere(steps: str, count: int) -> None:
    """Each iteration's own is found there, though the thread that made it has made others since."""
    program, launch = from_text(HEAD.format(shared=136, count=count) + SYNC + steps), Launch(grid=(2, 1, 1))
    proof = verify(program, launch)
    image = encode_program(program, launch)
    compare(program, launch, image)
    device_machine.run(program, launch, image, seed=1)
    (arrive,), (wait,) = records(image, DeviceOp.MBARRIER_ARRIVE), records(image, DeviceOp.MBARRIER_WAIT_TOKEN)
    assert arrive["flags"] == wait["flags"] == abi.TOKEN_SHARED
    assert "  wait_token(" in emitted(proof).source


BESIDE = """\
  scope thread {3}:
    loop k, start=0, stop=5, step=1:
      mbarrier.wait.phase free, phase=k - 1
      mbarrier.arrive b -> %1
  scope thread {4}:
    loop j, start=0, stop=5, step=1:
      mbarrier.wait b, %1
      mbarrier.arrive free -> %2
"""


def test_a_phase_that_is_told_by_counters_which_the_wait_does_not_have() -> None:
    """The arrival's loop is another thread's."""
    head = HEAD.format(shared=144, count=1).replace("  scope", "  barrier free: GeneralBarrier at=136\n  scope", 1)
    program, launch = from_text(head + "    mbarrier.init free, count=1\n" + SYNC + BESIDE), Launch(grid=(1, 1, 1))
    proof = verify(program, launch)
    image = encode_program(program, launch)
    compare(program, launch, image)
    for seed in range(4):
        device_machine.run(program, launch, image, seed=seed)
    assert "  wait_token(" in emitted(proof).source


FAR = """\
  loop a, start=0, stop=2, step=1:
    loop k, start=0, stop={stop}, step={step}:
      when k // {step} % 3 != 1:
        scope thread {{4}}:
          mbarrier.wait b, %1
          st.shared.fill s, 1
        scope thread {{3}}:
          mbarrier.arrive b -> %1
      bar.sync number=0, threads=64
"""


@pytest.mark.parametrize("step", [1 << 16, 1 << 30, -(1 << 30), 3 << 29])
def test_iterations_that_lie_far_apart_are_told_apart(step: int) -> None:
    program = from_text(HEAD.format(shared=136, count=1) + SYNC + FAR.format(step=step, stop=5 * step))
    launch = Launch(grid=(1, 1, 1))
    proof = verify(program, launch)
    image = encode_program(program, launch)
    compare(program, launch, image)
    for seed in range(6):
        device_machine.run(program, launch, image, seed=seed)
    assert "k &" not in emitted(proof).source


STAGES = """\
program p threads=64 cluster=(1, 1, 1) shared=256:
  tile s: f32 (32) align=1024 at=0 step=128
  barrier b: GeneralBarrier stages={stages} at=128
  scope thread {{0}}:
    loop m, start=0, stop={stages}, step=1:
      mbarrier.init b[m], count=1
  bar.sync number=0, threads=64
  loop k, start=0, stop={stages}, step=1:
    when k != 1:
      scope thread {{3}}:
        mbarrier.arrive b[k] -> %1
  bar.sync number=0, threads=64
  loop j, start=0, stop={stages}, step=1:
    when j != 1:
      scope thread {{4}}:
        mbarrier.wait b[j], %1
        st.shared.fill s, 1
"""


@pytest.mark.parametrize("stages", [2, 4, 8])
def test_tokens_of_all_barriers_of_an_array_are_found(stages: int) -> None:
    """Of each barrier as many as of one alone."""
    program, launch = from_text(STAGES.format(stages=stages)), Launch(grid=(1, 1, 1))
    verify(program, launch)
    image = encode_program(program, launch)
    compare(program, launch, image)
    device_machine.run(program, launch, image)
    (arrive,) = records(image, DeviceOp.MBARRIER_ARRIVE)
    assert arrive["imm"][3:] == [256, 3 * stages]  # type: ignore[index]


def test_a_barrier_that_nobody_initialises_or_reaches() -> None:
    """Its loop never runs, so the program is accepted; how many arrive in a phase, nobody says."""
    text = HEAD.format(shared=136, count=1).replace("    mbarrier.init b, count=1\n", "    fence.proxy.async.shared::cta\n")
    program = from_text(text + LOOP.replace("stop=6", "stop=0").format(cond="i % 2 == 0", waiter="thread {4}"))
    launch = Launch(grid=(2, 1, 1))
    assert not inspect(program, launch).violations
    compare(program, launch, encode_program(program, launch))
    assert emitted(verify(program, launch)).kernel_name == "p"


def test_engine_words_that_just_fit() -> None:
    full = 232448
    needed = 8 * (1 + 3 * abi.HISTORY_WORDS)
    assert of_text("i % 2 == 0", "thread {4}", shared=full - needed).shared_bytes == full
    with pytest.raises(DeviceCodeError, match="OX5501"):
        of_text("i % 2 == 0", "thread {4}", shared=full - needed + 1)
    assert of_text("i % 2 == 0", "thread {3}", shared=full).shared_bytes == full


def test_the_table_and_the_header() -> None:
    """With the warp table behind the records, the hardware's warps take turns."""
    (case,) = [case for case in classes.cases() if case.name == "loads"]
    program, launch = launched(case)
    image = encode_program(program, launch)
    assert len(image.warps) == 41
    assert image.threads == 1024
    assert image.entry_point == "oxidecopy_many_global"
    header = fields(image.template, abi.HEADER, INLINE_MAPS["global"] * abi.MAP_BYTES)
    assert (header["crew"], header["warps"], header["words"]) == (41, 32, 1)
    assert header["records"] == len(image.code) // abi.RECORD_BYTES
    assert header["stage_slots"] % 8 == 0
    assert header["stage_slots"] >= program.shared_bytes
    assert image.shared_bytes == header["stage_slots"] + 8
    table = image.uploaded[len(image.code) :]
    assert len(table) == 41 * abi.WARP_ENTRY_BYTES
    assert struct.unpack_from("<4H", table, 8 * 40) == image.warps[40][:4]


def test_extents_of_wide_arrays_have_words_of_their_own() -> None:
    (case,) = [case for case in wide.cases() if case.name == "far_counters"]
    image = encode(case.make(ox.Device.open("sim-fast")).launch.verify())
    at = image.args_at + 8 * image.arrays["out"]
    assert struct.unpack_from("<5Q", image.template, at + 8 * 6) == (32, 448, 1, 1, 1)


def test_constants_that_no_immediate_holds() -> None:
    text = """\
program p threads=32 cluster=(1, 1, 1) shared=128:
  array out: f32 rank=1
  tile s: f32 (32) align=1024 at=0 step=128
  loop i, start=0, stop=9, step=1:
    st.global.tile out, s, [(i * 824633720837 + {c}) % 1099511627783 // 34359738368]
"""
    launch = Launch(grid=(1, 1, 1), arrays=(("out", ArrayInfo(dtype="f32", shape=(64,), strides_bytes=(4,))),))
    for c in (0, -5, (1 << 40) - 1, -(1 << 62)):
        image = check(from_text(text.format(c=c)), launch)
        used = {image.code[at] for at in range(0, len(image.code), abi.EVAL_BYTES)}
        assert {EvalFn.HIGH, EvalFn.MOD_POP} <= used

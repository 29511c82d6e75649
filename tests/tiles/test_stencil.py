"""Stencils: what is recorded, what is refused and where, the order of the sums, and that device code does what is recorded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.conformance import reshape
from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.abi import DeviceOp
from oxidecopy.engines.cuda.code import Image, encode_program
from oxidecopy.engines.cuda.code.coordinates import magic_of
from oxidecopy.engines.cuda.code.listing import listing
from oxidecopy.engines.sim.lower_reshape import weighted
from oxidecopy.errors import OxidecopyError
from oxidecopy.isa import ops
from oxidecopy.isa.ops import StencilTile, Tap
from oxidecopy.program.binary import from_bytes, to_bytes
from oxidecopy.program.check import check_operands
from oxidecopy.program.program import Program
from oxidecopy.program.text import from_text, to_text
from tests.helpers.device_agreement import compare
from tests.helpers.device_emulator import fields

FIVE = {(0, 0): 0.5, (-1, 0): 0.125, (1, 0): 0.125, (0, -1): 0.1, (0, 1): -0.3}


def made(
    taps: Any, *, halo: tuple[int, int] = (1, 4), dtype: type[ox.DType] = ox.f32, sync: bool = True, itself: bool = False
) -> ox.Pipeline[...]:
    """A filled tile and a stencil of it."""

    @ox.pipeline(threads=64)
    def one(cta: ox.Cta, out: ox.GlobalArray[Any, ox.D2]) -> None:
        tile: Any = cta.shared(dtype, (8 + 2 * halo[0], 16 + 2 * halo[1]), align=ox.A128)
        result: Any = tile if itself else cta.shared(ox.f32, (8, 16), align=ox.A128)
        cta.iota(tile, axis=1)
        if sync:
            cta.sync()
        cta.stencil(tile, taps=taps, out=result)
        cta.sync()
        cta.store(out, result, (0, 0))

    return one


def run(pipeline: ox.Pipeline[...], shape: tuple[int, int] = (8, 16)) -> Any:
    out = ox.Device.open("sim").zeros(shape, ox.f32)
    pipeline[1](out)
    return out.numpy()


def program() -> Program:
    return made(FIVE)[1].bind(ox.Device.open("sim-fast").zeros((8, 16), ox.f32)).program


def stencil_of(p: Program) -> StencilTile:
    (op,) = [step.op for step in p.walk() if isinstance(step.op, StencilTile)]
    return op


def test_places_count_from_the_outputs_first_element() -> None:
    assert (run(made({(1, 1): 2.0})) == 2.0 * (np.arange(16) + 5)).all()
    assert (run(made({(0, -4): 1, (0, 4): np.float32(-1)})) == -8).all()


def test_the_order_is_the_taps() -> None:
    values = np.random.default_rng(0).standard_normal((6, 12), np.float32)
    taps = tuple(Tap(*place, float(np.float32(weight))) for place, weight in FIVE.items())
    total: Any = None
    for tap in taps:
        part = values[1 + tap.row : 5 + tap.row, 4 + tap.column : 8 + tap.column] * np.float32(tap.weight)
        total = part if total is None else total + part
    assert (weighted(values.view(np.uint32), taps, (1, 4)).view(np.float32) == total).all()
    assert (weighted(values.view(np.uint32), taps[::-1], (1, 4)).view(np.float32) != total).any()


def test_weights_are_rounded_to_f32() -> None:
    assert [tap.weight for tap in stencil_of(program()).taps] == [float(np.float32(w)) for w in FIVE.values()]


@pytest.mark.parametrize(
    ("rule", "pipeline"),
    [
        ("OX1195", made(FIVE, halo=(-1, 0))),
        ("OX1192", made(FIVE, dtype=ox.f16)),
        ("OX1194", made({(0, 0): 1.0}, halo=(0, 0), itself=True)),
        ("OX1196", made({})),
        ("OX1196", made([(0, 0)])),
        ("OX1196", made({(0, 0): True})),
        ("OX1196", made({(0, 0): 10**400})),
        ("OX1196", made({(0,): 1.0})),
        ("OX1196", made({(2, 0): 1.0})),
        ("OX1196", made({(0, 5): 1.0})),
        ("OX1196", made({(0, 0): 1e39})),
        ("OX1196", made({(0, 0): float("nan")})),
        ("OX1196", made({(0, n): 1.0 for n in range(-4, 5)} | {(1, 0): 1.0})),
        ("OX3045", made(FIVE, sync=False)),
    ],
)
def test_what_is_refused(rule: str, pipeline: ox.Pipeline[...]) -> None:
    with pytest.raises(OxidecopyError) as refused:
        run(pipeline)
    assert refused.value.rules == (rule,)


def test_an_odd_difference_is_no_halo() -> None:
    assert ops.margin((9, 24), (8, 16)) is None
    assert ops.margin((10, 24), (8, 16)) == (1, 4)
    assert ops.margin((10,), (8,)) is None


def test_text_and_binary_form() -> None:
    p = program()
    assert "taps=[(0, 0, 0.5), (-1, 0, 0.125), (1, 0, 0.125), " in to_text(p)
    assert from_text(to_text(p)) == p
    assert from_bytes(to_bytes(p), "a file") == p
    with pytest.raises(OxidecopyError, match=r"a weight, such as 0\.25"):
        from_text(to_text(p).replace("(0, 0, 0.5)", "(0, 0, 1)"))


@pytest.mark.parametrize(
    ("rule", "what", "change"),
    [
        ("OX1910", "taps at most 1 rows and 4 columns away", {"taps": (Tap(-2, 0, 1.0),)}),
        ("OX1910", "1 to 9 taps", {"taps": ()}),
        ("OX1910", "weights that are numbers of f32", {"taps": (Tap(0, 0, 0.1),)}),
        ("OX1920", "another tile", {"out": "source"}),
        ("OX1920", "as many more rows above as below", {"source": "out", "out": "source"}),
    ],
)
def test_programs_of_others_are_checked(rule: str, what: str, change: dict[str, Any]) -> None:
    p = program()
    op = stencil_of(p)
    edited: Any = {name: getattr(op, to) if isinstance(to, str) else to for name, to in change.items()}
    steps = tuple([replace(step, op=replace(op, **edited)) if step.op is op else step for step in p.steps])
    found = check_operands(replace(p, steps=steps))
    assert rule in {d.rule for d in found}
    assert what in "\n".join(map(str, found))


@pytest.mark.parametrize("case", [c for c in reshape.cases() if c.name.endswith(("six 5 by 68", "nine swizzled"))], ids=lambda c: c.name)
def test_device_code(case: Any) -> None:
    launch = case.make(ox.Device.open("sim-fast")).launch
    image = encode_program(launch.program, launch.launch)
    assert image.family.startswith("reshape")
    compare(launch.program, launch.launch, image)
    assert " times +" in listing(image)


NINE = [(row, column) for row in (-1, 0, 1) for column in (-1, 0, 1)]


@pytest.mark.parametrize(
    ("taps", "halo", "how"),
    [
        (NINE, (1, 4), "near, in order"),
        (NINE[1::2], (1, 4), "near, in order"),
        (NINE[::-1], (1, 4), "near"),
        (list(FIVE), (1, 4), "near"),
        (NINE, (1, 2), "words"),  # rows of the output begin at no multiple of 16 bytes
        ([(0, 0)], (0, 4), "chunks"),  # there is no row above
        ([(-2, 0), (2, 0), (0, 4)], (2, 4), "chunks"),
        ([(0, 2)], (1, 4), "words"),
    ],
)
def test_how_taps_are_read(taps: list[tuple[int, int]], halo: tuple[int, int], how: str) -> None:
    bound = made(dict.fromkeys(taps, 0.5), halo=halo)[1].bind(ox.Device.open("sim-fast").zeros((8, 16), ox.f32))
    image = encode_program(bound.program, bound.launch)
    assert f", {how}; pitches" in listing(image)
    (record,) = [fields(image.code, abi.STENCIL, (pc + 1) * abi.RECORD_BYTES) for pc in sorted(image.sites) if is_stencil(image, pc)]
    across = 16 if how == "words" else 4
    assert (record["across_magic"], record["across_shift"]) == magic_of(across)
    assert record["places"] == (sum(1 << NINE.index(tap) for tap in taps) if "order" in how else 0)


def is_stencil(image: Image, pc: int) -> bool:
    op: int = fields(image.code, abi.RECORD, pc * abi.RECORD_BYTES)["op"]
    return op == DeviceOp.STENCIL_TILE

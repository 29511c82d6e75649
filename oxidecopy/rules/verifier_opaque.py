"""Pages of the verifier's rules about integers that are known only while the program runs: indices that are read, tiles that are given."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.rule import Rule
from oxidecopy.rules.verifier_scripts import BY_TEXT, Twins, scripts

_RECORDER: Final = BY_TEXT + "the recorder refuses it first."
_GATHER: Final = """
@ox.pipeline(threads=32)
def kernel(
    cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], rows: ox.GlobalArray[ox.i32, ox.D1], out: ox.GlobalArray[ox.i32, ox.D1]
) -> None:
    tile, copy = cta.shared(src), cta.shared(ox.i32, (8,), align=ox.A128)
    full = cta.barrier().init(1)
    row = cta.load_index(rows, {at}, below=src.shape[0])
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, (row, 0), token)
    full.wait(token)
    cta.fill(copy, 0)
    cta.sync()
    cta.store({to}, copy, (cta.block_idx.x * 8,))

a, rows = dev.array(np.ones((64, 8), np.float32)), dev.array(np.arange(8, dtype=np.int32))
kernel[8](ox.TmaDescriptor.tiled(a, box=(1, 8)), rows, dev.zeros((64,), ox.i32))
"""


def _rule(number: str, title: str, why: str, source: str, shown: Twins | None = None) -> Rule:
    wrong, right = shown if shown is not None else ("", "")
    return Rule(id=number, title=title, error="VerificationError", why=why, source=source, wrong=wrong, right=right)


OPAQUE_RULES: Final[tuple[Rule, ...]] = (
    _rule(
        "OX3086",
        "A value read from memory chooses coordinates and nothing else",
        "What threads wait for, skip and repeat must be the same in every run, or no proof covers it. " + _RECORDER,
        "design: control flow depends on neither data nor timing",
    ),
    _rule(
        "OX3087",
        "Indices are read from a 1-D integer array that the pipeline does not write, below a bound of the launch",
        "All threads must read the same value: a store of the same pipeline could come in between.",
        "bound of the verifier",
        scripts(_GATHER.format(at="cta.block_idx.x", to="<gap>"), "rows", "out"),
    ),
    _rule(
        "OX3088",
        "Indices are read from inside their array",
        "What lies behind an array is other data, or unmapped.",
        "plain loads have no bounds",
        scripts(_GATHER.format(at="cta.block_idx.x<gap>", to="out"), " + 1", ""),
    ),
    _rule(
        "OX3093",
        "The tiles of a counter are shared out once, and visited in plain loops",
        "The proof goes over all numbers of tiles that a CTA may be given: one number, which every role loops over once. " + _RECORDER,
        "bound of the verifier",
    ),
    _rule(
        "OX3094",
        "A pipeline driven by a counter is right for every number of tiles that a CTA may be given",
        "The numbers 0, 1, 2, ... are tried until the state repeats from tile to tile; all larger ones then repeat smaller ones. Where it "
        "never repeats, the larger ones are open. " + BY_TEXT + "schedules and rings are periodic.",
        "bound of the verifier",
    ),
)

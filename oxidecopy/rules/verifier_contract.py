"""Pages of the verifier's rules about products on tensor cores."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.recorder_contract import script
from oxidecopy.rules.rule import Rule
from oxidecopy.rules.verifier_scripts import Twins


def _rule(number: str, title: str, why: str, source: str, shown: Twins | None = None) -> Rule:
    wrong, right = shown if shown is not None else ("", "")
    return Rule(id=number, title=title, error="VerificationError", why=why, source=source, wrong=wrong, right=right)


_OWN: Final = "group.contract(ring, outs, at, steps=1, add=True, epilogue=lambda s, v: s + v, reads=(bias,))"
_RECORDED: Final = "`group.contract` refuses it while it is recorded; it shows on programs that were edited."

CONTRACT_RULES: Final[tuple[Rule, ...]] = (
    _rule(
        "OX3130",
        "The operands and the result of a contraction fit each other and the tensor cores",
        "A descriptor of wgmma says where rows of 128 bytes lie under a 128-byte swizzle; anything else is misread. " + _RECORDED,
        "PTX 9.7.16.5, wgmma: shapes, element types and matrix descriptors",
    ),
    _rule(
        "OX3131",
        "What an epilogue reads is not written by the same launch",
        "Bias and residual are plain loads, which follow no store of another block. The result's own array may be a residual: each of its "
        "elements is read by those who store it, and before.",
        "PTX memory consistency model; see also OX3203",
        Twins(script(rank="D2", line=_OWN, bias="out"), script(rank="D2", line=_OWN, bias="dev.zeros((64, 64), ox.f32)")),
    ),
    _rule(
        "OX3132",
        "A contraction is run by one whole warpgroup",
        "wgmma is an instruction of four consecutive warps, the first of which is a multiple of four. " + _RECORDED,
        "PTX 9.7.16, wgmma: warpgroup",
    ),
    _rule(
        "OX3133",
        "A contraction runs on compute capability 9.0",
        "It is made of wgmma, which sm_90a alone has. Blackwell's tensor cores are driven by tcgen05, with sums in a memory of their own.",
        "PTX 9.7.16, target ISA notes of wgmma",
        Twins(script(device='dev = ox.Device.open("sim", arch=100)\n'), script(device='dev = ox.Device.open("sim", arch=90)\n')),
    ),
)

"""`Explanation`: what a one-liner did and why, as text and as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, final

from typing_extensions import TypeVar, override

from oxidecopy.errors import DeviceCodeError
from oxidecopy.isa.elem import Cast, Input
from oxidecopy.isa.ops import Contract
from oxidecopy.oneliners.ready import Ready
from oxidecopy.program.verified import VerifiedProgram

T = TypeVar("T", default=Any)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation(Generic[T]):
    """What `explain=True` gives: print it.

    Attributes:
        out: the result.
        call: what was asked for.
        why: how the launches came to be chosen, a line for each decision.
        launches: each launch: its pipeline, its grid, and what it moves.
        temporaries: arrays that live while it runs.
        warnings: what the proofs of its launches warn of.
        kept: the plan was ready from a call before.
    """

    out: T
    call: str
    why: tuple[str, ...]
    launches: tuple[str, ...]
    temporaries: tuple[str, ...]
    warnings: tuple[str, ...]
    kept: bool

    @property
    def text(self) -> str:
        """All of it, to read."""
        parts = [self.call]
        for head, lines in (
            ("why", self.why),
            ("launches", self.launches or ("none: there is nothing to do",)),
            ("temporaries", self.temporaries),
            ("the verifier warns", self.warnings),
        ):
            if lines:
                parts += [f"{head}:", *(f"  - {line}" for line in lines)]
        parts.append("ready from a call before" if self.kept else "planned, recorded and verified by this call")
        return "\n".join(parts)

    @override
    def __str__(self) -> str:
        return self.text


def explained(out: T, call: str, ready: Ready, *, kept: bool, notes: tuple[str, ...] = ()) -> Explanation[T]:
    """The explanation of a plan that ran."""
    return Explanation(
        out=out,
        call=call,
        why=(*ready.why, *[word for word in map(_way, ready.verified) if word], *notes),
        launches=ready.launches,
        temporaries=tuple(f"{t.shape} of {t.dtype.__name__}, rows a multiple of 16 bytes apart" for t in ready.temporaries),
        warnings=ready.warnings,
        kept=kept,
    )


def _way(verified: VerifiedProgram) -> str:
    """How a GPU runs a product; "" for what is none, or for what there is no device code."""
    ops = [step.op for step in verified.program.walk() if isinstance(step.op, Contract)]
    if not ops:
        return ""
    from oxidecopy.engines.cuda.code import encode  # only who asks waits for this

    try:
        image = encode(verified)
    except DeviceCodeError:
        return ""
    whole = bool(image.tiles)
    way = (
        "on a GPU the whole program is one kernel"
        if whole
        else f"on a GPU it is left to the interpreter, which costs a few microseconds a tile: {image.left}"
    )
    plain = all(isinstance(op.fn.a if isinstance(op.fn, Cast) else op.fn, Input) for op in ops)
    return way if plain else f"{way}; its epilogue is {'compiled' if whole else 'interpreted'}"

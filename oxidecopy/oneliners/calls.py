"""The one path of all one-liners: a plan that is ready is launched, else one is made; then what was asked for about it is answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from oxidecopy.errors import ArgumentError
from oxidecopy.oneliners.explanation import Explanation, explained
from oxidecopy.oneliners.operands import Array, key_of
from oxidecopy.oneliners.ready import AnyStream, Kept, Number, kept_by, made_ready
from oxidecopy.oneliners.steps import Plan
from oxidecopy.typed.refusal import described, flag, refuse
from oxidecopy.typed.sites import LINELESS, give_line


class Asked(NamedTuple):
    """What the caller wants beside the result."""

    stream: AnyStream
    explain: bool
    tune: bool

    @staticmethod
    def of(stream: AnyStream, explain: object, tune: object) -> Asked:
        """Checked."""
        if stream is not None:
            from oxidecopy.host.pipeline import check_stream

            check_stream(stream)
            _check_key(stream)
        return Asked(stream, flag(explain, "explain"), flag(tune, "tune"))


def _check_key(stream: AnyStream) -> None:
    """Plans are kept by their stream."""
    try:
        hash(stream)
    except TypeError:
        required, fix = "a stream that can be a key of a dict", "give its class __hash__, or pass an ox.Stream"
        refuse(ArgumentError, "OX1051", "this stream cannot be told from others", got=described(stream), required=required, fix=fix)


class Work(NamedTuple):
    """What is to be done.

    Attributes:
        kind: of the one-liner, with all that its plan depends on beside the arrays.
        words: what was asked for, to read.
        arrays: the output, then the inputs.
        numbers: scalars.
        plan: a new plan, for a choice of the tuner or for the one of the measured table (None).
        stable: `kind`, as text that is the same in every process.
        choices: what the tuner may choose from.
        repeatable: doing it again changes nothing, so it may be measured on the output itself.
    """

    kind: object
    words: str
    arrays: tuple[Array, ...]
    numbers: tuple[Number, ...]
    plan: Callable[[Any], Plan]
    stable: str
    choices: Sequence[Any]
    repeatable: bool = True


def perform(work: Work, asked: Asked) -> Explanation[Any] | None:
    """Launches; the explanation, where one is asked for."""
    device: Any = work.arrays[0].device
    notes: tuple[str, ...] = ()
    choice: Any = None
    if asked.tune:
        from oxidecopy.oneliners.tuning import tuned

        choice, notes = tuned(work, asked.stream)
    key, marks = key_of((work.kind, choice), work.arrays, asked.stream)
    ready = kept_by(device).get(key)
    kept = ready is not None and not (asked.stream is not None and ready.capturing)
    if ready is None or not kept:
        ready = made_ready(key, device, work.numbers, asked.stream, lambda: work.plan(choice))
    ready.run(work.arrays, work.numbers, marks)
    marks[0].used = marks[-1].used = True
    if choice is not None and not ready.captured:
        kept_by(device).prefer(key_of((work.kind, None), work.arrays, asked.stream).key, ready)
    return explained(None, work.words, ready, kept=kept, notes=notes) if asked.explain else None


def hot(kind: object, arrays: tuple[Array, ...], numbers: Sequence[Number], stream: AnyStream) -> bool:
    """Launches, where a plan is ready for these arrays; False where none is."""
    device: Any = arrays[0].device
    kept = device.kept.get("oneliners")
    if kept is None:
        return False
    # The marks one by one, as most calls have two or three: a list of them takes three times as long.
    count = len(arrays)
    if count == 2:
        one, two = arrays
        told: tuple[object, ...] = (kind, stream, one.mark, two.mark)
    elif count == 3:
        one, two, three = arrays
        told = (kind, stream, one.mark, two.mark, three.mark)
    else:
        told = (kind, stream, *[a.mark for a in arrays])
    try:
        again = kept.again.get(told)
    except TypeError:  # the stream cannot be a key: it is refused where there is more time
        return False
    if again is not None:
        ready, known = again
        if ready.again(known, arrays, numbers):
            return True
    return _warm(kept, kind, arrays, numbers, stream)


def _warm(kept: Kept, kind: object, arrays: tuple[Array, ...], numbers: Sequence[Number], stream: AnyStream) -> bool:
    """The same for arrays that the plan does not know yet."""
    try:
        key, marks = key_of((kind, None), arrays, stream)
    except LINELESS as error:
        give_line(error)
        raise
    found = kept.get(key)
    if found is None or (stream is not None and found.capturing):
        return False
    found.run(arrays, numbers, marks)
    if marks[0].used and marks[-1].used:  # arrays that live for one call are not worth it
        kept.remember((kind, stream, *marks), found, marks)
    marks[0].used = marks[-1].used = True
    return True

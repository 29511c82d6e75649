"""What a launch costs on the host, and what the first one of a process does, beside other ways to launch a kernel from Python."""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Final

from oxidecopy.bench.children import ChildError, child
from oxidecopy.bench.copies import Copy
from oxidecopy.bench.gpu import WARM_UP, Bench, shaped
from oxidecopy.bench.measure import Absent, Floor, Measured
from oxidecopy.bench.peers import starts, why_absent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from oxidecopy.bench.measure import Row

_LAUNCH_US: Final = 5.0
_FIRST_MS: Final = 300.0
_OURS_MS: Final = 30.0
_LAUNCHES: Final = 20_000
_IN_A_ROW: Final = 500
_CHILDREN: Final = 5  # at most: a child takes seconds
_PEER_CHILDREN: Final = 3


def launch_rows(bench: Bench, runs: int, say: Callable[[str], None]) -> Iterator[Measured]:
    """Host time of a prepared launch, and of the bare driver call that it makes."""
    say("prepared launches")
    copy = Copy(schedule="one-shot", shape=(64, 64), box=(64, 64))
    bound = copy.bind(bench.device, shaped(bench, bench.src, copy), shaped(bench, bench.dst, copy), 1)
    launch = bench.engine.prepare(bound.verify(), bound.bindings, stream=bench.stream)
    with bench.engine.context:
        both = launch, launch.bare()
        pairs = [[_host_us(bench, call) for call in both] for _ in range(runs + WARM_UP)]  # in turns: the clock of a core moves
    ours, bare = zip(*pairs[WARM_UP:], strict=True)
    yield Measured(
        what="prepared launch, host time", unit="us", samples=ours, target=_LAUNCH_US, better="lower",
        of=f"{_LAUNCHES} launches of a one-box copy, {_IN_A_ROW} in a row, Python {sys.version_info.major}.{sys.version_info.minor}; "
        f"cuLaunchKernelEx alone {median(bare):.2f} us in the same run",
        floor=Floor("cuLaunchKernelEx", median(bare) / median(ours)),
    )  # fmt: skip


def _host_us(bench: Bench, call: Callable[[], object]) -> float:
    """Microseconds per call; the stream is emptied often enough that calls never wait for room in its queue."""
    spent = 0.0
    for _ in range(_LAUNCHES // _IN_A_ROW):
        start = perf_counter()
        for _ in range(_IN_A_ROW):
            call()
        spent += perf_counter() - start
        bench.stream.synchronize()
    return 1e6 * spent / _LAUNCHES


# ---- in processes of their own
def first_rows(runs: int, say: Callable[[str], None]) -> Iterator[Row]:
    """The first launch of a process, what of it happens before the driver is asked for anything, and the launches after it."""
    say("first launches")
    count = min(runs, _CHILDREN)
    with TemporaryDirectory(prefix="oxidecopy-bench-") as folder:
        child(starts.OURS, compiled=Path(folder))  # writes the compiled files that an installed package has
        first, ours, later = _numbers(starts.OURS, count, compiled=Path(folder))
    of = "a ring copy in a fresh process, from `@ox.pipeline` to its end, after Device.open; compiled files there"
    yield Measured(what="first launch", unit="ms", samples=first, target=_FIRST_MS, better="lower", of=of)
    yield Measured(what="first launch, recording and proof", unit="ms", samples=ours, target=_OURS_MS, better="lower", of=of)
    for peer in starts.PEERS:
        say(f"first launches, {peer.name}")
        yield from _beside(peer, min(count, _PEER_CHILDREN), first, later)


def _beside(peer: starts.Start, count: int, first: Sequence[float], later: Sequence[float]) -> Iterator[Row]:
    """How many times as long a peer's first launch of a copy takes as ours, and its later ones."""
    whats = f"first launch, {peer.name} to ours", f"launch, host time, {peer.name} to ours"
    try:
        theirs, their_later = _numbers(peer.script, count)
    except ChildError as error:
        for what in whats:
            yield Absent(what=what, why=why_absent(error), of=peer.of)
        return
    yield Measured(
        what=whats[0], unit="x", samples=tuple(median(theirs) / t for t in first), target=None, better="higher",
        of=f"{peer.of}: {median(theirs):.1f} ms from its source to its end, nothing cached; ours {median(first):.1f} ms",
    )  # fmt: skip
    yield Measured(
        what=whats[1], unit="x", samples=tuple(median(their_later) / t for t in later), target=None, better="higher",
        of=f"{peer.of}: {median(their_later):.2f} us a launch; ours, prepared, {median(later):.2f} us",
    )  # fmt: skip


def _numbers(script: str, count: int, *, compiled: Path | None = None) -> list[tuple[float, ...]]:
    """Each number that the script prints, from `count` children."""
    return list(zip(*[map(float, child(script, compiled=compiled)) for _ in range(count)], strict=True))

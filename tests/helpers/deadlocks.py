"""Programs that hang, one for each way to: for verifier, simulator and GPU alike. Those with a race beside it are left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias

from oxidecopy.errors import Diagnostic
from oxidecopy.isa.expr import Const
from oxidecopy.program.deadlock import Deadlock
from tests.helpers.programs import RANK, Builder, add, div, eq, lt, mod

BYTES: Final = 8 * 32 * 4
Make: TypeAlias = Callable[[], Builder]


def _two(*names: str, threads: int = 64, cluster: int = 1) -> Builder:
    """Warp 0 and warp 1 with a leader each, barriers that have one arrival."""
    b = Builder(grid=(cluster, 1, 1), cluster=(cluster, 1, 1), threads=threads)
    for i, name in enumerate((*names, "after")):
        b.bar(name)
        b.init(i, count=1 if i < len(names) else threads, sync=i == len(names))
    if cluster > 1:
        b.cluster_sync()
    return b


def _wait(b: Builder, phase: int = 0, bar: int = 0, tag: str = "wait") -> None:
    """A wait with something behind it: a GPU's code leaves out a wait at the end of a thread."""
    b.wait_phase(phase, bar=bar, tag=tag)
    b.arrive(len(b.bars) - 1)


def missing_arrival() -> Builder:
    b = Builder(grid=(1, 1, 1), threads=64)
    b.bar("done")
    b.bar("after")
    b.init(0, count=64, sync=False)
    b.init(1, count=64)
    with b.scope((0, 32)):
        b.arrive(tag="arrive")
    with b.scope((32, 64)):
        _wait(b)
    return b


def too_few_bytes() -> Builder:
    """16 bytes more are announced than come."""
    b = _two("full")
    b.map(box=(8, 32), dims=(8, 32))
    b.tile(shape=(8, 32))
    with b.elect(0):
        b.arm(BYTES + 16, tag="arm")
        b.g2s(tag="load")
    with b.elect(32):
        _wait(b)
    return b


def wrong_parity() -> Builder:
    """A fresh barrier is waited for as if its first phase were odd's successor: for the phase behind the one that ends."""
    b = _two("full")
    with b.elect(0):
        b.arrive(tag="arrive")
    with b.elect(32):
        b.wait_phase(0)
        _wait(b, 1)
    return b


def opposite_order() -> Builder:
    """Two rings whose stages the roles take in different orders."""
    b = _two("left", "right")
    with b.elect(0):
        b.wait_phase(0, bar=1, tag="wait right")
        b.arrive(0, tag="arrive left")
    with b.elect(32):
        b.wait_phase(0, bar=0, tag="wait left")
        b.arrive(1, tag="arrive right")
    return b


def empty_ring() -> Builder:
    """A producer that waits for a stage to be freed that nobody has had."""
    b = _two("full", "empty")
    with b.elect(0), b.loop(4) as i:
        b.wait_phase(i, bar=1, tag="wait empty")
        b.arrive(0, tag="arrive full")
    with b.elect(32), b.loop(4) as i:
        b.wait_phase(i, bar=0, tag="wait full")
        b.arrive(1, tag="arrive empty")
    return b


def role_never_runs() -> Builder:
    """The producer's condition is false."""
    b = _two("full")
    with b.elect(0), b.when(lt(RANK, 0), tag="when"):
        b.arrive(tag="arrive")
    with b.elect(32):
        _wait(b)
    return b


def no_iterations() -> Builder:
    """The producer's loop is empty."""
    b = _two("full")
    n = b.index("n", 0)
    with b.elect(0), b.loop(n):
        b.arrive(tag="arrive")
    with b.elect(32):
        _wait(b)
    return b


def too_few_iterations() -> Builder:
    """The producer stops one iteration early."""
    b = _two("full", "empty")
    with b.elect(0), b.loop(3) as i:
        b.wait_phase(add(i, -1), bar=1)
        b.arrive(0, tag="arrive")
    with b.elect(32), b.loop(4) as i:
        b.wait_phase(i, bar=0, tag="wait")
        b.arrive(1)
    return b


def missing_peer() -> Builder:
    """Both CTAs' arrivals are counted, only one comes."""
    b = Builder(grid=(2, 1, 1), cluster=(2, 1, 1), threads=64)
    b.bar("both")
    b.bar("after")
    b.init(0, count=2, sync=False)
    b.init(1, count=64)
    b.cluster_sync()
    with b.elect(0), b.when(eq(RANK, 1), tag="when"):
        b.arrive_remote(0, tag="arrive")
    with b.elect(32), b.when(eq(RANK, 0)):
        _wait(b)
    return b


def expect_here_bytes_there() -> Builder:
    """CTA 0 announces what a multicast brings to CTA 1 alone, where nobody does."""
    b = _two("full", cluster=2)
    b.map(box=(8, 32), dims=(8, 32))
    b.tile(shape=(8, 32))
    with b.elect(0), b.when(eq(RANK, 0)):
        b.arm(BYTES, tag="arm")
        b.multicast(2, tag="load")
    with b.elect(32):
        _wait(b)
    return b


def chain_of_three() -> Builder:
    """Three roles in a ring of waits."""
    b = _two("a", "b", "c", threads=96)
    for i, thread in enumerate((0, 32, 64)):
        with b.elect(thread):
            b.wait_phase(0, bar=i, tag=f"wait {i}")
            b.arrive((i + 1) % 3, tag=f"arrive {(i + 1) % 3}")
    return b


def behind_another() -> Builder:
    """One role starves, and a second one waits for it."""
    b = _two("first", "second")
    with b.elect(0):
        b.wait_phase(0, bar=0, tag="root")
        b.arrive(1, tag="arrive")
    with b.elect(32):
        _wait(b, bar=1, tag="behind")
    return b


def stage_of_ring() -> Builder:
    """A ring of two stages whose second one is freed by nobody."""
    b = Builder(grid=(1, 1, 1), threads=64)
    b.bar("full", 2)
    b.bar("empty", 2)
    b.init(0)
    b.init(1)
    with b.elect(0), b.loop(6) as i:
        b.wait_phase(add(div(i, 2), -1), bar=1, i=mod(i, 2), tag="wait empty")
        b.arrive(0, i=mod(i, 2))
    with b.elect(32), b.loop(6) as i:
        b.wait_phase(div(i, 2), bar=0, i=mod(i, 2), tag="wait full")
        with b.when(eq(mod(i, 2), 0)):
            b.arrive(1, i=Const(0), tag="arrive")
    return b


def sync_in_a_branch() -> Builder:
    """A sync of the CTA that one role never comes to, while the other holds what it waits for."""
    b = Builder(grid=(1, 1, 1), threads=64)
    b.bar("full")
    b.init()
    with b.scope((0, 32)):
        b.sync(tag="sync")
    return b


def named_count() -> Builder:
    """A named barrier that counts more threads than come."""
    b = Builder(grid=(1, 1, 1), threads=96)
    with b.scope((0, 64)):
        b.sync(threads=96, number=1, tag="sync")
    return b


def cluster_sync_of_one() -> Builder:
    """One CTA waits before a sync of the cluster for what the other would bring behind it."""
    b = _two("full", cluster=2)
    with b.elect(32), b.when(eq(RANK, 0)):
        _wait(b)
    b.cluster_sync(tag="sync")
    with b.elect(0), b.when(eq(RANK, 1)):
        b.arrive_remote(0, tag="arrive")
    return b


# Those in which only waits on mbarriers matter: the GPU gives these up after its limit, and reports them.
BARRIERS: Final[tuple[Make, ...]] = (
    missing_arrival,
    too_few_bytes,
    wrong_parity,
    opposite_order,
    empty_ring,
    role_never_runs,
    no_iterations,
    too_few_iterations,
    missing_peer,
    expect_here_bytes_there,
    chain_of_three,
    behind_another,
    stage_of_ring,
)
# Those that hang in a sync of threads, which no limit ends on a GPU.
SYNCS: Final[tuple[Make, ...]] = (sync_in_a_branch, named_count, cluster_sync_of_one)


def explanation(diagnostics: tuple[Diagnostic, ...]) -> Deadlock:
    """The one report of a deadlock among some diagnostics: the first, as those behind it come of going on."""
    found = [d.explanation for d in diagnostics if d.explanation is not None]
    assert found
    assert isinstance(found[0], Deadlock)
    return found[0]


def seen_by_a_gpu(deadlock: Deadlock) -> Deadlock:
    """What of a report a GPU can know: of phases their parity."""
    return replace(deadlock, waiting=tuple(replace(wait, phase=None, beside="") for wait in deadlock.waiting))

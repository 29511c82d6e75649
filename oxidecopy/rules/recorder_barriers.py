"""Pages of the recorder's rules about barriers and tokens."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.rule import Rule
from oxidecopy.rules.verifier_scripts import Twins, twins

_MBARRIER: Final = "PTX ISA 9.7.13.15, mbarrier"
_TYPES: Final = "the typestates of ManagedBarrier, after cuda-oxide"


def _rule(number: str, error: str, title: str, why: str, source: str, shown: Twins) -> Rule:
    return Rule(id=number, title=title, error=error, why=why, source=source, wrong=shown.wrong, right=shown.right)


_LOAD: Final = """
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        token = full.<gap>
        src.g2s(leader, tile, (0, 0), token)
    full.wait(token)
"""

BARRIER_RULES: Final[tuple[Rule, ...]] = (
    _rule(
        "OX1001",
        "StateError",
        "A barrier is initialised before it is used",
        "Before `init` its memory holds no mbarrier: arriving faults, and waiting never ends. `init` gives the handle to use.",
        f"{_MBARRIER}.init; {_TYPES}",
        twins(
            """
            bar = cta.barrier()
            <gap>
            """,
            "bar.wait(bar.arrive())",
            "full = bar.init(128)\nfull.wait(full.arrive())",
        ),
    ),
    _rule(
        "OX1002",
        "StateError",
        "A barrier is not used after `inval`",
        "The object is gone, and its memory may be used for something else.",
        f"{_MBARRIER}.inval; {_TYPES}",
        twins(
            """
            full = cta.barrier().init(128)
            <gap>
            """,
            "dead = full.inval()\ndead.arrive()",
            "full.wait(full.arrive())\ndead = full.inval()",
        ),
    ),
    _rule(
        "OX1003",
        "MovedError",
        "A handle that was taken is not used again",
        "`init` and `inval` take the handle they are called on and return the one that stands for the barrier's new state. A second `init` "
        "through the old handle would restart the object under those who wait on it. Type checkers do not see that a name is gone.",
        f"{_MBARRIER}.init: undefined on a live object; {_TYPES}",
        twins(
            """
            bar = cta.barrier()
            full = bar.init(128)
            <gap>
            full.inval()
            """,
            "bar.init(128)",
            "full.wait(full.arrive())",
        ),
    ),
    _rule(
        "OX1004",
        "MovedError",
        "A token is waited for once",
        "It names one phase. A second wait looks again at that phase's parity, which may by then belong to the phase after the next one.",
        f"{_MBARRIER}.try_wait: a phase is known by its parity",
        twins(
            """
            full = cta.barrier().init(128)
            token = full.arrive()
            full.wait(token)
            full.wait(<gap>)
            """,
            "token",
            "full.arrive()",
        ),
    ),
    _rule(
        "OX1005",
        "TokenError",
        "A wait is for a token of the same barrier",
        "Phases of two barriers have nothing to do with each other: the wait would end too early or never.",
        f"{_MBARRIER}.try_wait: a token is of the object it came from",
        twins(
            """
            full = cta.barrier().init(128)
            empty = cta.barrier().init(128)
            <gap>.wait(empty.arrive())
            """,
            "full",
            "empty",
        ),
    ),
    _rule(
        "OX1006",
        "TokenError",
        "A copy is issued with a token whose arrival announced bytes",
        "A barrier that was told of no bytes may end its phase before the copy has landed: whoever reads then reads garbage.",
        f"{_MBARRIER}: expect-tx before complete-tx",
        twins(_LOAD, "arrive()", "arrive_expect_tx(leader, tile)"),
    ),
    _rule(
        "OX1007",
        "TokenError",
        "A token stays in its loop iteration and its role",
        "A recorded loop has one body for all iterations, so a token from outside would stand for another phase in each of them, and the "
        "next iteration could not be given this one's. Only copies may use one from outside of their loop: all of them count for the one "
        "phase that it names. Arrays of barriers and numbered phases say what is meant.",
        "the recorder: a loop's body is recorded once",
        twins(
            """
            full = cta.barrier().init(128)
            <gap>
            """,
            "token = full.arrive()\nfor i in cta.range(n):\n    full.wait(token)",
            "for i in cta.range(n):\n    full.wait(full.arrive())",
        ),
    ),
    _rule(
        "OX1008",
        "StateError",
        "Bytes are announced to barriers that count them",
        "The kind says what a barrier is for. One for threads only, or for the tensor cores, should have no bytes to wait for.",
        _TYPES,
        twins(
            """
            tile = cta.shared(src)
            full = cta.barrier(kind=<gap>).init(1)
            with cta.elect() as leader:
                token = full.arrive_expect_tx(leader, tile)
                src.g2s(leader, tile, (0, 0), token)
            full.wait(token)
            """,
            "ox.GeneralBarrier",
            "ox.TmaBarrier",
        ),
    ),
    _rule(
        "OX1039",
        "RecordError",
        "A phase is told of 0 to 1,048,575 bytes",
        "The count of an mbarrier's bytes has 20 bits; beyond them it wraps.",
        f"{_MBARRIER}: tx-count",
        twins(_LOAD, "arrive_expect_tx(leader, tile.nbytes * 64)", "arrive_expect_tx(leader, tile.nbytes)"),
    ),
    _rule(
        "OX1041",
        "StateError",
        "A barrier array ends as a whole",
        "Its elements are borrowed: `bars[i]` may be any of them, so no single one can be known to be gone.",
        _TYPES,
        twins(
            """
            bars = cta.barriers(2).init(128)
            bars[0].wait(bars[0].arrive())
            <gap>.inval()
            """,
            "bars[0]",
            "bars",
        ),
    ),
    _rule(
        "OX1044",
        "RecordError",
        "A barrier counts 1 to 1,048,575 arrivals",
        "The count of an mbarrier's arrivals has 20 bits, and 0 is undefined.",
        f"{_MBARRIER}.init",
        twins(
            """
            full = cta.barrier().init(<gap>)
            full.wait(full.arrive())
            """,
            "0",
            "128",
        ),
    ),
    _rule(
        "OX1054",
        "StateError",
        "A barrier is initialised once",
        "A second `init` restarts the object: threads that wait for the phase that was under way may wait for ever.",
        f"{_MBARRIER}.init: undefined on a live object; {_TYPES}",
        twins(
            """
            full = cta.barrier().init(128)
            <gap>
            full.wait(full.arrive())
            """,
            "full = full.init(128)",
            "",
        ),
    ),
    _rule(
        "OX1055",
        "TokenError",
        "A wait takes what an arrival gave",
        "A barrier goes through many phases: a wait must say which one is meant.",
        f"{_MBARRIER}.try_wait",
        twins(
            """
            full = cta.barrier().init(128)
            full.wait(<gap>)
            """,
            "full",
            "full.arrive()",
        ),
    ),
    _rule(
        "OX1070",
        "RecordError",
        "A parity is 0 or 1",
        "The hardware looks at one bit; another number is the count of a phase, which `wait_phase` takes.",
        f"{_MBARRIER}.try_wait.parity",
        twins(
            """
            full = cta.barrier().init(128)
            full.arrive()
            full.wait_parity(<gap>)
            """,
            "2",
            "0",
        ),
    ),
)

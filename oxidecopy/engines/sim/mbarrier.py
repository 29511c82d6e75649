"""One mbarrier as an exact state machine: 64 bits of state plus the full phase counter, which the hardware does not have.

PTX 9.7.13.15; ranges, faults and the layout of the word were measured on an H200. An object that was never initialised, or whose word
was written over, is whatever its 64 bits say: `from_word` reads them, `word` writes them. Only parity survives a trip through the word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from oxidecopy.engines.sim.faults import LAUNCH_FAILED, Fault
from oxidecopy.isa.limits import MBARRIER_COUNT_MAX, MBARRIER_TX_MAX

if TYPE_CHECKING:
    from oxidecopy.engines.sim.agents import Agent
    from oxidecopy.engines.sim.clocks import BarrierClock

COUNT_MOD: Final = 1 << 20
TX_MOD: Final = 1 << 21
TX_LOW: Final = -MBARRIER_TX_MAX
TX_HIGH: Final = 1 << 20
ALWAYS_ZERO: Final = 1 << 42 | 1  # bits that no live object has set


@final
class Mbarrier:
    """State of one barrier: `phase` counts completions, `tx` is announced minus delivered bytes, `waiters` are agents to wake."""

    __slots__ = ("address", "broken", "clock", "expected", "live", "pending", "phase", "tx", "waiters")

    def __init__(self, address: int) -> None:
        self.address = address
        self.waiters: list[Agent] = []
        self.clock: BarrierClock | None = None  # what hazard checking keeps beside the state
        self.live = self.broken = False
        self.phase = self.pending = self.tx = self.expected = 0

    # ---- the 64-bit word
    def load_word(self, word: int) -> None:
        """Takes the state that `word` encodes, initialised or not."""
        self.live = False
        self.broken = bool(word & ALWAYS_ZERO)
        self.phase = word >> 63 & 1
        self.pending = -(word >> 43) % COUNT_MOD
        delivered = word >> 21 & (TX_MOD - 1)
        self.tx = -(delivered - TX_MOD if delivered >= TX_MOD // 2 else delivered)
        self.expected = -(word >> 1) % COUNT_MOD

    @property
    def word(self) -> int:
        """The object's 64 bits as the hardware keeps them."""
        pending, expected = -self.pending % COUNT_MOD, -self.expected % COUNT_MOD
        return (self.phase & 1) << 63 | pending << 43 | (-self.tx % TX_MOD) << 21 | expected << 1

    # ---- operations
    def init(self, count: int) -> None:
        """Counts outside 1 .. 2^20-1 are not refused: they spill over the fields of the word as on the hardware."""
        if 0 < count < COUNT_MOD:
            self.phase = self.tx = 0
            self.pending = self.expected = count
            self.broken, self.live = False, True
            return
        value = (COUNT_MOD - count) % (1 << 32)
        self.load_word((value << 43) % (1 << 64) | (value << 1) % (1 << 32))
        self.live = True

    def expect_tx(self, nbytes: int) -> None:
        self._move_tx(nbytes, 1)

    def complete_tx(self, nbytes: int) -> None:
        self._move_tx(nbytes, -1)

    def arrive(self, threads: int) -> int:
        """`threads` threads arrive one after the other; returns the phase that the last arrival counted in."""
        phase = self.phase
        if threads <= self.pending and not self.broken:  # all in one phase
            self.pending -= threads
            if not self.pending and threads:
                self._test()
            return phase
        self._usable()
        while threads:
            phase = self.phase
            step = min(threads, self.pending) or threads
            self.arrive_count(step)
            threads -= step
        return phase

    def arrive_count(self, count: int) -> None:
        """One arrival of `count` (the PTX operand)."""
        self._usable()
        if count > self.pending:
            raise self._fault("more arrivals than the phase still needs", f"{count} with {self.pending} pending")
        if count:
            self.pending -= count
            self._test()

    def arrive_expect_tx(self, nbytes: int, threads: int) -> int:
        phase = self.phase
        for _ in range(threads):
            self.expect_tx(nbytes)
            phase = self.arrive(1)
        return phase

    def arrive_drop(self, threads: int) -> int:
        phase = self.phase
        for _ in range(threads):
            self._usable()
            self.expected = (self.expected - 1) % COUNT_MOD
            phase = self.arrive(1)
        return phase

    def is_over(self, parity: int) -> bool:
        """test_wait.parity: true when the phase of that parity, current or just before, is over."""
        self._usable()
        return self.phase & 1 != parity & 1

    # ---- inside
    def _usable(self) -> None:
        if self.broken:
            raise self._fault("the word of this barrier was never a barrier's", "memory without mbarrier.init")

    def _move_tx(self, nbytes: int, sign: int) -> None:
        if self.broken:
            self._usable()
        if not 0 <= nbytes <= MBARRIER_TX_MAX:
            raise self._fault("byte count of one operation out of range", str(nbytes))
        tx = self.tx + sign * nbytes
        if not TX_LOW <= tx <= TX_HIGH:
            raise self._fault("announced minus delivered bytes left its range", str(tx))
        self.tx = tx
        if nbytes and not tx:
            self._test()

    def _test(self) -> None:
        if self.pending == 0 and self.tx == 0:
            self.phase += 1
            self.pending = self.expected

    def _fault(self, what: str, got: str) -> Fault:
        return Fault(
            LAUNCH_FAILED,
            f"mbarrier at shared address {self.address:#x}: {what}",
            got=got,
            required=f"at most the pending arrivals, and bytes within +-{MBARRIER_COUNT_MAX}",
            fix="initialise the barrier with the number of arrivals per phase, and announce exactly the bytes that land",
        )

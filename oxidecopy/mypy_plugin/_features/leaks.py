"""Leaks: a token that nobody waits for, a Ready barrier that nobody invalidates, a commit group that nobody waits for (`oxidecopy-leak`).

What is passed on, returned, stored, captured or compared belongs to somebody else from there on, and is no leak. A path that raises owes
nothing: recording ends with it. Loops are taken to run at least once; what one of their turns uses up of what came into them is used up.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, final

from mypy.nodes import Context, Var
from mypy.types import Instance, ProperType

from oxidecopy.mypy_plugin import _codes, _debts, _names
from oxidecopy.mypy_plugin._debts import Debt
from oxidecopy.mypy_plugin._domain import State, Value, Values
from oxidecopy.mypy_plugin._types import fullname, is_owned, signatures

if TYPE_CHECKING:
    from oxidecopy.mypy_plugin._calls import Call
    from oxidecopy.mypy_plugin._flow import Flow
    from oxidecopy.mypy_plugin._values import Core

_KINDS: Final[dict[str, str]] = {
    _names.TOKEN: _debts.TOKEN,
    _names.TX_TOKEN: _debts.TOKEN,
    _names.BARRIER: _debts.BARRIER,
    _names.BARRIERS: _debts.BARRIER,
}


@final
class Ledger:
    """What one function's debts need beyond a state: what is true of the function as a whole."""

    def __init__(self) -> None:
        self.used: list[set[Value]] = []  # what the turns of the loops around use up, by loop
        self.ever_used: set[Context | None] = set()  # sites whose value some path uses up
        self.excused: set[Context | None] = set()  # sites of values that an error was reported of
        self.elsewhere: set[Value] = set()  # barriers that others may wait on
        self.numbered: set[Value] = set()  # barriers that are waited for by number
        self.captured: set[Var] = set()  # variables that functions inside this one know
        self.waits_for_groups = False
        self.facts_of: dict[Var, set[str]] = {}  # conditions in which a variable occurs


# ---- what makes a debt, what settles it
def token_made(flow: Flow, call: Call, state: State) -> None:
    """`bar.arrive()`; one that is not given a name is an arrival that nobody here wants to wait for."""
    _owe(flow, call, state, _debts.TOKEN)


def barrier_made(flow: Flow, call: Call, state: State) -> None:
    """`bar.init(1)`."""
    _owe(flow, call, state, _debts.BARRIER)


def _given_away(flow: Core, call: Call, state: State) -> None:
    """A function whose result is declared `Owned[...]` gives it away for good."""
    if not any(is_owned(signature.ret_type) for signature in signatures(call.callee.node)):
        return
    kind = _KINDS.get(fullname(call.result.type)) if call.result is not None else None
    if kind is not None and call.result is not None and (kind != _debts.BARRIER or _state(call.result.type) == _names.READY):
        _owe(flow, call, state, kind)


def _state(t: ProperType | None) -> str:
    """The state of a barrier's type."""
    return fullname(t.args[0]) if isinstance(t, Instance) and t.args else ""


def _owe(flow: Core, call: Call, state: State, kind: str) -> None:
    if flow.ledger is None or call.result is None:
        return
    if not _refused(flow, call):
        state.owed = {**state.owed, call.result: Debt(kind, frozenset({state.facts}))}


def _refused(flow: Core, call: Call) -> bool:
    """An error was reported of what it is called on, by the pass or, for a second `init`, by mypy."""
    on = call.callee.receiver
    if on is None:
        return False
    again = call.callee.fullname.rpartition(".")[2].startswith("init") and _state(flow.type_of(on)) != _names.UNINIT
    return again or any(flow.reports.said(code, on) for code in (_codes.MOVED, _codes.SCOPE))


def settle(flow: Core, values: Values, state: State) -> None:
    """These are used up: one of them for certain, each of them as far as anybody can tell."""
    ledger = flow.ledger
    if ledger is None or not state.owed:
        return
    gone = [value for value in values if value in state.owed]
    for value in gone:
        ledger.ever_used.add(value.node)
        if state.owed[value].carried:
            for used in ledger.used:
                used.add(value)
    drop(gone, state)


def drop(values: Iterable[Value], state: State) -> None:
    """Nothing is owed of these."""
    gone = set(values)
    if gone:
        state.owed = {value: debt for value, debt in state.owed.items() if value not in gone}


def escape(flow: Core, values: Values, state: State) -> None:
    """Somebody else has these, and what they hold."""
    ledger = flow.ledger
    if ledger is None or not values:
        return
    reached = flow.reachable(flow.stands_for(values, state), state)
    for value in reached:
        if fullname(value.type) in _names.BARRIER_CLASSES:
            ledger.elsewhere.add(value)
        if value in state.owed and state.owed[value].carried:
            for used in ledger.used:
                used.add(value)
    drop(reached & state.owed.keys(), state)


def discarded(flow: Core, values: Values, state: State) -> None:
    """A statement of one expression: an arrival whose token nobody takes is one that nobody here wants to wait for."""
    if flow.ledger is not None and state.owed:
        held = flow.reachable([value for value in values if value.whole], state)  # `[bar.arrive() for bar in bars]`
        drop({value for value in (*values, *held) if value in state.owed and state.owed[value].kind == _debts.TOKEN}, state)


def excuse(flow: Core, values: Values) -> None:
    """An error was reported of these; more is not said."""
    if flow.ledger is not None:
        flow.ledger.excused.update(value.node for value in values)


# ---- calls
def passed(flow: Core, call: Call, called: Values, state: State) -> None:
    """What the arguments of a call are to others. The library's own calls take what their signatures say, and keep nothing else."""
    if flow.ledger is None:
        return
    name = call.callee.fullname
    if name.startswith(_names.PREFIX):
        if name.startswith(_names.TILES):
            _groups_elsewhere(state)
        return
    if name in _names.PASS_ON or name == "builtins.len":
        return
    if name.partition(".")[0] not in _names.CONTAINERS:
        _groups_elsewhere(state)
    own = call.held and all(value.whole for value in call.held)
    if own and name.rpartition(".")[2] in _names.ADDING and name.partition(".")[0] in _names.CONTAINERS:
        return  # it can still be reached here
    made_of = call.result is not None and call.result.whole  # a dataclass: it holds them
    _given_away(flow, call, state)
    for values in (*(() if made_of else call.actuals), call.held, called):
        escape(flow, values, state)


def waited_by_number(flow: Flow, call: Call, state: State) -> None:
    """`bar.wait_phase(k)`: whoever does this need not wait for tokens of the barrier."""
    if flow.ledger is not None:
        flow.ledger.numbered.update(flow.stands_for(call.held, state))


def token_asked(flow: Flow, call: Call, state: State) -> None:
    """`bar.try_wait(token)`: its answer may be all that is wanted."""
    for _, values in (pair for pairs in call.arguments.values() for pair in pairs):
        settle(flow, flow.stands_for(values, state), state)


def token_lent(flow: Flow, call: Call, state: State) -> None:
    """A copy is issued with the token."""
    for _, values in call.arguments.get("token", []):
        for value in values:
            debt = state.owed.get(value)
            if debt is not None and not debt.lent:
                state.owed = {**state.owed, value: Debt(debt.kind, debt.paths, debt.carried, lent=True)}


# ---- commit groups
def group_closed(flow: Flow, call: Call, state: State) -> None:
    """`leader.commit_group()` by a leader of a block of this function. The newest debt stands last."""
    if flow.ledger is None or not call.held or not all(value.known_site for value in call.held) or _refused(flow, call):
        return
    group = flow.value(("group", call.expr), lambda: Value(_debts.GROUP, None, call.expr, known_site=True))
    state.owed = {**{v: d for v, d in state.owed.items() if v is not group}, group: Debt(_debts.GROUP, frozenset({state.facts}))}


def groups_waited(flow: Flow, call: Call, state: State) -> None:
    """`leader.wait_group(n)`: all but the newest `n`."""
    if flow.ledger is not None:
        flow.ledger.waits_for_groups = True
    groups = {value: None for value, debt in state.owed.items() if debt.kind == _debts.GROUP}
    if not groups:
        return
    number = next((flow.constant(e) for name in ("n", "#0") for e, _ in call.arguments.get(name, [])), None)
    stay = len(groups) if number is None else number  # how many are left is known to the verifier
    finished = list(groups)[: len(groups) - stay] if number is not None else list(groups)
    settle(flow, dict.fromkeys(finished), state)


def _groups_elsewhere(state: State) -> None:
    """Others may wait for them."""
    drop({value for value, debt in state.owed.items() if debt.kind == _debts.GROUP}, state)

"""The pass over one function, or over a module's own statements."""

from __future__ import annotations

from typing import final

from mypy.nodes import Expression, FuncItem, MypyFile, Var
from mypy.types import CallableType, Type, get_proper_type
from typing_extensions import override

from oxidecopy.mypy_plugin import _messages, _names
from oxidecopy.mypy_plugin._calls import Call
from oxidecopy.mypy_plugin._config import DEFAULTS, Config
from oxidecopy.mypy_plugin._domain import State, Value
from oxidecopy.mypy_plugin._features import calls_of, copies, leak_report, leaks
from oxidecopy.mypy_plugin._statements import Statements
from oxidecopy.mypy_plugin._types import Tracking, is_owned, shown


@final
class Flow(Statements):
    """One function with everything that the parts of the pass know of it."""

    def __init__(
        self, module: str, types: dict[Expression, Type], tracking: Tracking, outer: frozenset[Var], function: FuncItem | None
    ) -> None:
        super().__init__(module, types, tracking, outer, function)
        self.loop_exits = []
        self.returns = []
        self.raising = []
        self.pinned = []
        self.chains = {}
        self.shared_plans = {}
        self.shared_methods = {}
        self._plans = {}
        self._callees = {}
        self.config: Config = DEFAULTS
        self._tree: MypyFile | None = None

    def look_for_leaks(self, tree: MypyFile, config: Config) -> None:
        """As the config says."""
        self.config, self._tree = config, tree
        if self.function is not None and (config.leaks, config.leaks_at_end) != ("off", "off"):
            self.ledger = leaks.Ledger()

    @override
    def on_call(self, call: Call, state: State) -> None:
        for act in calls_of(call.callee.fullname):
            act(self, call, state)
        if not call.callee.fullname.startswith(_names.PREFIX):
            copies.lent(self, call, state)

    def run_function(self, function: FuncItem) -> None:
        """Parameters that are not Owned are borrowed; what was taken out of them must be back at the end."""
        state = State()
        signature = function.type if isinstance(function.type, CallableType) else None
        for i, argument in enumerate(function.arguments):
            variable = argument.variable
            self.locals.add(variable)
            t = signature.arg_types[i] if signature is not None and i < len(signature.arg_types) else variable.type
            if t is None or not (is_owned(t) or self.tracked(t)):
                continue
            why = "" if is_owned(t) else _messages.borrowed_parameter(variable.name, shown(t))
            state.names[variable] = {self._parameter(variable, t, why): None}
        self._finish(self.run(function.body.body, state))

    def _parameter(self, variable: Var, t: Type, why: str) -> Value:
        return self.value(("parameter", variable), lambda: Value(variable.name, get_proper_type(t), borrowed=why))

    def run_lambda(self, function: FuncItem) -> None:
        """A lambda's parameters have no types of their own here."""
        self._finish(self.run(function.body.body, State()))

    def run_module(self, tree: MypyFile) -> None:
        """The statements of the module."""
        self.run(tree.defs, State())

    def _finish(self, end: State | None) -> None:
        ends = [state for state in (*self.returns, end) if state is not None]
        if self.ledger is not None and self._tree is not None:
            leak_report.report(self, ends, self._tree)
        out = self.any_of(ends)
        if out is not None:
            self.check_left(out)

"""Runs the pass over the functions of a checked file that have anything to do with tracked values.

It fails closed: whatever goes wrong inside is one error at the function, never a crash of mypy and never silence.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from mypy.checker import TypeChecker
from mypy.nodes import Context, Expression, FuncDef, FuncItem, LambdaExpr, MypyFile, TypeInfo, Var
from mypy.types import CallableType, Overloaded, ProperType, Type, get_proper_type

from oxidecopy.mypy_plugin import _codes, _messages
from oxidecopy.mypy_plugin._calls import Method, Plan, PlanKey
from oxidecopy.mypy_plugin._config import DEFAULTS, Config
from oxidecopy.mypy_plugin._features.literals_entry import METHODS, literal_problems
from oxidecopy.mypy_plugin._flow import Flow
from oxidecopy.mypy_plugin._index import NO_INDEX, Index
from oxidecopy.mypy_plugin._types import Tracking

_CALLABLE: Final = (CallableType, Overloaded)


class Driver:
    """One file. `functions` counts what was analysed, `done` is what was looked at."""

    def __init__(self, checker: TypeChecker, tree: MypyFile, *, everything: bool = False, config: Config = DEFAULTS) -> None:
        self.checker = checker
        self.tree = tree
        self.types: dict[Expression, Type] = checker._type_maps[0]  # noqa: SLF001  # mypy has no door to it; the canary test watches
        self.tracking = Tracking(everything=everything)
        self.config = config
        self.functions = 0
        self.done: set[FuncItem | None] = set()
        self._lines: list[int] = []
        self._around: tuple[FuncItem, ...] = ()  # the function in hand is inside these
        self._plans: dict[PlanKey, Plan] = {}
        self._methods: dict[tuple[TypeInfo, str], Method | None] = {}
        self._index = NO_INDEX

    def file(self, but: Collection[FuncItem | None] = ()) -> None:
        """The module's statements and every function in it; None stands for the module's statements."""
        self.done.update(but)
        if self._scan() or self.tracking.everything:
            self._nested(self._module(quiet=None in but))
        self.done.add(None)

    def some(self, functions: Iterable[FuncItem | None], but: Collection[FuncItem | None] = ()) -> None:
        """These top-level functions with those inside them; None stands for the module's statements."""
        self.done.update(but)
        if not self._scan() and not self.tracking.everything:
            return
        for function in functions:
            if function is not None:
                self._one(function, frozenset())
            elif None not in self.done:
                self.done.add(None)
                self._module()

    def _module(self, *, quiet: bool = False) -> Flow:
        flow = self._flow(None, frozenset())
        flow.reports.quiet = quiet
        place = self.tree.defs[0] if self.tree.defs else self.tree
        self._guarded(flow, lambda: self._numbers(flow, None), "the module's statements", place)
        self._guarded(flow, lambda: flow.run_module(self.tree), "the module's statements", place)
        return flow

    # ---- where there is something to do
    def _scan(self) -> bool:
        """Notes the lines with expressions of interest."""
        interesting = self.tracking.interesting
        self._index = Index(self.types, METHODS)
        lines: set[int] = set()
        rest: list[tuple[int, ProperType]] = []
        # What takes something comes first: it may say of a class that it is tracked.
        for e, t in self.types.items():
            p = get_proper_type(t)
            if not isinstance(p, _CALLABLE):
                rest.append((e.line, p))
            elif interesting(p):
                lines.add(e.line)
        known = -1
        while known != len(self.tracking.extra):  # again when a class turned out to be taken after all
            known = len(self.tracking.extra)
            for line, p in rest:
                if line not in lines and interesting(p):
                    lines.add(line)
        self._lines = sorted(lines)
        return bool(lines)

    def _of_interest(self, function: FuncItem) -> bool:
        if self.tracking.everything:
            return True
        at = bisect_left(self._lines, function.line)
        return at < len(self._lines) and self._lines[at] <= _end(function)

    # ---- running
    def _flow(self, function: FuncItem | None, outer: frozenset[Var]) -> Flow:
        flow = Flow(self.tree.fullname, self.types, self.tracking, outer, function)
        flow.shared_plans, flow.shared_methods, flow.index = self._plans, self._methods, self._index
        flow.look_for_leaks(self.tree, self.config)
        return flow

    def _nested(self, flow: Flow) -> None:
        for function, outer in flow.nested.items():
            self._one(function, outer)

    def _one(self, function: FuncItem, outer: frozenset[Var]) -> None:
        if function in self.done:
            return
        self.done.add(function)
        flow = self._flow(function, outer)
        what = "this lambda" if isinstance(function, LambdaExpr) else f'"{function.name}"'
        self._guarded(flow, lambda: self._numbers(flow, function), what, function)
        if not self._of_interest(function):
            return
        self.functions += 1
        run = flow.run_lambda if isinstance(function, LambdaExpr) else flow.run_function
        self._guarded(flow, lambda: run(function), what, function)
        around, self._around = self._around, (*self._around, function)
        self._nested(flow)
        self._around = around

    @contextmanager
    def _within(self, functions: Iterable[FuncItem]) -> Iterator[None]:
        """Errors belong to their function: the daemon forgets them when it checks the function again."""
        scope = self.checker.tscope
        with ExitStack() as stack:
            for function in functions:
                if not isinstance(function, FuncDef):
                    continue
                if function.info:
                    stack.enter_context(scope.class_scope(function.info))
                stack.enter_context(scope.function_scope(function))
            yield

    def _numbers(self, flow: Flow, function: FuncItem | None) -> None:
        """Literal arithmetic that needs no flow."""
        for problem in literal_problems(self.tree, function, self.types, self.tree.fullname, self._index):
            flow.reports.say(problem.code, problem.node, problem.message, *problem.notes)

    def _guarded(self, flow: Flow, act: Callable[[], None], what: str, node: Context) -> None:
        """A surprise is an error of its own, at its function; what was found before it is reported too."""
        text = ""
        try:
            act()
        except Exception as error:  # any surprise at all, by mypy's internals or our mistake, must not end the user's check
            text = _messages.surprise(what, f"{type(error).__name__}: {error}")
        if not text and flow.reports.empty:
            return
        with self._within((*self._around, flow.function) if flow.function is not None else ()):
            if text:
                self.checker.fail(text, node, code=_codes.PLUGIN)
            flow.reports.emit(self.checker)


def _end(function: FuncItem) -> int:
    return function.end_line or function.line

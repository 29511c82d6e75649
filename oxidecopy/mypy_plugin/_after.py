"""Asks mypy's checker to call the plugin when it has visited everything else: the file, or what the daemon has it check again.

Mypy has no hook for this that all versions and all ways of running it know. But a function that it could not finish (it needs a type from
further down) is visited once more behind the rest, and calls are shown to plugins: so a call of ours is put behind the last of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from mypy.checker import DeferredNode, TypeChecker
from mypy.nodes import GDEF, CallExpr, Context, Decorator, ExpressionStmt, FuncItem, MypyFile, NameExpr, OverloadedFuncDef, Var
from mypy.types import CallableType, NoneType

CALL: Final = "oxidecopy.mypy_plugin.checked"  # the full name of the function that is called; there is none


@final
class Waiting:
    """What has been seen of one file since the pass ran over it.

    Attributes:
        functions: top-level functions with something of interest; None for the module's own statements.
        whole: mypy visits the whole file, so that what was seen is not all that there is to look at.
        done: functions that the pass has been over, while others are still to come.
    """

    def __init__(self, checker: TypeChecker) -> None:
        self.checker = checker
        self.functions: dict[FuncItem | None, None] = {}
        self.whole = not checker.options.fine_grained_incremental
        self.done: set[FuncItem | None] = set()
        self._calls: dict[Context, list[DeferredNode]] = {}  # ours that are not visited yet, and the list in which each waits

    @property
    def everywhere(self) -> bool:
        """Is this round over the whole file? With parallel workers, and in some versions, its statements come first and functions later."""
        return self.whole and self.checker.recurse_into_functions

    @property
    def enough(self) -> bool:
        """All that is still to be seen will be looked at, for our call waits to be visited."""
        return bool(self.functions and self._calls) and self.everywhere and not self.checker.options.fine_grained_incremental

    def see(self) -> None:
        """Something of interest is being visited now: the pass is wanted."""
        checker = self.checker
        self.functions[checker.scope.top_level_function()] = None
        self.whole |= checker.pass_num == 0  # the daemon's visits of single functions begin with 1
        self.ask()

    def ask(self) -> None:
        """Puts our call behind everything that waits to be visited."""
        queue = self.checker.deferred_nodes
        if not (queue and _ours(queue[-1])):
            self._call(queue)

    def last(self, call: Context) -> bool:
        """Is this call of ours the last thing that mypy visits in this round? If not, there will be another one that is."""
        queue = self._calls.pop(call)
        if _ours(queue[-1]):
            return _holds(queue[-1], call)
        self._call(queue)  # mypy is walking this very list
        return False

    def unfinished(self) -> set[FuncItem]:
        """Functions that mypy will visit once more."""
        return {function for deferred in self.checker.deferred_nodes for function in _functions(deferred.node)}

    def _call(self, queue: list[DeferredNode]) -> None:
        call, file = _visit(self.checker)
        self._calls[call] = queue
        queue.append(DeferredNode(file, None))  # type: ignore[arg-type]  # statements of a file, which mypy visits too


def _functions(node: object) -> Iterator[FuncItem]:
    if isinstance(node, OverloadedFuncDef):
        for item in node.items:
            yield from _functions(item)
    elif isinstance(node, Decorator):
        yield node.func
    elif isinstance(node, FuncItem):
        yield node


def _ours(deferred: DeferredNode) -> bool:
    return isinstance(deferred.node, MypyFile)


def _holds(deferred: DeferredNode, call: Context) -> bool:
    file: object = deferred.node
    return isinstance(file, MypyFile) and isinstance(file.defs[0], ExpressionStmt) and file.defs[0].expr is call


def _visit(checker: TypeChecker) -> tuple[CallExpr, MypyFile]:
    """A call, and a file that has nothing else in it."""
    function = Var("checked", CallableType([], [], [], NoneType(), checker.named_type("builtins.function"), name="checked"))
    name = NameExpr("checked")
    name.kind, name.node, name.fullname = GDEF, function, CALL
    call = CallExpr(name, [], [], [])
    return call, MypyFile([ExpressionStmt(call)], [])

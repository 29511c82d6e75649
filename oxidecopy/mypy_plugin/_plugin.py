"""The plugin's class: finds out which files have to do with us, and runs the pass over them when mypy has checked them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

from mypy.checker import TypeChecker
from mypy.lookup import lookup_fully_qualified
from mypy.nodes import Context, FuncItem, MypyFile
from mypy.options import Options
from mypy.plugin import AttributeContext, FunctionContext, MethodContext, Plugin, ReportConfigContext
from mypy.types import Type
from mypy.version import __version__
from typing_extensions import override

from oxidecopy.mypy_plugin import _codes, _config, _messages, _names
from oxidecopy.mypy_plugin._types import takes

_DONE: Final = 0  # instead of the number of the visit that is awaited


class OxidecopyPlugin(Plugin):
    """Calls of the library, and of functions that take something, tell which files to look at."""

    everything: ClassVar[bool] = False  # a test's plugin tracks every class of every file
    functions: ClassVar[int] = 0  # how many functions were analysed in this process

    def __init__(self, options: Options, version: str = __version__) -> None:
        super().__init__(options)
        self.config = _config.read(options.config_file)
        self.version = version
        self.tested = _config.tested(version)
        self._data = [_config.digest(), self.config.leaks, self.config.unsupported_mypy, self.tested]
        self._seen: dict[str, TypeChecker] = {}  # by path: files of an import cycle are checked in turns
        self._told_version = False
        self._told_config = False
        self._visits: dict[str, tuple[TypeChecker, dict[FuncItem, int]]] = {}

    @override
    def report_config_data(self, ctx: ReportConfigContext) -> Any:
        return self._data  # asked for once per module

    # ---- hooks: they only look
    @override
    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        return self._see if self.everything or fullname.startswith(_names.PREFIX) or self._takes(fullname) else None

    @override
    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        return self._see if self.everything or fullname.startswith(_names.PREFIX) or self._takes(fullname) else None

    @override
    def get_attribute_hook(self, fullname: str) -> Callable[[AttributeContext], Type] | None:
        return self._see_attribute if self.everything or fullname.startswith(_names.PREFIX) else None

    def _node(self, fullname: str) -> object:
        if self._modules is None or fullname.startswith(("builtins.", "typing.")):
            return None
        found = lookup_fully_qualified(fullname, self._modules)
        return found.node if found is not None else None

    def _takes(self, fullname: str) -> bool:
        """A function, method or constructor with an Owned parameter."""
        return takes(self._node(fullname))

    def _see(self, ctx: FunctionContext | MethodContext) -> Type:
        self._look(ctx.api, ctx.context)
        return ctx.default_return_type

    def _see_attribute(self, ctx: AttributeContext) -> Type:
        self._look(ctx.api, ctx.context)
        return ctx.default_attr_type

    def _look(self, api: object, context: Context) -> None:
        if not isinstance(api, TypeChecker):
            return
        self._seen[api.path] = api
        if self.options.fine_grained_incremental and self.tested:
            self._revisit(api, context)

    # ---- the pass
    @override
    def get_additional_indirect_deps(self, file: MypyFile) -> set[str]:
        checker = self._seen.pop(file.path, None)
        # Nobody sees what is said of files that mypy checks silently: packages that were installed, ours among them.
        shown = checker is not None and (self.everything or checker.path not in checker.errors.ignored_files)
        if checker is not None and shown and checker.tree is file:
            self._analyse(checker, file)
        return set()

    def _analyse(self, checker: TypeChecker, tree: MypyFile) -> None:
        checker.errors.set_file(checker.path, tree.fullname, options=checker.options, scope=checker.tscope)
        with checker.tscope.module_scope(tree.fullname):
            self._tell(checker)
            if not self.tested:
                return
            from oxidecopy.mypy_plugin._driver import Driver  # the pass: where nothing has changed, nobody waits for its import

            driver = Driver(checker, tree, everything=self.everything)
            if self.options.fine_grained_incremental:
                driver.module_level()  # functions were looked at while they were checked
            else:
                driver.file()
            type(self).functions += driver.functions

    def _tell(self, checker: TypeChecker) -> None:
        """What is wrong with the version or the config: once, in the first file whose errors are shown."""
        place = Context()
        place.set_line(1, 0)
        if not self.tested and not self._told_version:
            self._told_version = True
            first, last = (".".join(map(str, v)) for v in _config.TESTED)
            text = _messages.untested(self.version, first, last)
            if self.config.unsupported_mypy == "note":
                checker.note(text, place, code=_codes.PLUGIN)
            else:
                checker.fail(text, place, code=_codes.PLUGIN)
                checker.note(_messages.UNTESTED_NOTE, place, code=_codes.PLUGIN)
        if self.config.problems and not self._told_config:
            self._told_config = True
            for problem in self.config.problems:
                checker.fail(problem, place, code=_codes.PLUGIN)

    # ---- the daemon
    def _revisit(self, checker: TypeChecker, context: Context) -> None:
        """The daemon checks single functions again, and calls no hook for the file then.

        So the checker is asked to visit the function once more; when the first call of the library comes by again, the types of the
        whole function are known from the visit before.
        """
        function = checker.scope.top_level_function()
        if function is None:
            return
        known = self._visits.get(checker.path)
        if known is None or known[0] is not checker:
            known = self._visits[checker.path] = (checker, {})
        visits = known[1]
        at = visits.get(function)
        # Done, and no type of this expression any more: the daemon has forgotten the function's types to check it anew.
        anew = at == _DONE and context not in checker._type_maps[0]  # noqa: SLF001  # mypy has no door to it
        if at is None or anew or checker.current_node_deferred:
            self._defer(checker, function, visits)
        elif 0 < at <= checker.pass_num:
            visits[function] = _DONE
            self._quietly(checker, function)

    def _defer(self, checker: TypeChecker, function: FuncItem, visits: dict[FuncItem, int]) -> None:
        visits[function] = checker.pass_num + 1
        if not any(deferred.node is function for deferred in checker.deferred_nodes):
            checker.defer_node(function, checker.scope.enclosing_class(function))  # type: ignore[arg-type]

    def _quietly(self, checker: TypeChecker, function: FuncItem) -> None:
        """Reports past whoever collects errors of the expression in hand."""
        from oxidecopy.mypy_plugin._driver import Driver

        watchers, checker.errors._watchers = checker.errors._watchers, []  # noqa: SLF001  # mypy has no door to it
        try:
            Driver(checker, checker.tree, everything=self.everything).function(function)
        finally:
            checker.errors._watchers = watchers  # noqa: SLF001

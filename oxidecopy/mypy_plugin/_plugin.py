"""The plugin's class: finds out which files and functions have to do with us, and runs the pass over them when mypy has checked them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from mypy.checker import TypeChecker
from mypy.lookup import lookup_fully_qualified
from mypy.options import Options
from mypy.plugin import AttributeContext, FunctionContext, MethodContext, Plugin, ReportConfigContext
from mypy.types import Type
from typing_extensions import override

from oxidecopy.mypy_plugin import _after, _codes, _config, _messages, _names
from oxidecopy.mypy_plugin._rewording import Rewording
from oxidecopy.mypy_plugin._told import Told
from oxidecopy.mypy_plugin._types import takes


class OxidecopyPlugin(Plugin):
    """Calls of the library, and of functions that take something, tell where to look."""

    everything: ClassVar[bool] = False  # a test's plugin tracks every class of every file
    functions: ClassVar[int] = 0  # how many functions were analysed in this process

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.config = _config.read(options.config_file)
        self._data = [_config.digest(), self.config.leaks, self.config.leaks_at_end]
        self._told = Told(self.config.problems)
        self._rewording = Rewording()
        self._waiting: dict[str, _after.Waiting] = {}  # by path: files of an import cycle are checked in turns
        self._latest: _after.Waiting | None = None
        self._covered = ""  # the file in hand, once the pass will be over all of it: hooks are asked thousands of times

    @override
    def report_config_data(self, ctx: ReportConfigContext) -> Any:
        return [*self._data, self._told.data(ctx)]

    # ---- hooks: they only look
    @override
    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        if fullname == _after.CALL:
            return self._checked
        return self._see if self._wanted() and (fullname.startswith(_names.PREFIX) or self.everything or self._takes(fullname)) else None

    @override
    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        return self._see if self._wanted() and (fullname.startswith(_names.PREFIX) or self.everything or self._takes(fullname)) else None

    @override
    def get_attribute_hook(self, fullname: str) -> Callable[[AttributeContext], Type] | None:
        return self._see_attribute if self._wanted() and (fullname.startswith(_names.PREFIX) or self.everything) else None

    def _wanted(self) -> bool:
        """Is there something to see? Not once it is known that the pass will be over all of the file in hand."""
        latest = self._latest
        if latest is None:
            return True
        file = latest.checker.errors.file
        if file != self._covered and file == latest.checker.path and latest.enough:
            self._covered = file
        return file != self._covered

    def _takes(self, fullname: str) -> bool:
        """A function, method or constructor with an Owned parameter."""
        if self._modules is None or fullname.startswith(("builtins.", "typing.")):
            return False
        found = lookup_fully_qualified(fullname, self._modules)
        return found is not None and takes(found.node)

    def _see(self, ctx: FunctionContext | MethodContext) -> Type:
        self._look(ctx.api)
        return ctx.default_return_type

    def _see_attribute(self, ctx: AttributeContext) -> Type:
        self._look(ctx.api)
        return ctx.default_attr_type

    def _look(self, checker: object) -> None:
        if not isinstance(checker, TypeChecker):
            return
        waiting = self._waiting.get(checker.path)
        if waiting is None or waiting.checker is not checker:
            # Nobody sees what is said of files that mypy checks silently: packages that were installed, ours among them.
            if checker.path in checker.errors.ignored_files and not self.everything:
                return
            waiting = self._waiting[checker.path] = _after.Waiting(checker)
        self._rewording.attach(checker)
        waiting.see()
        self._latest = waiting

    # ---- the pass
    def _checked(self, ctx: FunctionContext) -> Type:
        """Mypy has visited what there was to visit."""
        self._covered = ""
        checker = ctx.api
        waiting = self._waiting.get(checker.path) if isinstance(checker, TypeChecker) else None
        if waiting is not None and waiting.last(ctx.context) and waiting.functions:
            self._told.say(waiting.checker)
            try:
                self._analyse(waiting)
            except Exception as error:  # of what is around the pass, which catches its own
                text = _messages.surprise("this file", f"{type(error).__name__}: {error}")
                waiting.checker.fail(text, waiting.checker.tree, code=_codes.PLUGIN)
        return ctx.default_return_type

    def _analyse(self, waiting: _after.Waiting) -> None:
        from oxidecopy.mypy_plugin._driver import Driver  # the pass: where nothing has changed, nobody waits for its import

        checker, later = waiting.checker, waiting.unfinished()
        driver = Driver(checker, checker.tree, everything=self.everything, config=self.config)
        if waiting.everywhere:
            driver.file(but=waiting.done | later)
        else:
            driver.some(waiting.functions, but=waiting.done | later)
        waiting.done = driver.done - later
        waiting.functions.clear()
        if later:
            waiting.ask()
        type(self).functions += driver.functions

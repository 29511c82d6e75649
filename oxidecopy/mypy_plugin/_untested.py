"""The plugin for a mypy that it is not tested with: it checks nothing, and says so. Plain typing is not touched.

It must work with any mypy, so it uses what all of them have had for years and nothing of the rest of the plugin that knows mypy's inside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from mypy.options import Options
from mypy.plugin import AttributeContext, FunctionContext, MethodContext, Plugin, ReportConfigContext
from mypy.types import Type
from typing_extensions import override

from oxidecopy.mypy_plugin import _config, _messages, _names
from oxidecopy.mypy_plugin._told import Told


class UntestedPlugin(Plugin):
    """Every call of the library is a place where the pass would have had something to do."""

    version: ClassVar[str] = "?"

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        config = _config.read(options.config_file)
        first, last = (".".join(map(str, v)) for v in _config.TESTED)
        text = _messages.untested(self.version, first, last)
        if config.unsupported_mypy == "note":
            self._told = Told(config.problems, (text,))
        else:
            self._told = Told((text, *config.problems), (_messages.UNTESTED_NOTE,))

    @override
    def report_config_data(self, ctx: ReportConfigContext) -> Any:
        return ["untested", self._told.data(ctx)]

    @override
    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        return self._call if fullname.startswith(_names.PREFIX) else None

    @override
    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        return self._call if fullname.startswith(_names.PREFIX) else None

    @override
    def get_attribute_hook(self, fullname: str) -> Callable[[AttributeContext], Type] | None:
        return self._attribute if fullname.startswith(_names.PREFIX) else None

    def _call(self, ctx: FunctionContext | MethodContext) -> Type:
        self._say(ctx.api)
        return ctx.default_return_type

    def _attribute(self, ctx: AttributeContext) -> Type:
        self._say(ctx.api)
        return ctx.default_attr_type

    def _say(self, checker: Any) -> None:  # what it has beyond mypy's documented interface is asked for with care
        errors: Any = getattr(checker, "errors", None)
        if checker.path in getattr(errors, "ignored_files", ()):
            return  # nobody sees what is said of an installed package
        # While mypy tries the variants of an overloaded function, an error means that a variant does not fit, and is not shown.
        watchers = getattr(errors, "_watchers", None)
        if watchers:
            errors._watchers = []  # noqa: SLF001
        try:
            self._told.say(checker)
        finally:
            if watchers:
                errors._watchers = watchers  # noqa: SLF001


def untested(version: str) -> type[Plugin]:
    """The plugin's class for this version of mypy."""
    return type("UntestedPlugin", (UntestedPlugin,), {"version": version})

"""Mypy's own messages on our classes in plain words: a barrier in the wrong state, boxes that differ.

Mypy has no hook for them: a method's self type is checked before any plugin is asked. But every error passes the watchers of mypy's
`Errors` on its way, before `# type: ignore` is looked at. One of ours stands at the bottom of them, sees only what nobody above holds back,
and changes the words. The code stays mypy's, so that ignores mean the same with the plugin and without it; only boxes get `oxidecopy-box`,
where the line does not ignore the other code.
"""

from __future__ import annotations

from typing import Final, final

from mypy import errorcodes
from mypy.checker import TypeChecker
from mypy.errorcodes import ErrorCode
from mypy.errors import ErrorInfo, Errors, ErrorWatcher

from oxidecopy.mypy_plugin import _codes

_CODES: Final = (errorcodes.MISC, errorcodes.ARG_TYPE, errorcodes.ASSIGNMENT)


@final
class Rewording:
    """The words of one run of mypy. `attach` before anything is said of a file; more often does no harm."""

    def __init__(self) -> None:
        self._errors: Errors | None = None
        self._watcher: ErrorWatcher | None = None
        self._checker: TypeChecker | None = None  # of the file in hand

    def attach(self, checker: TypeChecker) -> None:
        """A hook of ours is asked in this file."""
        if checker is self._checker and self._standing():
            return
        self._checker = checker
        errors = checker.errors
        if errors is not self._errors or self._watcher is None:
            self._errors, self._watcher = errors, ErrorWatcher(errors, filter_errors=self._see)
        if not self._standing():
            errors._watchers.insert(0, self._watcher)  # noqa: SLF001  # mypy has no door to it; the canary test watches
        self._said_before(checker.path, errors)

    def _said_before(self, path: str, errors: Errors) -> None:
        """What was said before a hook of ours was asked in this file: other words, and what the line ignores of other codes."""
        infos = errors.error_info_map.get(path, [])
        for info in list(infos):
            code = info.code
            self._see(path, info)
            if info.code is code or info.code is None:
                continue
            # Mypy looked for the code that it gave, and noted that the line does not ignore that one.
            note = next((other for other in infos if _is_stale(other, info, code)), None)
            if note is not None:
                infos.remove(note)
            if errors.is_ignored_error(info.line, info, errors.ignored_lines.get(path, {})):
                errors.used_ignored_lines[path][info.line].append(info.code.code)
                infos.remove(info)

    def _standing(self) -> bool:
        watchers = self._errors._watchers if self._errors is not None else []  # noqa: SLF001
        return bool(watchers) and watchers[0] is self._watcher

    def _see(self, path: str, info: ErrorInfo) -> bool:
        """Changes the words; holds nothing back."""
        checker = self._checker
        if checker is not None and checker.path == path and info.severity == "error" and info.code in _CODES and not info.blocker:
            from oxidecopy.mypy_plugin._features import boxes, wrong_state  # where nothing is wrong, nobody waits for their import
            from oxidecopy.mypy_plugin._features.found import Source

            maps = list(reversed(checker._type_maps))  # noqa: SLF001
            source = Source(tree=checker.tree, maps=maps, line=info.line, column=info.column)
            told = wrong_state.said(info.message, source)
            if told is not None:
                info.message = told
            else:
                self._box(path, info, boxes.said(info.message, source))
        return False

    def _box(self, path: str, info: ErrorInfo, told: str | None) -> None:
        if told is not None and self._may_be(_codes.BOX, path, info):
            info.message, info.code = told, _codes.BOX

    def _may_be(self, code: ErrorCode, path: str, info: ErrorInfo) -> bool:
        """The line does not speak of the code that mypy gave, and ours is switched on."""
        if self._errors is None or info.code is None or not self._errors.is_error_code_enabled(code):
            return False
        return info.code.code not in self._errors.ignored_lines.get(path, {}).get(info.line, [])


def _is_stale(note: ErrorInfo, info: ErrorInfo, code: ErrorCode | None) -> bool:
    """Mypy's remark that the line ignores other codes than the one it gave at first."""
    at = note.severity == "note" and (note.line, note.column) == (info.line, info.column)
    return at and code is not None and note.message.startswith(f'Error code "{code.code}" not covered')

"""The exception tree and the one shape every refusal has.

A refusal is a list of `Diagnostic`s: which rule, what failed, where in the user's source, what was got, what is required and the cheapest
fix. The text is made from those fields, here and nowhere else, so that tests (and programs) match fields and never words. Nothing in this
module imports the rest of the package; rule ids are plain strings that `oxidecopy.rules` explains.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, final


@final
@dataclass(frozen=True, slots=True)
class Site:
    """A place in the user's source: `file`, 1-based `line`, and the function it is in."""

    file: str
    line: int
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@final
@dataclass(frozen=True, slots=True)
class Cause:
    """An earlier place that led to a diagnostic: 'armed here', 'taken by `init` here'."""

    what: str
    site: Site | None


class Explanation(Protocol):
    """What there is to say of several diagnostics together: of a deadlock who waits for whom."""

    def lines(self) -> list[str]:
        """What is said, line by line."""

    def as_json(self) -> dict[str, Any]:
        """The same as plain values for programs, as JSON has them."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One broken rule.

    Attributes:
        rule: id such as ``OX2007``; ``oxidecopy explain OX2007`` prints its page.
        what: one sentence, naming the user's own objects.
        got: the value found; empty when `what` says it all.
        required: the bound that it breaks.
        fix: the cheapest change that mends it.
        site: the user's file and line, when the rule is about a line of a program.
        causes: the few earlier lines that led to it.
        explanation: what it and its neighbours come from; diagnostics that differ in nothing else are equal.
    """

    rule: str
    what: str
    got: str = ""
    required: str = ""
    fix: str = ""
    site: Site | None = None
    causes: tuple[Cause, ...] = ()
    explanation: Explanation | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        where = f"{self.site}: " if self.site else ""
        lines = [f"{where}{self.what} [{self.rule}]"]
        lines += [f"  {name}: {text}" for name, text in (("got", self.got), ("required", self.required), ("fix", self.fix)) if text]
        lines += [f"  {cause.site or 'there'}: {cause.what}" for cause in self.causes]
        return "\n".join(lines)


def explanations(diagnostics: Iterable[Diagnostic]) -> list[Explanation]:
    """Those of some diagnostics, each once."""
    found = {id(d.explanation): d.explanation for d in diagnostics if d.explanation is not None}
    return list(found.values())


class OxidecopyError(Exception):
    """Base of all errors of this package. `diagnostics` holds every broken rule, never only the first."""

    headline: ClassVar[str] = ""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        self.diagnostics = diagnostics
        super().__init__(*diagnostics)
        if diagnostics:
            self.add_note(f"oxidecopy explain {diagnostics[0].rule} says why")  # below a traceback; the text is the diagnostics' alone

    @property
    def rule(self) -> str:
        """The id of the first broken rule."""
        return self.diagnostics[0].rule if self.diagnostics else ""

    @property
    def rules(self) -> tuple[str, ...]:
        """The ids of all broken rules, in the order they were found."""
        return tuple(d.rule for d in self.diagnostics)

    def __str__(self) -> str:
        told = explanations(self.diagnostics)
        body = "\n".join([*(str(d) for d in self.diagnostics), *(line for explanation in told for line in explanation.lines())])
        if self.headline and len(self.diagnostics) > 1:
            return f"{self.headline}: {len(self.diagnostics)} rules broken\n{body}"
        return body


# ---- what the user passes in: arguments, files, arrays, devices
class UsageError(OxidecopyError, ValueError):
    """A command line or call that means nothing: unknown name, unreadable file, grid of 0."""


class ArgumentError(UsageError, TypeError):
    """An argument of a launch is of the wrong dtype, rank, kind or count."""


class InputError(UsageError):
    """A file or array that cannot be used: missing, corrupt, zero-size, of an unsupported dtype."""


class DeviceError(OxidecopyError, RuntimeError):
    """The device asked for is not there or cannot be used."""


class ExportError(UsageError, BufferError):
    """An array that cannot be handed to another library the way it asked for."""


class DescriptorError(OxidecopyError, ValueError):
    """`TmaDescriptor.tiled` refused its parameters; every broken rule is listed."""

    headline = "tensor map refused"


class CubinError(OxidecopyError, ValueError):
    """A cubin that cannot be read, or the declaration of a kernel that does not fit what is in it."""

    headline = "own kernel refused"


# ---- what the recorder refuses
class RecordError(OxidecopyError):
    """A pipeline function does something that cannot be recorded."""


class StateError(RecordError):
    """A barrier is in the wrong state for this call (before `init`, after `inval`)."""


class MovedError(StateError):
    """A handle was already consumed: initialised twice, invalidated twice, a token waited for twice."""


class TokenError(RecordError):
    """A token of another barrier, an unarmed token, or one carried over a loop or role boundary."""


class ScopeError(RecordError):
    """A handle used outside the block or pipeline it belongs to, or an op in a scope that may not run it."""


class SymbolicError(RecordError, TypeError):
    """Python control flow, indexing or arithmetic on a value that is only known at run time."""


class ShapeError(RecordError, TypeError):
    """Rank, box or coordinates that do not fit each other."""


class DTypeError(RecordError, TypeError):
    """An element type that does not fit, or an operation its type does not have."""


class AlignmentError(RecordError):
    """A shared array aligned more weakly than the copy needs."""


class ClusterError(RecordError):
    """A cluster operation without a cluster, or a mask or rank outside it."""


# ---- what the verifier refuses
class VerificationError(OxidecopyError):
    """The program must not be launched: the report lists every violation with its cause."""

    headline = "program refused"


class ProgramTextError(OxidecopyError, ValueError):
    """A program text that does not parse, or whose fields are out of their bounds."""


class ProgramBinaryError(OxidecopyError, ValueError):
    """A binary program that is damaged or made for another version, or whose fields are out of their bounds."""


class DeviceCodeError(OxidecopyError):
    """A program that cannot be written as code for a GPU, though it means something and may run elsewhere."""


# ---- what happens when a program runs
class ExecutionError(OxidecopyError, RuntimeError):
    """A launch failed. Memory that it wrote is not to be trusted."""


class DeadlockError(ExecutionError):
    """Nobody can go on: each diagnostic names who waits for what, and what is missing."""


class DeviceFaultError(ExecutionError):
    """The device (or the simulator, where the hardware would) raised a fault; `code` is the CUresult."""

    def __init__(self, *diagnostics: Diagnostic, code: int) -> None:
        super().__init__(*diagnostics)
        self.code = code


class EarlierFaultError(DeviceFaultError):
    """The context was lost before this call began: whatever it was asked for was not started, and is not to blame."""


class DriverError(OxidecopyError, RuntimeError):
    """A call of the CUDA driver failed: `name` and `code` are the CUresult's, `call` is the call's."""

    def __init__(self, *diagnostics: Diagnostic, name: str, code: int, call: str) -> None:
        super().__init__(*diagnostics)
        self.name = name
        self.code = code
        self.call = call


class OutOfMemoryError(DriverError, MemoryError):
    """The device has not enough free memory."""


class LifetimeError(UsageError):
    """A buffer, stream or event that was freed or closed, or that belongs to another device."""


class HazardError(ExecutionError):
    """The run finished, but its result rests on luck: a race or a missing fence was seen."""


@dataclass(frozen=True, slots=True)
class MissingExtra:
    """A one-line hint for a feature whose optional packages are not installed."""

    feature: str
    extra: str
    packages: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        return f"{self.feature} needs {', '.join(self.packages)}: pip install 'oxidecopy[{self.extra}]'"

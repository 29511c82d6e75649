"""Every text that the plugin says. Name, where it went, what to use instead; PTX's words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oxidecopy.mypy_plugin._domain import Move


def sentence(noun: str) -> str:
    """The noun as a sentence begins."""
    return noun[:1].upper() + noun[1:]


def moved(noun: str, name: str, move: Move, alias: str) -> str:
    through = f' (through "{alias}")' if alias else ""
    if move.ended:
        if move.maybe:
            return f'{sentence(noun)} "{name}" is used where its block may be over: {move.what} on line {move.line} has ended on some path'
        return f'{sentence(noun)} "{name}" is used after its block: {move.what} on line {move.line} has ended'
    if move.maybe:
        return f'Use of possibly moved {noun} "{name}": {move.what} takes it{through} on line {move.line} on some path to here'
    return f'Use of moved {noun} "{name}": {move.what} took it{through} on line {move.line}'


def moved_before(noun: str, name: str, move: Move) -> str:
    return f'{sentence(noun)} "{name}" is taken by {move.what} here in the previous iteration of the loop'


def partly_moved(name: str, part: str, move: Move) -> str:
    how = "may have taken" if move.maybe else "took"
    return f'Use of partly moved value "{name}": {move.what} {how} {part} on line {move.line}'


def returned(what: str, name: str) -> str:
    return f'the handle to use from there on is the one that {what} returned: "{name}"'


def twice(noun: str, name: str, what: str) -> str:
    return f'{sentence(noun)} "{name}" is passed twice to {what}, which takes it'


def borrowed(name: str, why: str) -> str:
    return f'Cannot move out of "{name}": {why}'


def borrowed_parameter(name: str, type_name: str) -> str:
    return f'"{name}" is only borrowed here (declare it Owned[{type_name}] to take it)'


def captured() -> str:
    return "it belongs to the enclosing function, and this one may run more than once"


def module_level() -> str:
    return "it is a module-level variable"


def unknown_index() -> tuple[str, str]:
    return "the index is not a constant, so the element cannot be tracked", "unpack the elements into names, or loop over them"


def not_put_back(some: bool) -> str:  # noqa: FBT001  # the wording, not an option
    return ("on some path " if some else "") + "nothing is put back before the function ends"


def carried(noun: str, name: str, loop: str, line: int) -> str:
    return f'{sentence(noun)} "{name}" is carried into {loop} on line {line}: the body of this loop is recorded once'


def carried_round(noun: str, name: str, loop: str, line: int) -> str:
    return f'{sentence(noun)} "{name}" comes from the previous iteration of {loop} on line {line}: the body of this loop is recorded once'


def carried_out(noun: str, name: str, loop: str, line: int) -> str:
    return f'{sentence(noun)} "{name}" is carried out of {loop} on line {line}, in which it was made'


def carried_note(noun: str) -> str:
    if noun == "token":
        return "make and wait for a token in the same iteration, or wait by number: `wait_phase(k)`"
    return "make it and use it up on the same side of the loop"


def other_barrier(token: str, made_by: str, waited: str) -> str:
    return f'Token "{token}" came from barrier {made_by}, but is waited for on "{waited}"'


def tested(kind: str, where: str) -> str:
    return f"A recorded {kind} has no truth value while the pipeline is recorded ({where})"


TESTED_NOTE = "use `with cta.when(cond):`, and `&`, `|`, `~` instead of and, or, not"


def compared(what: str) -> str:
    return f"`{what}` asks for the order of recorded integers, which is not known while the pipeline is recorded"


def chained() -> str:
    return "A chain of comparisons asks for the truth of its first one, which is not known while the pipeline is recorded"


CHAINED_NOTE = "write `(a <= i) & (i < b)`"


def matched(kind: str) -> str:
    return f"`case` compares a recorded {kind}, which is not known while the pipeline is recorded"


def float_scalar(name: str, dtype: str) -> str:
    parameter = f' "{name}"' if name else ""
    return f"A float for the parameter{parameter} of type Scalar[{dtype}]: pass an int"


def surprise(what: str, error: str) -> str:
    return f"oxidecopy.mypy_plugin could not check {what}: {error}; nothing is known of the handles in it"


def untested(version: str, first: str, last: str) -> str:
    return f"oxidecopy.mypy_plugin is tested with mypy {first} to {last}, not {version}: moves and scopes are not checked"


UNTESTED_NOTE = "install oxidecopy[mypy], or accept this with `unsupported_mypy = note` in the section [oxidecopy-mypy]"


def expected_bytes(name: str, announced: int, issued: int) -> str:
    return f'Barrier "{name}" was told to expect {announced} bytes, but the copies issued on it move {issued}'


def expected_note(announced: int, issued: int) -> str:
    return (
        "the phase never completes: this wait would hang" if announced > issued else "the phase would complete before all bytes have landed"
    )


def box(how: str) -> str:
    return f"TMA box: {how}"


def shared_total(nbytes: int, total: int, limit: int) -> str:
    return f"Shared memory: this array of {nbytes} bytes brings the total to {total}, over the limit of {limit} (227 KiB)"

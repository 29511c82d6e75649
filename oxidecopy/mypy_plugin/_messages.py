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


def lent_too(noun: str, name: str, what: str) -> str:
    return f'{sentence(noun)} "{name}" is taken by {what}, and cannot be lent to it as well'


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


def tested_note(kind: str) -> str:
    if kind in ("element", "comparison of elements"):
        return "choose by `(v < w).select(v, w)`, `v.minimum(w)` or `v.maximum(w)`, and use `&`, `|`, `~` instead of and, or, not"
    return "use `with cta.when(cond):`, and `&`, `|`, `~` instead of and, or, not"


def compared(what: str, kind: str) -> str:
    return f"`{what}` asks for the order of recorded {kind}s, which is not known while the pipeline is recorded"


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


def leak(kind: str, name: str, *, some: bool) -> str:
    on_some = " on some path" if some else ""
    if kind == "commit group":
        return f"This commit group is never waited for{on_some}"
    if kind == "token":
        return f'Token "{name}" is never waited for{on_some}'
    return f'Barrier "{name}" is Ready and never invalidated{on_some}'


def leak_note(kind: str, name: str) -> str:
    if kind == "commit group":
        return "wait before the kernel ends: `leader.wait_group(0)`, by the thread that closed it"
    if kind == "token":
        return "wait for it on its barrier, or give it no name where the arrival is all that is wanted"
    ended = f"end it with `{name}.inval()`" if "(" not in name else "keep it, and end it with `inval`"
    return f"{ended}, return it, or give it to somebody who does"


# What is said instead of mypy's words on self types.
_STATES = {"Uninit": "not initialised yet", "Ready": "Ready already", "Invalidated": "Invalidated"}
_FIRST = {
    ("Uninit", "Ready"): 'call "init" first, and use what it returns',
    ("Ready", "Uninit"): "initialise it once, and use what that returned",
    ("Ready", "Invalidated"): 'call "inval" first',
    ("Uninit", "Invalidated"): 'call "init", then "inval" first',
    ("Invalidated", "Ready"): 'use it between "init" and "inval"',
    ("Invalidated", "Uninit"): "make another one",
}


def _which(noun: str, name: str) -> str:
    return f'{sentence(noun)} "{name}"' if name else f"This {noun}" if noun == "barrier" else f"These {noun}"


def wrong_state(noun: str, name: str, state: str, origin: str, asks: str, wanted: str) -> str:
    be, one = ("is", "one that is") if noun == "barrier" else ("are", "ones that are")
    return f"{_which(noun, name)} {be} {_STATES[state]}{origin}: {asks} needs {one} {wanted}; {_FIRST[state, wanted]}"


def state_made(what: str, line: int, state: str) -> str:
    return f' ("{what}" made it {"" if state == "Uninit" else "so "}on line {line})'


def state_declared() -> str:
    return " (as the parameter is declared)"


def wrong_kind(noun: str, name: str, kind: str, asks: str) -> str:
    be = "does" if noun == "barrier" else "do"
    return f"{_which(noun, name)} {be} not count bytes, being {kind}: {asks} needs TmaBarrier; make it with `cta.barrier()`"


def state_of_variable(given: str, declared: str) -> str:
    return (
        f"This variable holds a barrier that is {declared}, and is given one that is {given}: "
        "give the new handle a name of its own, or set `allow_redefinition`"
    )


def other_box(name: str, mine: str, callee: str, theirs: str, swizzle: tuple[str, str] | None) -> str:
    what = f'"{name}" moves boxes' if name else "this map moves boxes"
    rest = f", and its swizzle is {swizzle[0]} instead of {swizzle[1]}" if swizzle else ""
    return f"TMA box: {what} of {mine}, {callee} takes {theirs}{rest}"


def boxes_of_call(method: str, of_map: str, mine: str, of_tile: str, theirs: str) -> str:
    return f'TMA box: "{method}" of a tile of {theirs} ("{of_tile}") by a map whose box is {mine} ("{of_map}")'

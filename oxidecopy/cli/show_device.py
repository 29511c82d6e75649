"""What a GPU makes of a program: its device code, and for each loop how that runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.code import LoopNote, encode_program
from oxidecopy.engines.cuda.code.listing import listing
from oxidecopy.errors import DeviceCodeError, Diagnostic, UsageError

if TYPE_CHECKING:
    from oxidecopy.program.program import Launch, Program

_LOOP: Final = "loop "
_WHOLE: Final = (abi.ONCE_FAMILY, abi.APPLY_FAMILY, *abi.PRODUCT_FAMILIES)


def describe(program: Program, launch: Launch | None, target: str) -> tuple[str, list[dict[str, Any]]]:
    """The listing, and what is to be said of each loop."""
    if launch is None:
        raise UsageError(
            Diagnostic(
                rule="OX6003",
                what=f"{target} has no launch, which device code is made for",
                got="a recorded program",
                required="a file with a pipeline and a recipe",
                fix="leave --device out, or name the Python file",
            )
        )
    image = encode_program(program, launch)
    loops = [{"loop": n.loop, "counter": n.counter, "agent": n.agent, "fused": n.fused, "why": n.why} for n in image.loops]
    return listing(image), loops


def marked(text: str, program: Program, launch: Launch | None) -> str:
    """The program's text with comments: below each loop how device code runs it, and at the end what there is to say of the whole."""
    if launch is None:
        return text
    try:
        image = encode_program(program, launch)
    except DeviceCodeError as refused:
        return text + f"# no device code: {refused.diagnostics[0].what} [{refused.rule}]\n"
    lines: list[str] = []
    seen = 0
    for line in text.splitlines():
        lines.append(line)
        if line.lstrip().startswith(_LOOP):
            indent = " " * (len(line) - len(line.lstrip()) + 2)
            lines += [f"{indent}# {words(note)}" for note in image.loops if note.loop == seen]
            seen += 1
    lines += [f"# tiles of {name}: {how}" for name, how in image.shares.items()]
    if image.family in _WHOLE:
        lines.append(f"# run as a whole, by a kernel for such programs: family {image.family}")
    if image.left:
        lines.append(f"# left to the interpreter: {image.left}")
    return "\n".join(lines) + "\n"


def words(note: LoopNote) -> str:
    """How a loop runs, on one line."""
    return f"{note.agent}: {f'fused ({note.fused})' if note.fused else f'op by op: {note.why}'}"

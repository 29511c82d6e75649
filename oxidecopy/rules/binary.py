"""Rules of binary programs. What decodes is then held against the rules of the op table, whose pages are in `text`."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.rule import Rule

# A program of one barrier, and its binary form. `body` puts other bytes behind a header that is true of them.
_DATA: Final = '''\
import zlib
from oxidecopy.program.binary import from_bytes, to_bytes
from oxidecopy.program.text import from_text

TEXT = """\\
program p threads=64 cluster=(1, 1, 1) shared=8:
  barrier full: TmaBarrier at=0
  mbarrier.init full, count=1
"""
data = to_bytes(from_text(TEXT))

def body(new):
    return data[:25] + len(new).to_bytes(4, "little") + zlib.crc32(new).to_bytes(4, "little") + new

'''
_FORM: Final = "the binary form of programs, oxidecopy.program.binary"


def _rule(number: int, title: str, why: str, wrong: str, right: str = "from_bytes(data)\n") -> Rule:
    return Rule(
        id=f"OX196{number}", title=title, error="ProgramBinaryError", why=why, source=_FORM, wrong=_DATA + wrong, right=_DATA + right
    )


RULES: Final[tuple[Rule, ...]] = (
    _rule(
        0,
        "a binary program has at most 1,048,576 bytes",
        "A recorded program has a few thousand; reading one that is larger would take seconds.",
        "from_bytes(data + bytes(1 << 20))\n",
    ),
    _rule(
        1,
        "a binary program begins with its magic bytes",
        "Anything else is another sort of file. A file of text, or one that was sent as text, has other first bytes.",
        'from_bytes(data.replace(b"\\r\\n", b"\\n"))\n',
    ),
    _rule(
        2,
        "a binary program is read by a version with its form and its op table",
        "The header holds the version of the form and a fingerprint of the op table. With another table the same bytes would be other ops.",
        "from_bytes(data[:9] + bytes(16) + data[25:])\n",
    ),
    _rule(
        3,
        "the body of a binary program has the checksum that its header names",
        "A bit that changed on the way could make another valid program of it.",
        "from_bytes(data[:-1] + bytes([data[-1] ^ 1]))\n",
    ),
    _rule(
        4,
        "a binary program is whole: nothing is missing, nothing is left over, and no list is longer than what is left",
        "A file that was cut off says nothing about the rest, and a length that is believed can ask for any amount of memory.",
        "from_bytes(data[:-1])\n",
    ),
    _rule(
        5,
        "every value of a binary program is one that its place can hold, in its shortest form",
        "Numbers have at most 64 bits; positions, opcodes, words and nodes are in their lists; strings are UTF-8 and written once. Each "
        "program has one form, so that equal programs are equal files.",
        'from_bytes(body(b"\\x80\\x00" + data[34:]))\n',
        "from_bytes(body(data[33:]))\n",
    ),
    _rule(
        6,
        "expressions of a binary program are trees of at most 4,096 nodes and 64 levels, and blocks are at most 64 deep",
        "The verifier and the engines walk these trees. An operator without its operands has no value.",
        "# The stage of `full`: one node, an addition. What follows it is the count of 1.\n"
        'from_bytes(body(data[33:-4] + b"\\x01\\x02" + b"\\x01"))\n',
        "# The stage of `full`: one node, the constant 0. What follows it is the count of 1.\n"
        'from_bytes(body(data[33:-4] + b"\\x01\\x00\\x00" + b"\\x01"))\n',
    ),
)

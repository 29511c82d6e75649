"""The binary form of programs: `from_bytes(to_bytes(p)) == p`, call sites included.

    offset  bytes
    0       8       magic: 89 4F 58 50 0D 0A 1A 0A, which no text transfer leaves as it is
    8       1       version of the form
    9       16      fingerprint of the op table, the first half of `oxidecopy.isa.abi_hash.table_hash`
    25      4       bytes of the body, little-endian
    29      4       CRC-32 of the body, little-endian
    33              the body

The body is the fields of `Program` in their order, the steps last. Everything in it follows from the classes of the fields and, for ops,
from the op table: an op added there needs no change here.

- Integers are LEB128 varints in their shortest form, at most 10 bytes; where a field may be negative, 0, -1, 1, -2, .. are 0, 1, 2, 3, ..
- A list is its length, then its elements. Words of a list and members of an enumeration are their position.
- A string is 0 to n - 1 for one of the n strings seen before, or n, its length in bytes and UTF-8. A call site likewise, one higher: 0 is
  none.
- An expression is its number of nodes, then the nodes, operands before operators, the last operand first: each one byte for what it is,
  then what it holds besides its operands.
- A step is its opcode, call site and operands in the order of the table, and for a block the length of its body. Steps follow in program
  order.

Each program has one form: what `from_bytes` accepts, `to_bytes` gives back byte for byte. Floats keep their bits.
"""

from __future__ import annotations

from oxidecopy.program.binary.decoder import from_bytes as from_bytes
from oxidecopy.program.binary.decoder import is_binary as is_binary
from oxidecopy.program.binary.encoder import SIZE_MAX as SIZE_MAX
from oxidecopy.program.binary.encoder import to_bytes as to_bytes

__all__ = ["SIZE_MAX", "from_bytes", "is_binary", "to_bytes"]

"""The text form of programs: `from_text(to_text(p)) == p`, call sites included.

A program is one header with an indented body: parameters, shared tiles and barriers first, then the ops. Blocks are indented by two
spaces, as in Python. A comment of the form ``# file.py:12 function`` at the end of a line is the call site of that line, ``# :12`` one in
the file and function of the program itself; other comments mean nothing. Everything about ops comes from the op table: an op added there
can be printed and parsed without a change here.

    program tma_load threads=128 cluster=(1, 1, 1) shared=16392:             # load.py:10 tma_load
      map src: f32 box=(64, 64)
      tile t0: f32 (64, 64) align=1024 at=0 step=16384                       # :14
      barrier full: TmaBarrier at=16384
      registers {0..127}: 40
      requires src.dim[0] <= 64 * grid_dim.x, what="rows are left out", fix="launch more CTAs"

      mbarrier.init full, count=1
      scope elect {0}:
        mbarrier.arrive.expect_tx full, nbytes=16384 -> %0                   # :17
        cp.async.bulk.tensor.g2s src, t0, [block_idx.y * 64, block_idx.x * 64], full
      mbarrier.wait full, %0

Operands come in the order of the op table: references by name (`full[i0 % 2]`, `t0[1].part(cta_rank, of=4)`, and `src[block_idx.y]` for
an entry of `map src: f32 box=(64, 64) entries=3`, whose extents are `src[0].dim[0]` and so on), `[..]` coordinates with the outermost
dimension first, `{0..31}` threads, `cast(x0:f32 * alpha:f32, bf16)` for what a map makes of the elements of its tiles, `%0` tokens and
`?0` answers of a test, after `->` where the op makes them.
"""

from __future__ import annotations

from oxidecopy.program.text.parser import from_text as from_text
from oxidecopy.program.text.printer import to_text as to_text

__all__ = ["from_text", "to_text"]

"""Scripts of rules that no pipeline breaks, because types or the recorder refuse it first: program texts, and recordings with one edit.

The pages are where their rules are; `all_rules` puts the two together.
"""

from __future__ import annotations

from textwrap import dedent, indent
from typing import Final

from oxidecopy.rules.verifier_scripts import Twins, fill, scripts

_VERIFIED: Final = '''\
from oxidecopy.program.program import {used}
from oxidecopy.program.text import from_text
from oxidecopy.verify import verify

{before}text = """\\
{text}"""
verify({program}, Launch({launch}))
'''
_ENCODED: Final = '''\
from oxidecopy.engines.cuda.code import encode_program
from oxidecopy.program.program import Launch
from oxidecopy.program.text import from_text

{before}text = """\\
{text}"""
encode_program(from_text(text), Launch({launch}))
'''
_EXPLORED: Final = '''\
from oxidecopy.engines.base import Bindings
from oxidecopy.engines.sim import explore
from oxidecopy.program.text import from_text

text = """\\
{text}"""
explore(from_text(text), Bindings(grid=({grid}, 1, 1), maps={{}}, arrays={{}}, idx={{}}, scalars={{}})).check()
'''
_MAP: Final = "src = ox.TmaDescriptor.tiled(dev.array(np.ones((256, 256), np.float32)), box={box}).tensor_map\n\n"
_ARRAY: Final = 'arrays=(("out", ArrayInfo(dtype="f32", shape={shape}, strides_bytes={strides})),)'


def _verified(
    text: str, wrong: str, right: str, *, before: str = "", launch: str = "grid=(1, 1, 1)", program: str = "from_text(text)"
) -> Twins:
    """A program text with one gap, in it or in what is around it, that the verifier is asked about."""
    used = "ArrayInfo, Launch" if "ArrayInfo" in launch else "Launch"
    whole = _VERIFIED.format(before=before, text=dedent(text).strip("\n") + "\n", launch=launch, program=program, used=used)
    return Twins(fill(whole, wrong), fill(whole, right))


def _mapped(text: str, wrong: str, right: str, *, box: str = "(64, 64)") -> Twins:
    """The same with a parameter `src`, a map of a 256 x 256 array."""
    launch = 'grid=(1, 1, 1), maps=(("src", src),)'
    return _verified(text, wrong, right, before=_MAP.format(box=box), launch=launch)


def _encoded(text: str, wrong: str, right: str, *, before: str = "", launch: str = "grid=(1, 1, 1)") -> Twins:
    """A program text with one gap that is made code for a GPU."""
    whole = _ENCODED.format(before=before, text=dedent(text).strip("\n") + "\n", launch=launch)
    return Twins(fill(whole, wrong), fill(whole, right))


def _explored(text: str, wrong: str, right: str, *, grid: int = 1) -> Twins:
    """A program text without parameters, run on the simulator."""
    whole = _EXPLORED.format(text=dedent(text).strip("\n") + "\n", grid=grid)
    return Twins(fill(whole, wrong), fill(whole, right))


def _edited(pipeline: str, launch: str, old: str, new: str, *, also: str = "") -> Twins:
    """A recording whose text is changed, run on the simulator; right is the recording as it is."""
    return _changed(
        pipeline, launch, old, new, also, "from oxidecopy.engines.sim import explore", "explore(from_text(text), launch.bindings).check()"
    )


def _proved(pipeline: str, launch: str, old: str, new: str) -> Twins:
    """The same, shown to the verifier."""
    return _changed(pipeline, launch, old, new, "", "from oxidecopy.verify import verify", "verify(from_text(text), launch.launch)")


def _changed(pipeline: str, launch: str, old: str, new: str, also: str, imported: str, judged: str) -> Twins:
    head = "\n".join(sorted([imported, "from oxidecopy.program.text import from_text, to_text"]))
    body = f"{dedent(pipeline).strip()}\n\n\nlaunch = {launch}\ntext = to_text(launch.program){also}<gap>\n{judged}\n"
    return scripts(f"{head}\n\n\n{body}", f'.replace("{old}", "{new}")', "")


def _contracted(old: str, new: str) -> Twins:
    """A product as it is recorded, with one edit, shown to the verifier."""
    from oxidecopy.rules.recorder_contract import script

    pipeline = script().replace("matmul[1](op, op, c, ", "launch = matmul[1].bind(op, op, c, ")
    head = "from oxidecopy.program.text import from_text, to_text\nfrom oxidecopy.verify import verify\n\n"
    judged = "verify(from_text(to_text(launch.program)<gap>), launch.launch)\n"
    return scripts(f"{head}{pipeline}{judged}", f'.replace("{old}", "{new}")', "")


_MANY_MAPS: Final = """\
from oxidecopy.engines.cuda.code import encode_program
from oxidecopy.program.program import Launch
from oxidecopy.program.text import from_text

src = ox.TmaDescriptor.tiled(dev.array(np.ones((64, 64), np.float32)), box=(64, 64)).tensor_map
count = <gap>
maps = "".join(f"  map m{i}: f32 box=(64, 64)\\n" for i in range(count))
uses = "".join(f"    cp.async.bulk.prefetch.tensor m{i}, [0, 0]\\n" for i in range(count))
text = f"program p threads=32 cluster=(1, 1, 1) shared=0:\\n{maps}  scope elect {{0}}:\\n{uses}"
encode_program(from_text(text), Launch(grid=(1, 1, 1), maps=tuple((f"m{i}", src) for i in range(count))))
"""
_ABSENT: Final = """\
import sys
from unittest.mock import patch

from oxidecopy.engines.cuda.driver import load_driver

with patch.dict(sys.modules, {"cuda.bindings": None, "cuda.bindings.driver": None}):  # as where cuda-python is not installed
    load_driver()
"""
_BARRIER: Final = """
    program p threads=32 cluster=(1, 1, 1) shared=16:
      barrier full: TmaBarrier at=0

      scope elect {0}:
        mbarrier.init full, count=1
      bar.sync number=0, threads=32
"""
_TILE: Final = """
    program p threads=128 cluster=(1, 1, 1) shared=16392:
      map src: f32 box=(64, 64)
      tile tile: f32 (64, 64) align=128 at=0 step=16384
      barrier full: TmaBarrier at=16384

      scope elect {0}:
        mbarrier.init full, count=1
      bar.sync number=0, threads=128
"""
_SHARED: Final = """
    program p threads=64 cluster=(1, 1, 1) shared=1024:
      map src: f32 box=(64, 64)
      array rows: i32 rank=1
      barrier bar: GeneralBarrier stages=2 at=0
      barrier ack: GeneralBarrier stages=2 at=16

      scope thread {0}:
        mbarrier.init bar[0], count=1
        mbarrier.init bar[1], count=1
        mbarrier.init ack[0], count=1
        mbarrier.init ack[1], count=1
      bar.sync number=0, threads=64
"""
_ROWS: Final = 'grid=(1, 1, 1), maps=(("src", src),), arrays=(("rows", ArrayInfo(dtype="i32", shape=(16,), strides_bytes=(4,))),)'
_COUNTED: Final = """
      share.tiles n, tiles=1000
      scope thread {0}:
        loop i, start=0, stop=n, step=1:
          mbarrier.wait.phase ack[i % 2], phase=i // 2 - 1
          mbarrier.arrive bar[i % 2] -> %0
      scope thread {32}:
        loop j, start=0, stop=n, step=1:
          mbarrier.wait.phase bar[j % 2], phase=j // 2
          <gap>
            mbarrier.arrive ack[j % 2] -> %1
"""
_EMPTY: Final = "program p threads=128 cluster=(1, 1, 1) shared=0:\n"


def _join(head: str, tail: str) -> str:
    return dedent(head).strip("\n") + "\n" + tail.strip("\n")


def _with_rows(tail: str, wrong: str, right: str) -> Twins:
    return _verified(_join(_SHARED, indent(dedent(tail).strip("\n"), "  ")), wrong, right, before=_MAP.format(box="(64, 64)"), launch=_ROWS)


_ENVIRONMENT: Final = """
    import os
    from unittest.mock import patch

    from oxidecopy.host.settings import settings

    with patch.dict(os.environ, {}="<gap>"):
        settings(checked=False).require_all()
"""


_REPLACED: Final = """
    @ox.pipeline(threads=64)
    def kernel(
        cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], x: ox.GlobalArray[ox.f32, ox.D2], slots: ox.GlobalArray[ox.u8, ox.D2]
    ) -> None:
        slot = cta.tensormap(src, slots)
        tile = cta.shared(src)
        full = cta.barrier().init(1)
        with cta.warps(0, 1) as warp:
            for i in cta.range(2):
                with warp.elect() as leader:
                    draft = slot.edit(leader)
                    draft.replace(leader, x, (i * 8, 0), (i * 8 + 5, 32))
                released = draft.cp_fenceproxy(warp)
                with warp.elect() as leader:
                    desc = released.acquire(leader)
                    token = full.arrive_expect_tx(leader, tile)
                    desc.g2s(leader, tile, (0, 0), token)
                    full.wait(token)


    a = dev.array(np.ones((64, 32), np.float32))
"""
_REPLACING: Final = "kernel[1].bind(ox.TmaDescriptor.tiled(a, box=(8, 32)), a, dev.empty((1, 128), ox.u8))"
_SWIZZLED: Final = """
    @ox.pipeline(threads=64)
    def kernel(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2, ox.Swizzle128B]) -> None:
        tile = cta.shared(src)
        full = cta.barrier().init(1)
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile)
            src.g2s(leader, tile, (0, 0), token)
        full.wait(token)


    a = dev.array(np.ones((64, 32), np.float32))
"""
_SWIZZLING: Final = "kernel[1].bind(ox.TmaDescriptor.tiled(a, box=(8, 32), swizzle=ox.Swizzle128B))"

BEYOND: Final[dict[str, Twins]] = {
    # ---- barriers
    "OX3130": _contracted("depth=64", "depth=32"),
    "OX3132": _contracted("scope consumers {0..127}", "scope consumers {0..63}"),
    "OX5305": Twins(_ABSENT, 'ox.Device.open("sim")\n'),
    "OX5508": scripts(_MANY_MAPS, "256", "255"),
    "OX5569": _encoded(
        """
        program p threads=128 cluster=(1, 1, 1) shared=0:
          <gap>
        """,
        "mma.zero",
        "bar.sync number=0, threads=128",
    ),
    "OX3001": _verified(
        """
        program p threads=32 cluster=(1, 1, 1) shared=8:
          barrier full: TmaBarrier at=0

          scope elect {0}:
            <gap>
            mbarrier.arrive full -> %0
            mbarrier.wait full, %0
        """,
        "",
        "mbarrier.init full, count=1",
    ),
    "OX3002": _verified(
        _join(
            _BARRIER,
            """
  scope elect {0}:
    <gap>
""",
        ),
        "mbarrier.inval full\nmbarrier.arrive full -> %0",
        "mbarrier.arrive full -> %0\nmbarrier.wait full, %0\nmbarrier.inval full",
    ),
    "OX3003": _verified(
        """
        program p threads=32 cluster=(1, 1, 1) shared=8:
          barrier full: TmaBarrier at=0

          scope <gap>:
            mbarrier.init full, count=1
          bar.sync number=0, threads=32
        """,
        "warps {0..31}",
        "elect {0}",
    ),
    "OX3004": _verified(
        """
        program p threads=32 cluster=(1, 1, 1) shared=8:
          barrier full: TmaBarrier at=0

          scope thread {0}:
            mbarrier.init full, count=1
          <gap>
          scope thread {1}:
            mbarrier.arrive full -> %0
            mbarrier.wait full, %0
        """,
        "",
        "bar.sync number=0, threads=32",
    ),
    "OX3017": _verified(
        """
        program p threads=32 cluster=(1, 1, 1) shared=16:
          barrier a: TmaBarrier at=0
          barrier b: TmaBarrier at=8

          scope elect {0}:
            mbarrier.init a, count=1
            mbarrier.init b, count=1
            mbarrier.arrive a -> %0
            mbarrier.arrive b -> %1
            mbarrier.wait a, %1
            mbarrier.wait b, %0
        """.replace("wait a, %1", "wait <gap>, %1").replace("            mbarrier.wait b, %0\n", "            mbarrier.wait a, %0\n"),
        "a",
        "b",
    ),
    # ---- copies
    "OX3053": _mapped(
        _join(
            _TILE,
            """
  scope <gap>:
    mbarrier.arrive.expect_tx full, nbytes=16384 -> %0
    cp.async.bulk.tensor.g2s src, tile, [0, 0], full
    mbarrier.wait full, %0
""",
        ),
        "warps {0..31}",
        "elect {0}",
    ),
    "OX3054": _mapped(
        """
        program p threads=128 cluster=(1, 1, 1) shared=16384:
          map src: f32 box=(64, 64)
          tile tile: f32 (64, 64) align=128 at=0 step=16384

          scope elect {0}:
            st.shared.fill tile, 0
            fence.proxy.async.shared::cta
            cp.reduce.async.bulk.tensor.s2g <gap> src, tile, [0, 0]
            cp.async.bulk.commit_group
            cp.async.bulk.wait_group pending=0
        """,
        "min",
        "add",
    ),
    "OX3055": _verified(
        """
        program p threads=128 cluster=(1, 1, 1) shared=0:
          array out: f32 rank=1

          scope elect {0}:
            cp.async.bulk.prefetch out, [0], nbytes=<gap>
        """,
        "24",
        "32",
        launch="grid=(1, 1, 1), " + _ARRAY.format(shape="(1024,)", strides="(4,)"),
    ),
    "OX3059": _verified(
        """
        program p threads=128 cluster=(1, 1, 1) shared=264:
          map src: f32 box=(<gap>, 16)
          tile tile: f32 (4, 16) align=128 at=0 step=256
          barrier full: TmaBarrier at=256

          scope elect {0}:
            mbarrier.init full, count=1
          bar.sync number=0, threads=128
          scope elect {0}:
            mbarrier.arrive.expect_tx full, nbytes=256 -> %0
            cp.async.bulk.tensor.g2s.gather4 src, tile, [3, 9, 63, 3, 0], full
            mbarrier.wait full, %0
        """,
        "2",
        "1",
        before=_MAP.format(box="(<gap>, 16)"),
        launch='grid=(1, 1, 1), maps=(("src", src),), sm=100',
    ),
    "OX3085": _verified(
        """
        program p threads=128 cluster=(1, 1, 1) shared=256:
          tile tile: f32 (8, 8) align=128 at=0 step=256

          st.shared.iota tile, axis=<gap>
        """,
        "2",
        "1",
    ),
    # ---- the layout of shared memory
    "OX3061": _verified(
        """
        program p threads=128 cluster=(1, 1, 1) shared=1536:
          map src: f32 box=(4, 8) swizzle=32B
          tile tile: f32 (4, 8) align=128 swizzle=32B stages=2 at=0 step=<gap>
          barrier full: TmaBarrier at=1024

          scope elect {0}:
            mbarrier.init full, count=1
            mbarrier.arrive.expect_tx full, nbytes=128 -> %0
            cp.async.bulk.tensor.g2s src, tile[1], [0, 0], full
            mbarrier.wait full, %0
        """,
        "640",
        "512",
        before="a = dev.array(np.ones((256, 256), np.float32))\n"
        "src = ox.TmaDescriptor.tiled(a, box=(4, 8), swizzle=ox.Swizzle32B).tensor_map\n\n",
        launch='grid=(1, 1, 1), maps=(("src", src),)',
    ),
    "OX3062": _verified(
        """
        program p threads=128 cluster=(1, 1, 1) shared=24:
          barrier full: TmaBarrier at=<gap>
        """,
        "12",
        "16",
    ),
    "OX3064": _verified(
        """
        program p threads=128 cluster=(1, 1, 1) shared=264:
          array out: f32 rank=1
          tile tile: f32 (64,) align=16 at=0 step=256
          barrier full: TmaBarrier at=256

          scope elect {0}:
            mbarrier.init full, count=1
            mbarrier.arrive.expect_tx full, nbytes=<gap> -> %0
            cp.async.bulk.g2s out, [0], tile, nbytes=<gap>, full
            mbarrier.wait full, %0
        """,
        "272",
        "256",
        launch="grid=(1, 1, 1), " + _ARRAY.format(shape="(1024,)", strides="(4,)"),
    ),
    "OX3065": _verified(
        """
        program p threads=128 cluster=(1, 1, 1) shared=32768:
          tile tile: f32 (64, 64) align=128 stages=2 at=0 step=<gap>
        """,
        "8192",
        "16384",
    ),
    "OX3066": _verified(
        """
        program p threads=128 cluster=(1, 1, 1) shared=256:
          array out: f32 rank=2
          tile tile: <gap> (8, 8) align=128 at=0 step=256

          st.shared.fill tile, 0
          bar.sync number=0, threads=128
          st.global.tile out, tile, [0, 0]
        """,
        "i32",
        "f32",
        launch="grid=(1, 1, 1), " + _ARRAY.format(shape="(8, 8)", strides="(32, 4)"),
    ),
    # ---- the launch
    "OX3070": _verified(_EMPTY, "0", "1", launch="grid=(<gap>, 1, 1)"),
    "OX3072": _verified(
        _EMPTY,
        "32",
        "16",
        before="from dataclasses import replace\n\n",
        launch="grid=(32, 1, 1)",
        program="replace(from_text(text), cluster=(<gap>, 1, 1))",
    ),
    "OX3073": _verified(
        _EMPTY, "1056", "1024", before="from dataclasses import replace\n\n", program="replace(from_text(text), threads=<gap>)"
    ),
    "OX3075": _verified(
        "program p threads=128 cluster=(1, 1, 1) shared=0:\n  map src: f32 box=(64, 64)\n",
        "+",
        "-",
        before=_MAP.format(box="(64, 64)").rstrip("\n") + "\nfrom dataclasses import replace\n\n"
        "wide = replace(src, global_dim=(256, (1 << 31) <gap> 4), global_strides=((1 << 33) + 16,))\n\n",
        launch='grid=(1, 1, 1), maps=(("src", wide),)',
    ),
    "OX3076": _verified(
        "program p threads=128 cluster=(1, 1, 1) shared=0:\n  map src: f32 box=(64, <gap>)\n",
        "32",
        "64",
        before=_MAP.format(box="(64, 64)"),
        launch='grid=(1, 1, 1), maps=(("src", src),)',
    ),
    # ---- values that are known while it runs
    "OX3086": _with_rows(
        """
  ld.global.index r, rows, index=0, below=2
  scope thread {0}:
    loop i, start=0, stop=<gap>, step=1:
      mbarrier.arrive bar[0] -> %0
      mbarrier.wait bar[0], %0
""",
        "r",
        "2",
    ),
    "OX3093": _with_rows(
        """
  share.tiles n, tiles=<gap>
  scope thread {0}:
    loop i, start=0, stop=n, step=1:
      mbarrier.arrive bar[0] -> %0
      mbarrier.wait bar[0], %0
""",
        "block_idx.x",
        "4",
    ),
    "OX3094": _with_rows(
        _COUNTED,
        "when j != 50:",
        "when true:",
    ),
    # ---- the simulator
    "OX4012": _edited(
        _SWIZZLED.replace(", ox.Swizzle128B]", "]"),
        _SWIZZLING.replace(", swizzle=ox.Swizzle128B", ""),
        "align=1024 at=0 ",
        "align=1024 at=16 ",
        also='.replace("shared=", "shared=1")',
    ),
    "OX4110": _explored(
        """
        program p threads=32 cluster=(1, 1, 1) shared=8:
          barrier full: TmaBarrier at=0

          scope thread {0}:
            mbarrier.init full, count=1
          <gap>
          scope thread {1}:
            mbarrier.arrive full -> %0
            mbarrier.wait full, %0
        """,
        "",
        "bar.sync number=0, threads=32",
    ),
    "OX4111": _explored(
        """
        program p threads=64 cluster=(1, 1, 1) shared=8:
          barrier full: TmaBarrier at=0

          scope thread {0}:
            mbarrier.init full, count=64
          bar.sync number=0, threads=64
          mbarrier.arrive full -> %0
          mbarrier.wait full, %0
          <gap>
          scope thread {0}:
            mbarrier.inval full
        """,
        "",
        "bar.sync number=0, threads=64",
    ),
    "OX4118": scripts(
        """
        from oxidecopy.engines.sim import explore


        @ox.pipeline(threads=64)
        def kernel(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
            tile = cta.shared(src)
            full = cta.barrier().init(1)
            y = cta.block_idx.x * 8
            with cta.elect() as leader:
                token = full.arrive_expect_tx(leader, tile)
                src.g2s(leader, tile, (y<gap>, 0), token)
                full.wait(token)
                src.s2g(leader, tile, (y, 0))
                leader.commit_group()
                leader.wait_group(0)


        launch = kernel[4].bind(ox.TmaDescriptor.tiled(dev.zeros((32, 32), ox.f32), box=(8, 32)))
        explore(launch.program, launch.bindings).check()
        """,
        " + 1",
        "",
    ),
    "OX4120": _edited(_REPLACED, _REPLACING, "fence.proxy.tensormap.acquire slots[0]", "fence.proxy.async.shared::cta"),
    "OX4122": _edited(_REPLACED, _REPLACING, "scope warps {0..31}", "scope warps {0..32}"),
    "OX4130": _edited(
        _SWIZZLED, _SWIZZLING, "at=0 ", "at=128 ", also='.replace("at=1024 ", "at=2048 ").replace("shared=1032", "shared=2056")'
    ),
    "OX3074": _verified(_EMPTY, "80", "90", launch="grid=(1, 1, 1), sm=<gap>"),
    "OX3210": _proved(_REPLACED, _REPLACING, "scope warps {0..31}", "scope warps {0..32}"),
    "OX4010": scripts(
        """
        from dataclasses import replace

        from oxidecopy.engines.sim import ForeignBuffer, explore


        @ox.pipeline(threads=32)
        def kernel(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D1]) -> None:
            tile = cta.shared(ox.f32, (64,), align=ox.A128)
            cta.fill(tile, 1.0)
            cta.sync()
            cta.store(out, tile, (0,))


        launch = kernel[1].bind(dev.empty((64,), ox.f32))
        bound = launch.bindings.arrays["out"]
        <gap>
        explore(launch.program, replace(launch.bindings, arrays={"out": bound})).check()
        """,
        "bound = replace(bound, buffer=ForeignBuffer(0x1000_0000))",
        "",
    ),
    "OX4016": _explored(
        """
        program p threads=32 cluster=(1, 1, 1) shared=0:
          share.tiles n, tiles=4
          scope thread {0}:
            loop i, start=0, stop=n, step=1:
              share.next t, trips=n, index=i<gap>
        """,
        " + 1",
        "",
    ),
    "OX4115": scripts(
        """
        from oxidecopy.engines.sim import explore


        @ox.pipeline(threads=32, cluster=(2, 1))
        def kernel(cta: ox.ClusterCta, out: ox.GlobalArray[ox.f32, ox.D1]) -> None:
            bar = cta.barrier().init(1)
            <gap>
            with cta.elect():
                bar.arrive_remote(1 - cta.cta_rank)
            bar.wait_phase(0)
            cta.cluster_sync()


        launch = kernel[2].bind(dev.empty((64,), ox.f32))
        explore(launch.program, launch.bindings).check()
        """,
        "",
        "cta.cluster_sync()",
    ),
    # ---- code for a GPU, which is made without one
    "OX5507": _encoded(
        """
        program p threads=64 cluster=(1, 1, 1) shared=16384:
          map src: f32 box=(64, 64)
          tile tile: f32 (64, 64) align=128 at=0 step=16384

          scope thread {<gap>}:
            cp.async.bulk.tensor.s2g src, tile, [0, 0]
            cp.async.bulk.commit_group
            cp.async.bulk.wait_group pending=0
        """,
        "0..1",
        "0",
        before=_MAP.format(box="(64, 64)"),
        launch='grid=(1, 1, 1), maps=(("src", src),)',
    ),
    "OX5509": scripts(
        """
        from oxidecopy.engines.cuda.code import encode


        @ox.pipeline(threads=32)
        def kernel(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D1]) -> None:
            tile = cta.shared(ox.f32, (64,), align=ox.A128)
            for i in range(<gap>):
                cta.fill(tile, i + 0.5)
                cta.sync()
            cta.store(out, tile, (0,))


        encode(kernel[1].bind(dev.zeros((64,), ox.f32)).verify())
        """,
        "200",
        "20",
    ),
    "OX5511": _encoded(
        """
        program p threads=96 cluster=(1, 1, 1) shared=0:
          scope warps {0..31}:
            bar.sync number=1, threads=64
          scope warps {32..<gap>}:
            bar.sync number=1, threads=64
        """,
        "95",
        "63",
    ),
    "OX5530": scripts(
        """
        from oxidecopy.engines.cuda.code import encode


        @ox.pipeline(threads=32)
        def kernel(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2, ox.<gap>], out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
            tile = cta.shared(src)
            full = cta.barrier().init(1)
            with cta.elect() as leader:
                token = full.arrive_expect_tx(leader, tile)
                src.g2s(leader, tile, (0, 0), token)
            full.wait(token)
            cta.store(out, tile, (0, 0))


        newer = ox.Device.open("sim", arch=100)
        src = ox.TmaDescriptor.tiled(newer.zeros((64, 32), ox.f32), box=(8, 32), swizzle=ox.<gap>)
        encode(kernel[1].bind(src, newer.zeros((8, 32), ox.f32)).verify())
        """,
        "Swizzle128BAtom32B",
        "Swizzle128B",
    ),
    "OX5532": scripts(
        """
        from oxidecopy.engines.cuda.code import encode
        from oxidecopy.engines.cuda.emit import emitted


        @ox.pipeline(threads=32)
        def kernel(cta: ox.Cta, src: ox.Im2colWideDescriptor[ox.f16, ox.D4], out: ox.GlobalArray[ox.f16, ox.D2]) -> None:
            tile = cta.shared(src, halo=2)
            full = cta.barrier().init(1)
            with cta.elect() as leader:
                token = full.arrive_expect_tx(leader, tile)
                src.g2s(leader, tile, (0, 0, 0, 0), token, halo=2, offset=0)
            full.wait(token)
            cta.store(out, tile, (0, 0))
            full.inval()


        newer = ox.Device.open("sim", arch=100)
        a = newer.zeros((2, 3, 9, 64), ox.f16)
        src = ox.TmaDescriptor.im2col_wide(a, lower=0, upper=-1, channels=64, pixels=16, swizzle=ox.Swizzle128B)
        launch = kernel[1].bind(src, newer.zeros((136, 64), ox.f16))
        <gap>(launch.verify())
        """,
        "encode",
        "emitted",
    ),
    # ---- the environment, which is read where a GPU is opened by its name
    "OX5017": scripts(_ENVIRONMENT.format("OXIDECOPY_CHECKED"), "perhaps", "yes"),
    "OX5337": scripts(_ENVIRONMENT.format("OXIDECOPY_WAIT_LIMIT_MS"), "soon", "500"),
}

"""Pages of the recorder's rules about who executes: blocks, leaders, groups, clusters."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.rule import Rule
from oxidecopy.rules.verifier_scripts import Twins, scripts, twins

_RECORDER: Final = "the recorder: the function runs once, before any thread does"
_HANDLES: Final = "the recorder: a handle stands for the block that gave it"


def _rule(number: str, error: str, title: str, why: str, source: str, shown: Twins) -> Rule:
    return Rule(id=number, title=title, error=error, why=why, source=source, wrong=shown.wrong, right=shown.right)


_LOAD: Final = """
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile)
        src.g2s(<gap>, tile, (0, 0), token)
    full.wait(token)
"""

BLOCK_RULES: Final[tuple[Rule, ...]] = (
    _rule(
        "OX1014",
        "ScopeError",
        "Copies and announcements are issued by a leader",
        "One thread issues them. Issued by all threads of a block, a copy is made as often as there are threads.",
        "CUDA Programming Guide, TMA: one thread initiates",
        twins(_LOAD, "cta", "leader"),
    ),
    _rule(
        "OX1015",
        "ScopeError",
        "Leaders and groups are given by their blocks",
        "They stand for threads that a block has picked; one made by hand would stand for nobody.",
        _HANDLES,
        twins(
            """
            full = cta.barrier().init(1)
            <gap>
            full.wait(token)
            """,
            "token = full.arrive_expect_tx(ox.Leader(), 0)",
            "with cta.elect() as leader:\n    token = full.arrive_expect_tx(leader, 0)",
        ),
    ),
    _rule(
        "OX1017",
        "ClusterError",
        "Cluster operations need a pipeline with a cluster",
        "Without one there are no other CTAs to reach.",
        "PTX ISA, cluster: declared at the launch",
        scripts(
            """
            @ox.pipeline(threads=128<gap>)
            def pipe(cta: ox.ClusterCta, out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
                cta.cluster_sync()

            pipe[2](dev.empty((64, 64), ox.f32))
            """,
            "",
            ", cluster=(2, 1)",
        ),
    ),
    _rule(
        "OX1018",
        "ScopeError",
        "A leader or a group is used inside its block",
        "Outside of it other threads execute: what one thread should do would be done by all.",
        _HANDLES,
        twins(
            """
            tile = cta.shared(src)
            full = cta.barrier().init(1)
            with cta.elect() as leader:
                token = full.arrive_expect_tx(leader, tile)
            <gap>
            full.wait(token)
            """,
            "src.g2s(leader, tile, (0, 0), token)",
            "    src.g2s(leader, tile, (0, 0), token)",
        ),
    ),
    _rule(
        "OX1019",
        "ScopeError",
        "A handle is used inside its pipeline",
        "It stands for something of the recording that made it. After that recording, or in another one, it stands for nothing.",
        _HANDLES,
        scripts(
            """
            kept = []

            @ox.pipeline(threads=128)
            def pipe(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
                kept.append(cta)
                cta.sync()

            pipe[2](dev.empty((64, 64), ox.f32))
            <gap>
            """,
            "kept[0].sync()",
            "",
        ),
    ),
    _rule(
        "OX1026",
        "ScopeError",
        "Blocks are closed, in the order in which they were opened",
        "What is recorded in a block that never closes would belong to nobody.",
        _RECORDER,
        twins("<gap>\n", "cta.elect().__enter__()", "with cta.elect():\n    pass"),
    ),
    _rule(
        "OX1028",
        "ScopeError",
        "`init` and `inval` are executed once, by all threads",
        "Both sync the CTA: in a block that not all threads execute, the others would wait for ever. In a loop the object would be made "
        "anew under those who use it.",
        "PTX ISA 9.7.13.15, mbarrier.init; bar.sync needs all threads",
        twins(
            "<gap>\nfull.wait(full.arrive())\n", "with cta.elect():\n    full = cta.barrier().init(128)", "full = cta.barrier().init(128)"
        ),
    ),
    _rule(
        "OX1030",
        "ScopeError",
        "A block has threads that execute it",
        "A block narrows the threads of the one around it. Where none is left it would never run, which is hardly what was meant.",
        _RECORDER,
        twins(
            """
            with cta.warps(0, 1):
                with cta.thread(<gap>):
                    cta.fence_proxy_async()
            """,
            "64",
            "31",
        ),
    ),
    _rule(
        "OX1040",
        "ScopeError",
        "At most 15 groups have a sync of their own",
        "A CTA has 16 hardware barriers; number 0 is `cta.sync`.",
        "PTX ISA, bar: 16 per CTA",
        scripts(
            """
            @ox.pipeline(threads=512)
            def pipe(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
                for warp in range(<gap>):
                    with cta.warps(warp, warp + 1) as group:
                        group.sync()

            pipe[2](dev.empty((64, 64), ox.f32))
            """,
            "16",
            "15",
        ),
    ),
    _rule(
        "OX1043",
        "ScopeError",
        "Threads and warps are those of the CTA",
        "Others do not exist, and whoever waits for them waits for ever.",
        "the pipeline's own `threads=`",
        twins(
            """
            with cta.thread(<gap>):
                cta.fence_proxy_async()
            """,
            "128",
            "127",
        ),
    ),
    _rule(
        "OX1071",
        "ScopeError",
        "A block is entered once",
        "It becomes one block of the program. A second one may have other threads and needs a handle of its own.",
        _HANDLES,
        twins(
            """
            block = cta.elect()
            with block:
                pass
            <gap>
                pass
            """,
            "with block:",
            "with cta.elect():",
        ),
    ),
)

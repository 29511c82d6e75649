"""Programs that hang or fault, past the verifier, for tests of what an engine does then."""

from __future__ import annotations

import oxidecopy as ox
from oxidecopy.host.bound import BoundLaunch
from oxidecopy.program.program import Program
from oxidecopy.program.verified import Assumptions, VerifiedProgram, seal

Out = ox.GlobalArray[ox.f32, ox.D2]
Src = ox.TmaDescriptor[ox.f32, ox.D2]


@ox.pipeline(threads=64)
def hangs(cta: ox.Cta, out: Out) -> None:
    full = cta.barrier().init(1)
    full.wait_phase(0)


@ox.pipeline(threads=32)
def faults(cta: ox.Cta, src: Src, out: Out) -> None:
    """Its inner coordinate is no multiple of 16 bytes: ILLEGAL_INSTRUCTION (715), and the context is lost."""
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile)
        src.g2s(leader, tile, (0, 1), token)
    full.wait(token)
    cta.store(out, tile, (0, 0))
    full.inval()


def unproven(launch: BoundLaunch, program: Program | None = None) -> VerifiedProgram:
    """A proof that nobody made, of the launch's program or of another one in its place."""
    program = program or launch.program
    return seal(program, Assumptions(sm=launch.engine.sm, shared_bytes=program.shared_bytes, launch=launch.launch), ())

"""`oxidecopy emit`: a verified program as source of another language."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from oxidecopy.cli.options import AsJson, Inputs, Target
from oxidecopy.cli.report import OK, err, guarded, print_json

HELP: Final = """Print a pipeline of FILE as readable CUDA C++, recorded and verified through its recipe.

One function per PTX instruction, your names, your lines beside the statements. It compiles with nvcc and NVRTC, includes nothing, and how a
host launches it stands at its end. Compile with -DOXIDECOPY_BOUNDED_WAITS for waits that give up.
"""
EXAMPLES: Final = ("oxidecopy emit mine.py --cuda", "oxidecopy emit mine.py:copy --cuda -o copy.cu")


@guarded
def command(
    target: Target,
    *,
    cuda: Annotated[bool, typer.Option("--cuda", help="As CUDA C++, the only language so far.")] = True,
    inputs: Inputs = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.cu", help="Write it there instead.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Verifies; nothing is run."""
    from oxidecopy.cli import launch
    from oxidecopy.cli.files import choose, load, split_target
    from oxidecopy.engines.cuda.emit import emitted
    from oxidecopy.host.npy import write_whole
    from oxidecopy.typed.sites import no_sites

    path, name = split_target(target)
    chosen = choose(load(path), name)
    proof = launch.prepare(chosen, launch.open_device("sim"), launch.read_inputs(inputs or ())).launch.verify()
    made = emitted(proof)
    if output is not None:
        with no_sites():
            write_whole(output, lambda stream: stream.write(made.source.encode()))
        err().print(f"{output}: kernel {made.kernel_name}", highlight=False)
    if as_json:
        print_json(
            {
                "pipeline": chosen.pipeline,
                "recipe": chosen.recipe.name,
                "kernel": made.kernel_name,
                "threads": made.threads,
                "cluster": list(made.cluster),
                "shared_bytes": made.shared_bytes,
                "parameters": [{"name": p.name, "kind": p.kind, "of": p.of, "type": p.ctype, "bytes": p.nbytes} for p in made.parameters],
                "source": made.source,
            }
        )
    elif output is None:
        sys.stdout.write(made.source)
    return OK

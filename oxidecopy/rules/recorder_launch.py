"""Pages of the rules about pipelines: their declaration, their descriptors, and the arguments they are launched with."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.rule import Rule
from oxidecopy.rules.verifier_scripts import Twins, scripts, twins

_DECLARED: Final = "how pipelines are declared: `@ox.pipeline(threads=, cluster=)`"
_LAUNCHED: Final = "how pipelines are launched: `pipe[grid](arguments)`"
_HEAD: Final = (
    "@ox.pipeline(threads=128)\ndef pipe(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], n: ox.Idx) -> None:\n    cta.sync()\n\n"
)
_ALONE: Final = "@ox.pipeline(threads=128)\ndef pipe(cta: ox.Cta, {parameter}) -> None:\n    cta.sync()\n\npipe[2]({argument})\n"
_DESC: Final = "src = ox.TmaDescriptor.tiled(dev.empty((128, 128), ox.f32), box=(64, 64))\n"


def _rule(number: str, error: str, title: str, why: str, source: str, shown: Twins) -> Rule:
    return Rule(id=number, title=title, error=error, why=why, source=source, wrong=shown.wrong, right=shown.right)


def _launched(wrong: str, right: str) -> Twins:
    return scripts(f"{_HEAD}{_DESC}<gap>\n", wrong, right)


def _declared(script: str, wrong: str, right: str) -> Twins:
    return scripts(f"{script}    cta.sync()\n\npipe[2](dev.empty((128, 128), ox.f32))\n", wrong, right)


LAUNCH_RULES: Final[tuple[Rule, ...]] = (
    # ---- declarations
    _rule(
        "OX1031",
        "UsageError",
        "A pipeline declares the threads of a CTA, 1 to 1,024",
        "The recorder needs them to know who executes, the launch to ask for them.",
        f"CUDA launch limits; {_DECLARED}",
        _declared(
            "@ox.pipeline(threads=<gap>)\ndef pipe(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D2]) -> None:\n",
            "2048",
            "1024",
        ),
    ),
    _rule(
        "OX1036",
        "RecordError",
        "Parameters are annotated with types that a pipeline understands",
        "The annotation says what is recorded and what stays open until the launch. It is read at run time too, so its names must be "
        "imported and defined at module level.",
        _DECLARED,
        _declared("@ox.pipeline(threads=128)\ndef pipe(cta: ox.Cta, out: <gap>) -> None:\n", "np.ndarray", "ox.GlobalArray[ox.f32, ox.D2]"),
    ),
    _rule(
        "OX1065",
        "UsageError",
        "A cluster has 1 to 16 CTAs",
        "The hardware groups no more; more than 8 is not portable.",
        "CUDA Programming Guide, thread block clusters",
        scripts(
            """
            @ox.pipeline(threads=128, cluster=<gap>)
            def pipe(cta: ox.ClusterCta, out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
                cta.cluster_sync()

            pipe[8, 4](dev.empty((128, 128), ox.f32))
            """,
            "(8, 4)",
            "(8, 2)",
        ),
    ),
    _rule(
        "OX1067",
        "RecordError",
        "A pipeline is a function of `cta` and named parameters that returns nothing",
        "It is called once, to be recorded. What it returned would be lost, and a generator or a coroutine would not run at all.",
        _DECLARED,
        _declared(
            "@ox.pipeline(threads=128)\ndef pipe(cta: ox.Cta, <gap>out: ox.GlobalArray[ox.f32, ox.D2]) -> None:\n",
            "*",
            "",
        ),
    ),
    # ---- calls inside
    _rule(
        "OX1009",
        "RecordError",
        "Calls fit the signatures of the API",
        "Python itself refuses them, or would take one thing for another. The error names your line.",
        "the signatures, which type checkers know",
        twins(
            """
            full = cta.barrier().init(128)
            full.wait(<gap>)
            """,
            "",
            "full.arrive()",
        ),
    ),
    _rule(
        "OX1047",
        "DTypeError",
        "Swizzles, alignments, kinds and brands are classes of their family",
        "`ox.A128` is an alignment, `ox.Swizzle128B` a swizzle mode: they are told apart by their type.",
        "the typed surface",
        scripts(
            """
            a = dev.empty((128, 128), ox.f32)
            ox.TmaDescriptor.tiled(a, box=(64, 32), swizzle=<gap>)
            """,
            "ox.A128",
            "ox.Swizzle128B",
        ),
    ),
    _rule(
        "OX1059",
        "ScopeError",
        "Arrays and descriptors reach a pipeline as its parameters",
        "A recorded program knows its arguments by name, and is used again with others. One that is captured by the function is not among "
        "them.",
        _DECLARED,
        scripts(
            f"{_DESC}\n"
            "@ox.pipeline(threads=128)\n"
            "def pipe(cta: ox.Cta, given: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:\n"
            "    tile = cta.shared(<gap>)\n\n"
            "pipe[2](src)\n",
            "src",
            "given",
        ),
    ),
    _rule(
        "OX1060",
        "ScopeError",
        "Addresses, contents and maps of arguments are not known while recording",
        "They may differ from launch to launch. Element type and `shape` are there, the extents as symbols.",
        "the recorder: a program is recorded once for all extents",
        twins(
            """
            rows = <gap>
            with cta.when(rows > 64):
                cta.sync()
            """,
            "out.numpy().shape[0]",
            "out.shape[0]",
        ),
    ),
    # ---- descriptors
    _rule(
        "OX1045",
        "ScopeError",
        "A descriptor is made by its factory",
        "The factory checks the parameters and gives the descriptor its type.",
        "CUDA driver API, cuTensorMapEncodeTiled",
        scripts("a = dev.empty((128, 128), ox.f32)\nox.TmaDescriptor<gap>(a, box=(64, 64))\n", "", ".tiled"),
    ),
    _rule(
        "OX1046",
        "DTypeError",
        "A descriptor is made over a device array",
        "It holds a device address. `dev.array` copies a numpy array to the device.",
        "CUDA driver API, cuTensorMapEncodeTiled: globalAddress",
        scripts("a = np.ones((128, 128), np.float32)\nox.TmaDescriptor.tiled(<gap>, box=(64, 64))\n", "a", "dev.array(a)"),
    ),
    # ---- launches
    _rule(
        "OX1032",
        "ArgumentError",
        "A launch passes one argument for each parameter",
        "As with any function; `cta` is not among them.",
        _LAUNCHED,
        _launched("pipe[2, 2](src)", "pipe[2, 2](src, 4)"),
    ),
    _rule(
        "OX1033",
        "ArgumentError",
        "A launch has a grid",
        "How many CTAs run is no property of the pipeline.",
        _LAUNCHED,
        _launched("pipe(src, 4)", "pipe[2, 2](src, 4)"),
    ),
    _rule(
        "OX1034",
        "ArgumentError",
        "A grid is 1 to 3 positive integers: x, y, z",
        "x may reach 2^31 - 1, y and z 65,535.",
        "CUDA launch limits",
        _launched("pipe[2, 0](src, 4)", "pipe[2, 1](src, 4)"),
    ),
    _rule(
        "OX1035",
        "ArgumentError",
        "A scalar fits its element type",
        "Integers are whole and in range, which NaN is not; floats take any number, which is rounded.",
        _LAUNCHED,
        scripts(
            """
            @ox.pipeline(threads=128)
            def pipe(cta: ox.Cta, out: ox.GlobalArray[ox.i32, ox.D2], value: ox.Scalar[ox.i32]) -> None:
                tile = cta.shared(ox.i32, (64, 64), align=ox.A128)
                cta.fill(tile, value)
                cta.sync()
                cta.store(out, tile, (0, 0))

            pipe[1](dev.empty((64, 64), ox.i32), <gap>)
            """,
            'float("nan")',
            "7",
        ),
    ),
    _rule(
        "OX1050",
        "ArgumentError",
        "All arguments of a launch live on one device",
        "A kernel runs on one device and reaches its memory.",
        _LAUNCHED,
        scripts(
            """
            @ox.pipeline(threads=128)
            def pipe(cta: ox.Cta, a: ox.GlobalArray[ox.f32, ox.D2], b: ox.GlobalArray[ox.f32, ox.D2]) -> None:
                cta.sync()

            other = <gap>
            pipe[2](dev.empty((64, 64), ox.f32), other.empty((64, 64), ox.f32))
            """,
            'ox.Device.open("sim")',
            "dev",
        ),
    ),
    _rule(
        "OX1051",
        "ArgumentError",
        "A stream is a handle, an integer from 0 to 2^64 - 1, or has __cuda_stream__",
        "Those are the two forms in which libraries hand streams to each other. DLPack's -1 (no waiting) is no stream to launch on. The "
        "simulator has no streams, and refuses what a GPU would.",
        "cuda.core, the __cuda_stream__ protocol",
        _launched('pipe[2].on("stream")(src, 4)', "pipe[2].on(0)(src, 4)"),
    ),
    _rule(
        "OX1052",
        "ArgumentError",
        "A launch has at least one array or descriptor",
        "It says on which device the launch runs, and without one nothing could come of it.",
        _LAUNCHED,
        Twins(
            _ALONE.format(parameter="n: ox.Idx", argument="4"),
            _ALONE.format(parameter="out: ox.GlobalArray[ox.f32, ox.D2]", argument="dev.empty((128, 128), ox.f32)"),
        ),
    ),
    _rule(
        "OX1053",
        "ArgumentError",
        "An argument is what its parameter's annotation says",
        "Element type, rank, swizzle and box are part of the recording: another one would be another program.",
        _LAUNCHED,
        _launched("pipe[2, 2](src, 4.5)", "pipe[2, 2](src, 4)"),
    ),
)

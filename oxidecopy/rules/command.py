"""Rules of the command line. Their scripts run commands through `oxidecopy.cli.invoke`, in a folder of their own."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.rule import Rule

# A file with one launch that runs, for the scripts to write.
_COPY: Final = '''
from pathlib import Path
from oxidecopy.cli import invoke

COPY = """
import numpy as np
import oxidecopy as ox

@ox.pipeline(threads=32)
def copy(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D1], out: ox.GlobalArray[ox.f32, ox.D1]) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, (0,), token)
    full.wait(token)
    cta.store(out, tile, (0,))
    full.inval()

@copy.recipe
def whole(dev, x=None):
    x = np.arange(64, dtype=np.float32) if x is None else x
    src, out = dev.array(x), dev.empty(x.shape, ox.f32)
    return ox.Recipe(launch=copy[1].bind(ox.TmaDescriptor.tiled(src, box=(64,)), out), outputs={"out": out}, expected={"out": x})
"""
Path("tiles.py").write_text(COPY)
'''
# The launch with a loop in it, of which all schedules are asked for.
_LOOP: Final = """LOOP = "for _ in cta.range({}):\\n        cta.sync()\\n    full.wait"
Path("tiles.py").write_text(COPY.replace("full.wait", LOOP))
invoke("check", "tiles.py", "--no-types", "--schedules", "all")
"""
_ALONE: Final = "from oxidecopy.cli import invoke\n\n"
_CLI: Final = "how `oxidecopy` is used; `oxidecopy run --help`"


def _rule(number: int, title: str, why: str, wrong: str, right: str, *, error: str = "UsageError", source: str = _CLI) -> Rule:
    return Rule(id=f"OX60{number:02}", title=title, error=error, why=why, source=source, wrong=_COPY + wrong, right=_COPY + right)


RULES: Final[tuple[Rule, ...]] = (
    _rule(
        1, "The file named on the command line can be read.", "There is nothing to run otherwise.",
        'invoke("run", "tile.py")\n', 'invoke("run", "tiles.py")\n',
    ),
    _rule(
        2, "The file loads as a Python module.",
        "Pipelines and recipes are found by executing the file, under a name that is not `__main__`: what a script does only when it is "
        'started stays under `if __name__ == "__main__":`. The file and line are where Python stopped.',
        'Path("tiles.py").write_text(COPY + "import no_such_package")\ninvoke("run", "tiles.py")\n', 'invoke("run", "tiles.py")\n',
    ),
    _rule(
        3, "The file has a pipeline with a recipe at its top level.",
        "A pipeline alone does not say on which arrays and grid it runs, nor what its result must be: its recipe does.",
        'Path("tiles.py").write_text(COPY.replace("@copy.recipe", ""))\ninvoke("run", "tiles.py")\n', 'invoke("run", "tiles.py")\n',
        source="`Pipeline.recipe`",
    ),
    _rule(
        4, "The name after FILE: picks exactly one launch.",
        "It is the name of a pipeline or of a recipe in the file. It may be left out where only one launch is not declared to be refused.",
        'invoke("run", "tiles.py:cpoy")\n', 'invoke("run", "tiles.py:copy")\n',
    ),
    _rule(
        5, "As many inputs are given as the recipe takes.",
        "Each --input becomes one argument of the recipe after the device, in order; arguments with a default may be left out.",
        'np.save("x.npy", np.ones(64, np.float32))\ninvoke("run", "tiles.py", "--input", "x.npy", "--input", "x.npy")\n',
        'np.save("x.npy", np.ones(64, np.float32))\ninvoke("run", "tiles.py", "--input", "x.npy")\n',
    ),
    _rule(
        6, "A recipe returns an ox.Recipe whose expected results are among its outputs.",
        "The command line launches what it returns and compares the outputs; an exception of the recipe's own is shown with its line.",
        'Path("tiles.py").write_text(COPY.replace("src, out =", "return x; src, out ="))\ninvoke("run", "tiles.py")\n',
        'invoke("run", "tiles.py")\n', source="`ox.Recipe`",
    ),
    _rule(
        7, "The outputs equal what the recipe expects.",
        "Copies keep every bit, so results are compared byte for byte; only NaNs may differ in their bits. A difference is an error of the "
        "pipeline, or of the expectation.",
        """Path("tiles.py").write_text(COPY.replace('"out": x}', '"out": x + 1}'))\ninvoke("run", "tiles.py")\n""",
        'invoke("run", "tiles.py")\n', error="ExecutionError",
    ),
    _rule(
        8, "The output file is in a folder that exists.",
        "It is looked for before anything runs, so that no long run ends without its result.",
        'invoke("run", "tiles.py", "--output", "results/y.npy")\n',
        'Path("results").mkdir()\ninvoke("run", "tiles.py", "--output", "results/y.npy")\n',
    ),
    _rule(
        9, "A rule is named by its id.", "Every error ends in one, in brackets.",
        'invoke("explain", "OX9999")\n', 'invoke("explain", "OX6009")\n', source="`oxidecopy explain` lists all",
    ),
    _rule(
        10, "A launch that is declared to be refused is refused, by the rule it names.",
        "A lesson that is broken on purpose shows an error; when it runs, or fails by another rule, it teaches something wrong.",
        """Path("tiles.py").write_text(COPY.replace(".recipe", ".recipe(refused='OX3001')"))\ninvoke("run", "tiles.py")\n""",
        'invoke("run", "tiles.py")\n', error="ExecutionError", source="`Pipeline.recipe(refused=...)`",
    ),
    _rule(
        11, "mypy, where it is installed, answers.",
        "`oxidecopy check` reports a mypy that crashes, hangs or cannot read its configuration as an error of the file: silence would read "
        "as a clean bill.",
        'Path("mypy.ini").write_text("strict = True\\n")\ninvoke("check", "tiles.py")\n',
        'Path("mypy.ini").write_text("[mypy]\\nfollow_imports = skip\\n")\ninvoke("check", "tiles.py")\n',
        error="ExecutionError", source="mypy's exit status: 0 and 1 are answers, 2 is none",
    ),
    Rule(
        id="OX6012",
        title="The lessons of the tour are installed.",
        error="UsageError",
        why="`oxidecopy demo` runs the numbered files of examples/ beside a checkout, or its own copy of them: only a broken install "
        "lacks both.",
        source="`oxidecopy demo --help`",
    ),
    Rule(
        id="OX6013",
        title="`import oxidecopy` imports neither numpy nor cuda.",
        error="ExecutionError",
        why="Names are loaded when they are first used, so the import stays quick and needs no driver. "
        "`oxidecopy bench sim` finds a version that breaks it.",
        source="the speed this version promises: import in 50 ms",
    ),
    Rule(
        id="OX6014",
        title="What is measured or compared on a GPU is given one.",
        error="DeviceError",
        why="`oxidecopy bench gpu`, `oxidecopy conformance --emitted` and `oxidecopy conformance descriptors` have nothing to say of a "
        "simulator.",
        source="`oxidecopy bench gpu --help`",
        wrong=_ALONE + 'invoke("conformance", "--emitted", "--device", "sim", "--only", "clusters")\n',
        right=_ALONE + 'invoke("conformance", "--device", "sim", "--only", "clusters")\n',
    ),
    _rule(
        20,
        "What is drawn is one box by its options, or a pipeline's tiles.",
        "A pipeline says itself what its tiles are and where they lie; options say all of a box, in names and numbers that exist.",
        'invoke("show", "tile", "--box", "64,32", "--dtype", "float")\n',
        'invoke("show", "tile", "--box", "64,32", "--dtype", "f32", "--swizzle", "128B")\n',
        source="`oxidecopy show tile --help`",
    ),
    _rule(
        21,
        "A tile is drawn at a shared address where a copy can have it.",
        "Tensor copies fault (CUresult 716) where the address is no multiple of 128 bytes, swizzled or not; one CTA has 2^24 addresses. "
        "Where a swizzle's pattern wants more (1,024 bytes for 128B), the picture is drawn, rotated as the hardware does it, and says so.",
        'invoke("show", "tile", "--box", "64,32", "--at", "0x440")\n',
        'invoke("show", "tile", "--box", "64,32", "--at", "0x480")\n',
        source="measured on an H200",
    ),
    _rule(
        22,
        "A picture is a .svg file, or a .png file where matplotlib is installed.",
        "SVG needs nothing but this package; PNG is drawn by matplotlib, which the extra `plot` brings.",
        'invoke("show", "tile", "--box", "64,32", "--output", "tile.pdf")\n',
        'invoke("show", "tile", "--box", "64,32", "--output", "tile.svg")\n',
        source="`oxidecopy show tile --help`",
    ),
    _rule(
        23,
        "Raw tensor maps are 128 bytes each, as bytes or as hex digits.",
        "A CUtensorMap is 128 bytes, of which no part can be left out. Of a pipeline, descriptors are shown by their parameters.",
        'Path("map.bin").write_bytes(bytes(64))\ninvoke("show", "descriptor", "map.bin")\n',
        'Path("map.bin").write_bytes(bytes(128))\ninvoke("show", "descriptor", "map.bin")\n',
        source="cuda.h, CUtensorMap",
    ),
    _rule(
        27,
        "Results are held against a file of recorded ones.",
        "`oxidecopy conformance record FILE` writes it, as gzip of JSON; with --check it is read.",
        'Path("results.gz").write_bytes(b"{}")\ninvoke("conformance", "record", "results.gz", "--check", "--device", "sim")\n',
        "import gzip\n\nPath('results.gz').write_bytes(gzip.compress(b'{\"about\": {\"copies\": 0}, \"cases\": []}'))\n"
        'invoke("conformance", "record", "results.gz", "--check", "--device", "sim")\n',
    ),
    _rule(
        24,
        "Tiles of 6-bit elements under the 128B_ATOM_64B swizzle are stored, not loaded.",
        "Loads write sixteen 6-bit elements to twelve bytes, with a gap; stores read one from each byte. This swizzle has the second form.",
        'invoke("show", "tile", "--box", "8,128", "--dtype", "u6x16_align16b", "--swizzle", "128B_ATOM_64B")\n',
        'invoke("show", "tile", "--box", "8,128", "--dtype", "u6x16_align16b", "--swizzle", "128B_ATOM_64B", "--stored")\n',
        source="CUDA driver API, cuTensorMapEncodeTiled",
    ),
    _rule(
        25,
        "--schedules takes a number of schedules, or all.",
        "N schedules are those of the seeds 0 to N-1. All schedules of a launch are tried up to equivalence: orders of steps that nobody "
        "can tell apart count once.",
        'invoke("check", "tiles.py", "--no-types", "--schedules", "many")\n',
        'invoke("check", "tiles.py", "--no-types", "--schedules", "all")\n',
        source="`oxidecopy check --help`",
    ),
    _rule(
        26,
        "`check --schedules all` has tried all schedules, or it is an error.",
        "There is a bound on states (20,000) and on time (20 s) of each launch, and on its steps with loops written out (5,000 of a "
        "cluster); a launch whose CTAs share tiles by a counter may share them in more ways than are tried. What was found before is "
        "reported as well. A proof by the verifier holds for all schedules and needs none of this.",
        _LOOP.format(9000),
        _LOOP.format(9),
        error="ExecutionError",
        source="`oxidecopy check --help`",
    ),
    _rule(
        50,
        "A timeline is written as HTML, JSON, PNG or SVG.",
        "The ending of the file's name says which: a page to look at, trace events for Perfetto, or a picture.",
        'invoke("trace", "tiles.py", "-o", "tiles.txt")\n',
        'invoke("trace", "tiles.py", "-o", "tiles.html")\n',
        source="`oxidecopy trace --help`",
    ),
    _rule(
        51,
        "The CTAs that a timeline follows are CTAs of the grid.",
        "--cta takes block indices, X, X,Y or X,Y,Z; --ctas follows the first ones.",
        'invoke("trace", "tiles.py", "--cta", "7")\n',
        'invoke("trace", "tiles.py", "--cta", "0")\n',
        source="`oxidecopy trace --help`",
    ),
    Rule(
        id="OX6052",
        title="On a GPU a timeline follows the first CTAs.",
        error="UsageError",
        why="Its interpreter stamps for CTAs below a number. The simulator follows any, and knows when each copy lands and what ends each "
        "wait: bind a launch of the same shape there.",
        source="`oxidecopy.trace.trace`",
        wrong="",
        right="",
    ),
    Rule(
        id="OX6053",
        title="On a GPU a timeline is of a program with at most 32 classes of threads.",
        error="DeviceCodeError",
        why="The interpreter that stamps gives each class of threads warps of its own. The simulator has no such limit.",
        source="`oxidecopy.engines.cuda.timed`",
        wrong="",
        right="",
    ),
)  # fmt: skip

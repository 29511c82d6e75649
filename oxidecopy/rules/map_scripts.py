"""How the pages about parameters of tensor maps are written: the same call of the validator twice, one edit apart."""

from __future__ import annotations

from typing import Any, Final

from oxidecopy.rules.rule import Rule

API: Final = "CUDA driver API, cuTensorMapEncodeTiled"
API_IM2COL: Final = "CUDA driver API, cuTensorMapEncodeIm2col"
API_WIDE: Final = "CUDA driver API, cuTensorMapEncodeIm2colWide"
MEASURED: Final = "measured on an H200"
BOTH: Final = f"{API}; {MEASURED}"

_SHARED: Final = {"dtype": 7, "global_address": 0x1000}  # f32
_BASES: Final[dict[str, dict[str, Any]]] = {
    "tiled": {"global_dim": (64, 64), "global_strides": (256,), "box_dim": (32, 32), "element_strides": (1, 1)},
    "im2col": {
        "global_dim": (4, 9, 9, 64),
        "global_strides": (20736, 2304, 256),
        "element_strides": (1, 1, 1, 1),
        "lower": (-1, -1),
        "upper": (-1, -1),
        "channels": 32,
        "pixels": 64,
    },
}
_BASES["interleaved"] = {**_BASES["tiled"], "global_dim": (4, 8, 64), "global_strides": (16384, 2048)} | {
    "box_dim": (1, 1, 64),
    "element_strides": (1, 1, 1),
    "interleave": 2,
    "swizzle": 1,
}
_BASES["im2col_wide"] = {**_BASES["im2col"], "lower": (-1,), "upper": (-1,), "swizzle": 3}
_BASES["packed"] = {**_BASES["tiled"], "dtype": 14, "global_dim": (64, 512), "box_dim": (32, 128)}


def judged(
    number: int,
    title: str,
    why: str,
    source: str,
    wrong: dict[str, Any],
    right: dict[str, Any] | None = None,
    *,
    base: str = "tiled",
    arch: int = 90,
    warnings: bool = False,
) -> Rule:
    """A page whose scripts judge the parameters of a map: `wrong` and `right` are what they change of a legal one."""
    scripts = [_script(base, change, arch, warnings=warnings) for change in (wrong, right or {})]
    return Rule(id=f"OX{number}", title=title, error="DescriptorError", why=why, source=source, wrong=scripts[0], right=scripts[1])


def _script(base: str, changes: dict[str, Any], arch: int, *, warnings: bool) -> str:
    kind = {"kind": base} if base.startswith("im2col") else {}
    fields = {**_SHARED, **kind, **_BASES[base], **changes}
    lines = "".join(f"    {name}={value!r},\n" for name, value in fields.items() if name != "arch")
    sm = changes.get("arch", arch)
    return f"p = ox.MapParameters(\n{lines})\nox.validate(p, arch={sm}).check({'warnings=True' if warnings else ''})\n"

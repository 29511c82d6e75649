"""Programs that are recognised as a whole, by `once.py`, `apply.py` and `product.py`, and why others are left to records."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from oxidecopy.engines.cuda.code.image import Where


@final
class LeftError(Exception):
    """It is none of these programs; `why`, and the user's line that it is about."""

    def __init__(self, why: str, where: Where | None = None) -> None:
        site = None if where is None else where.site
        super().__init__(why if site is None else f"{why} ({PurePath(site.file.replace(chr(92), '/')).name}:{site.line})")

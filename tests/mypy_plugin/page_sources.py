"""The scripts of the plugin's pages as modules."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.typed import TYPED

PAGES: Final = {
    f"page_{rule}_{side}": script
    for rule, scripts in TYPED.items()
    for side, script in (("wrong", scripts.wrong), ("right", scripts.right))
}

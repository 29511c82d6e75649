"""Images of family product held against their program: head and table say what each agent of each block does, event by event."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.code import Image
from oxidecopy.engines.cuda.code.contract import WHOLE, gathered
from oxidecopy.program.expansion import expanded
from oxidecopy.program.program import Launch, Program
from tests.helpers.device_emulator import Event, fields, told_by
from tests.helpers.device_walk import Place, Walk, places


def head_of(image: Image) -> dict[str, Any]:
    return fields(image.code, abi.PRODUCT)


def loads_of(image: Image) -> list[dict[str, Any]]:
    size = abi.PRODUCT_LOAD_BYTES
    return [fields(image.code, abi.PRODUCT_LOAD, abi.PRODUCT_LOAD_AT + size * j) for j in range(head_of(image)["loads"])]


def entries(image: Image, block: int) -> list[tuple[int, ...]]:
    """The table's, of a block's tiles."""
    head = head_of(image)
    words = struct.Struct(f"<{head['entry_words']}i")
    found = [words.unpack_from(image.tiles, (block * head["turns"] + turn) * words.size) for turn in range(head["turns"])]
    there = [entry for entry in found if entry[0]]
    assert found[: len(there)] == there
    return there


def produced(image: Image, block: int) -> Iterator[Event]:
    """What the kernel's producer does, as the program's events are written."""
    head, loads, found = head_of(image), loads_of(image), entries(image, block)
    for turn, entry in enumerate(found):
        for k in range(head["steps"]):
            stage = (turn * head["steps"] + k) % head["stages"]
            yield ("announced", head["full"] + 8 * stage, head["nbytes"])
            for j, load in enumerate(loads):
                at = abi.PRODUCT_PLACES + abi.PRODUCT_PLACE_WORDS * j
                corner = [entry[at + d] + k * load["growth"][d] for d in range(load["rank"])]
                tile = found[0][at + abi.PRODUCT_PLACE_WORDS - 1] + stage * load["stride"]  # asked for once
                mask = load["mask"] if load["multicast"] else None
                yield ("load", image.maps[load["map"]], tuple(corner[::-1]), tile, head["full"] + 8 * stage, mask)


def contracted(image: Image, place: Place, group: int) -> Iterator[Event]:
    """What its groups do."""
    head = head_of(image)
    for turn, entry in enumerate(entries(image, place.number)):
        at = abi.PRODUCT_CORNER + abi.PRODUCT_RANK_MAX * group
        corner, rows = entry[at : at + head["rank"]], 128 if head["shape"] == abi.ContractShape.M128N128 else 64
        where = (head["full"], head["empty"], head["a"] + group * rows * 128, head["b"], head[f"out{group}"])
        numbers = (turn * head["steps"], head["steps"])
        yield ("contract", image.maps[head["map"]], tuple(corner[::-1]), numbers, where, head["stages"], told_by(head, place.rank))


def inits(image: Image) -> dict[int, int]:
    """Arrivals that complete a phase, by barrier."""
    head = head_of(image)
    return {head[ring] + 8 * i: head[f"{ring}_count"] for ring in ("full", "empty") for i in range(head["stages"])}


def said(events: list[Event]) -> Iterator[Event]:
    """Of a program's events, those of a product."""
    for event in events:
        if event[0] == "mbarrier_arrive_expect_tx":
            yield ("announced", event[1], event[2])
        elif event[0] == "load":
            yield event
        elif event[0] == "contract":
            yield (*event[:3], event[3][:2], *event[4:])  # not where it stages: it waits before it does


def compare_product(program: Program, launch: Launch, image: Image) -> None:
    """AssertionError where the program says something else."""
    assert image.family in abi.PRODUCT_FAMILIES
    walk = Walk(gathered(expanded(program, WHOLE)), launch)
    words = [agent.words for agent in image.agents]
    groups = head_of(image)["groups"]
    for place in places(walk.program, launch):
        mine = [list(contracted(image, place, i)) for i in range(groups)] + [list(produced(image, place.number))]
        found = {str(who): walk.events(who, place, None) for who in walk.classes}
        assert {event[1]: event[2] for events in found.values() for event in events if event[0] == "mbarrier_init"} == inits(image)
        assert [list(said(found.pop(name))) for name in words[: groups + 1]] == mine
        assert not any(list(said(events)) for events in found.values())

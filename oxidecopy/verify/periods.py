"""Finds and skips whole periods of long loops."""
from __future__ import annotations
from oxidecopy.verify.code import Item
from oxidecopy.verify.state import Agent, Machine

class Periods:
    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def edge(self, agent: Agent, item: Item) -> None:
        return

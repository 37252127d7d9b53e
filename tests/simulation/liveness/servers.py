"""Servers with outages of random length: refused at once, or silent until a timeout."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from random import Random
from typing import Literal

__all__ = ["Outage", "Server", "draw_server"]

State = Literal["up", "refuses", "silent"]


@dataclass(frozen=True, slots=True)
class Outage:
    """``silent``: connections are kept, and nothing is answered. Times in seconds."""

    begins: float
    ends: float
    silent: bool


@dataclass(slots=True)
class Server:
    """``outages`` ascend and do not overlap."""

    name: str
    outages: list[Outage] = field(default_factory=list)

    def state(self, at: float) -> State:
        """Return what a request meets that is sent at a time."""
        for one in self.outages:
            if one.begins <= at < one.ends:
                return "silent" if one.silent else "refuses"
        return "up"

    def up_since(self, at: float) -> float:
        """Return when the last outage ended, or infinity during an outage."""
        ended = 0.0
        for one in self.outages:
            if one.begins <= at < one.ends:
                return math.inf
            if one.ends <= at:
                ended = one.ends
        return ended


def draw_server(random: Random, name: str, until: float, every: float) -> Server:
    """Return a server whose outages begin once in about ``every`` seconds."""
    server = Server(name)
    at = random.choice((0.0, random.expovariate(1 / every)))
    while at < until:
        length = random.choice((3.0, 60.0, 600.0, 1800.0)) * random.uniform(0.3, 2.0)
        server.outages.append(Outage(at, at + length, random.random() < 0.6))
        at += length + random.expovariate(1 / every)
    return server

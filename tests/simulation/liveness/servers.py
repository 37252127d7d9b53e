"""Servers with outages of random length: they refuse at once, are silent, or answer slowly."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Literal

State = Literal["up", "refuses", "silent", "slow"]


@dataclass(frozen=True, slots=True)
class Outage:
    """Times in seconds.

    ``state``: "silent" if connections are kept and nothing is answered; "slow" if each request is
    answered, after long.
    """

    begins: float
    ends: float
    state: State


@dataclass(slots=True)
class Server:
    """``outages`` ascend and do not overlap. While it is slow it takes ``latency`` seconds, and
    gives ``pace`` bytes a second.
    """

    name: str
    outages: list[Outage] = field(default_factory=list)
    latency: float = 20.0
    pace: float = 1e6

    def state(self, at: float) -> State:
        """Return what a request meets that is sent at a time."""
        for one in self.outages:
            if one.begins <= at < one.ends:
                return one.state
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


def draw_server(
    random: Random, name: str, until: float, every: float, states: Sequence[State]
) -> Server:
    """Return a server whose outages begin once in about ``every`` seconds."""
    latency, pace = random.uniform(1.0, 40.0), 10 ** random.uniform(5.0, 6.3)
    server = Server(name, latency=latency, pace=pace)
    at = random.choice((0.0, random.expovariate(1 / every)))
    while at < until:
        length = random.choice((3.0, 60.0, 600.0, 1800.0)) * random.uniform(0.3, 2.0)
        server.outages.append(Outage(at, at + length, random.choice(states)))
        at += length + random.expovariate(1 / every)
    return server

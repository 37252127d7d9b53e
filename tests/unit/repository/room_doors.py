"""The contract type ``rooms``: a room is imported through its package and its doors.

A line of its table in ``.importlinter`` names a room, its guests and its doors:

    reader.payload (reader.encode): prewarm, begun (reader)

Modules outside the room may import the package ``reader.payload`` and the module
``reader.payload.prewarm``. The package ``reader`` alone, without the modules below, may import
``reader.payload.begun``. Modules below ``reader.encode`` may import each module of the room.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

_ROOM = re.compile(r"([\w.]+)(?: \(([\w., ]+)\))?(?:: (.+))?")
_DOOR = re.compile(r"(\w+)(?: \(([\w.]+)\))?")


@dataclass(frozen=True, slots=True)
class Room:
    """A package, and who may import its modules."""

    name: str
    guests: tuple[str, ...]
    """Packages whose modules may import each module of the room."""
    doors: dict[str, str]
    """By a door's full name: the only module that may import it, or an empty string."""

    @classmethod
    def parse(cls, line: str) -> Room:
        """Return the room of a line of the table. Raises ValidationError for any other text."""
        room = _ROOM.fullmatch(line)
        doors = [_DOOR.fullmatch(door) for door in (room[3] or "").split(", ")] if room else []
        if room is None or (room[3] and None in doors):
            raise fields.ValidationError(f"{line!r} is not of the form: room (guest): door, door")
        return cls(
            room[1],
            tuple(room[2].split(", ")) if room[2] else (),
            {f"{room[1]}.{door[1]}": door[2] or "" for door in doors if door},
        )

    def faults(self, graph: ImportGraph, open_to: tuple[str, ...]) -> Iterator[str]:
        """Yield a sentence for each illegal import, and for each door that has no use.

        graph: all modules and imports
        open_to: packages whose modules may import each module of every room
        """
        inside = (self.name, *self.guests, *open_to)
        for module in sorted(graph.find_descendants(self.name) | self.doors.keys()):
            imported = module in graph.modules
            importers = graph.find_modules_that_directly_import(module) if imported else set()
            outside = {name for name in importers if not _is_below(name, inside)}
            if module in self.doors:
                legal = {self.doors[module]} & outside if self.doors[module] else outside
                if not legal:
                    yield f"{module} needs no door: no room imports it"
                outside -= legal
            yield from (f"{name} imports {module}" for name in sorted(outside))


class RoomsContract(Contract):
    """The contract type ``rooms``.

    open_to: packages whose modules may import each module of every room, optional
    rooms: the table, a line for each room
    """

    open_to: Any = fields.ListField(subfield=fields.StringField(), default=[])
    rooms: Any = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Return whether each room is imported through its doors alone."""
        rooms = map(Room.parse, self.rooms)
        faults = [fault for room in rooms for fault in room.faults(graph, tuple(self.open_to))]
        return ContractCheck(kept=not faults, metadata={"faults": faults})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print each fault."""
        for fault in check.metadata["faults"]:
            output.print_error(f"- {fault}", bold=False)
        output.print_error("Import the package, or give the module a door in .importlinter.")


def _is_below(module: str, packages: tuple[str, ...]) -> bool:
    return any(f"{module}.".startswith(f"{package}.") for package in packages)

"""What several processes do at once: `python -m tests.storages.racers NAME ROUNDS`.

Each round, each says that it is ready, goes on once it is told to, and prints its result as JSON.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from reader.config import StorageConfig
from reader.storage import Storage, open_storage

RACERS = 4


def race(act: Callable[[Storage, int], Any], config: StorageConfig, times: int) -> list[list[Any]]:
    """What `act(storage, round)` gives in each of four processes, a list for each process."""
    found: list[list[Any]] = [[] for _ in range(RACERS)]
    with ExitStack() as stack:
        started = [stack.enter_context(_process(act.__name__, config, times)) for _ in found]
        for _ in range(times):
            for one in started:
                assert one.hear() == "ready"
            for one in started:
                one.say("go")
            for results, one in zip(found, started, strict=True):
                results.append(json.loads(one.hear()))
    return found


def die_in(act: Callable[[Storage, int], Any], config: StorageConfig) -> None:
    """Run it in a process that kills itself."""
    with _process(act.__name__, config, 1) as one:
        assert one.hear() == "ready"
        one.say("go")
        assert one.hear() == ""
        assert one.process.wait(60) == -9


@dataclass
class _Process:
    process: subprocess.Popen[str]

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")


@contextmanager
def _process(name: str, config: StorageConfig, times: int) -> Iterator[_Process]:
    command = [sys.executable, "-m", __name__, name, str(times)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            started = _Process(process)
            # Settings hold secrets: not on a command line.
            started.say(json.dumps({"uri": config.uri, "options": dict(config.options)}))
            yield started
        finally:
            process.kill()


def put(storage: Storage, number: int) -> tuple[bool, int]:
    """Whether this process was first, and its id."""
    won = storage.objects().put_if_absent(f"race/{number}", str(os.getpid()).encode())
    return won, os.getpid()


def commit(storage: Storage, number: int) -> bool:
    """Whether this process's commit of the next version is the one that counts."""
    from deltalake import CommitProperties
    from deltalake.exceptions import CommitFailedError

    table = _tables.pop()
    try:
        table.create_write_transaction(
            [],
            mode="append",
            schema=table.schema(),
            commit_properties=CommitProperties(max_commit_retries=0),
        )
    except CommitFailedError:
        return False
    return True


_tables: list[Any] = []


def _prepared(name: str, storage: Storage) -> None:
    if name == "commit":
        from deltalake import DeltaTable

        _tables.append(
            DeltaTable(f"{storage.root}/raced", storage_options=storage.delta_options() or None)
        )


def half_write(storage: Storage, number: int) -> None:
    """Dies with much of a file written."""
    filesystem, root = storage.filesystem()
    sink = filesystem.open_output_stream(f"{root}/half/written")
    sink.write(bytes(20 << 20))
    sink.flush()
    os.kill(os.getpid(), 9)


def main() -> None:
    name, times = sys.argv[1], int(sys.argv[2])
    storage = open_storage(StorageConfig(**json.loads(sys.stdin.readline())))
    act = {"put": put, "commit": commit, "half_write": half_write}[name]
    for number in range(times):
        _prepared(name, storage)
        print("ready", flush=True)
        sys.stdin.readline()
        print(json.dumps(act(storage, number)), flush=True)


if __name__ == "__main__":
    main()

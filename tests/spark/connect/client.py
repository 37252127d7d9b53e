"""``python -m tests.spark.connect.client sc://…``: a client that takes its actions from lines.

A line ``[action, argument, …]`` of JSON in, ``{"ok": …}`` or ``{"error": …, "kind": …}`` out.
``Client`` starts one and asks it.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from testbed.closing import Closing


class ClientError(Exception):
    """What an action raised: ``kind``, its class; ``text``, all that a user is shown."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind
        self.text = text


class Client(Closing):
    """A process with one session. ``environment``: all of it."""

    def __init__(self, url: str, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.connect.client", url],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # the client logs each error, too
            text=True,
        )

    def ask(self, action: str, *arguments: object) -> Any:
        """What it gives; raises ClientError."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([action, *arguments]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the client has ended: {self._process.wait(60)}"
        answer = json.loads(line)
        if "error" in answer:
            raise ClientError(answer["kind"], answer["error"])
        return answer["ok"]

    def close(self) -> None:
        self._process.communicate("", 240)


def _serve(url: str) -> None:
    from pyspark.sql import SparkSession

    from tests.spark.connect import actions

    spark = SparkSession.builder.remote(url).getOrCreate()
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        try:
            if name == "modules":
                answer: dict[str, Any] = {"ok": sorted(sys.modules)}
            else:
                answer = {"ok": getattr(actions, name)(spark, *arguments)}
        except Exception as error:  # noqa: BLE001 - it is the test's
            answer = {"error": str(error), "kind": type(error).__name__}
        print(json.dumps(answer, default=str), flush=True)
    spark.stop()


if __name__ == "__main__":
    _serve(sys.argv[1])

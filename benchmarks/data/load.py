"""Publishes at a steady rate, in a process of its own: ``python -m benchmarks.data.load --help``.

Prints how many messages the broker has acknowledged, as one number.
"""

import argparse
import os
import threading
import time
from itertools import cycle
from typing import Any

import pulsar

from testbed.publish import quiet_client

_TICK = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.data.load", description=__doc__)
    parser.add_argument("url")
    parser.add_argument("topics", help="tenant/namespace/prefix: topics are named prefix-N")
    parser.add_argument("--count", type=int, default=1, help="of topics")
    parser.add_argument("--rate", type=float, default=1000, help="messages a second, in all")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--bytes", type=int, default=512, help="of a message")
    options = parser.parse_args()
    with quiet_client(options.url) as client:
        print(_publish(client, options))


def _publish(client: Any, options: argparse.Namespace) -> int:
    producers = [
        client.create_producer(
            f"persistent://{options.topics}-{number}",
            batching_enabled=True,
            batching_max_publish_delay_ms=200,
            compression_type=pulsar.CompressionType.LZ4,
            block_if_queue_full=True,
            send_timeout_millis=0,
        )
        for number in range(options.count)
    ]
    acknowledged = 0
    lock = threading.Lock()

    def sent(result: pulsar.Result, _: object) -> None:
        nonlocal acknowledged
        with lock:
            acknowledged += result == pulsar.Result.Ok

    # Half of each is random, so that it compresses to about a half.
    half = options.bytes // 2
    payloads = cycle([os.urandom(half) + b"x" * (options.bytes - half) for _ in range(997)])
    turn = cycle(producers)
    begun = time.monotonic()
    done = 0
    while (now := time.monotonic() - begun) < options.seconds:
        due = int(now * options.rate)
        for _ in range(due - done):
            next(turn).send_async(next(payloads), sent)
        done = max(done, due)
        time.sleep(_TICK)
    for producer in producers:
        producer.flush()
    return acknowledged


if __name__ == "__main__":
    main()

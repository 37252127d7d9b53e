"""`python -m testbed`: a Pulsar cluster and an S3 server, until Ctrl-C."""

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path

from testbed.cluster import ProcessCluster
from testbed.process import ClusterError
from testbed.s3 import S3
from testbed.server.jars import JarsError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m testbed", description=__doc__)
    parser.add_argument("--bookies", type=int, default=3)
    parser.add_argument("--dir", type=Path, help="keep the data here (default: temporary)")
    parser.add_argument("--ports-file", type=Path, help="write the URLs here as JSON, when ready")
    parser.add_argument("--max-entries", type=int, default=50_000, help="of a ledger")
    asked = parser.parse_args()
    # SIGTERM must clean up as Ctrl-C does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    begun = time.monotonic()
    cluster = ProcessCluster(
        asked.bookies, directory=asked.dir, max_entries_per_ledger=asked.max_entries
    )
    try:
        with cluster, S3() as s3:
            urls = {
                "service_url": cluster.service_url,
                "admin_url": cluster.admin_url,
                "zookeeper": cluster.zookeeper_address,
                "bookies": [bookie.address for bookie in cluster.bookies],
                "s3_endpoint": s3.endpoint,
                "storage_uri": s3.uri,
                "storage_options": s3.storage_options,
                "directory": str(cluster.directory),
                "pids": {p.name: p.pid for p in cluster.running()},
            }
            text = json.dumps(urls, indent=2)
            print(
                f"{text}\nready after {time.monotonic() - begun:.1f} s; Ctrl-C ends it", flush=True
            )
            if asked.ports_file:
                partial = asked.ports_file.with_suffix(f".{os.getpid()}")
                partial.write_text(text)
                partial.replace(asked.ports_file)  # readers never see half a file
            while True:
                dead = [p for p in (cluster.broker, *cluster.bookies) if not p.alive]
                if dead:
                    raise ClusterError(f"{dead[0].name} has died{dead[0].tail()}")
                time.sleep(1)
    except KeyboardInterrupt:
        return 0
    except (ClusterError, JarsError) as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        if asked.ports_file:
            asked.ports_file.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())

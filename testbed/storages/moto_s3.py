"""moto's S3 as a program. Two things are mended, in which moto is not like S3.

- moto looks whether a condition holds, and puts then: of two conditional puts at once both
  succeeded. Here a put is one step.
- moto serves all of AWS, and takes the service from the signature, split at its slashes. One of
  version 2 (Pulsar's offloader makes those) is random text, and about one in 1,400 has the four
  slashes of version 4: the request got status 500, and its repetitions with the same date too.
"""

from __future__ import annotations

import threading
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication
from moto.s3.responses import S3Response
from moto.server import main

_put_object = S3Response.put_object
_host = DomainDispatcherApplication.infer_service_region_host
_one_step = threading.Lock()


def _put_in_one_step(response: S3Response) -> Any:
    with _one_step:
        return _put_object(response)


def _host_of_service(
    dispatcher: DomainDispatcherApplication, environ: dict[str, Any], path: str
) -> str | None:
    """Return the host of the service that a request is for; None: S3."""
    if environ.get("HTTP_AUTHORIZATION", "").startswith("AWS "):
        return None
    return _host(dispatcher, environ, path)


if __name__ == "__main__":
    S3Response.put_object = _put_in_one_step  # type: ignore[method-assign, assignment]
    DomainDispatcherApplication.infer_service_region_host = _host_of_service  # type: ignore[method-assign, assignment]
    main()

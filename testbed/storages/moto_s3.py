"""moto's S3 as a program. Two differences between moto and S3 are removed.

- moto checks the condition of a put and writes the object later, so that two conditional puts at
  once could both succeed. Here a put is one step. A multipart upload's completion is not: two with
  a condition may both succeed, and nobody here makes such.
- moto serves all of AWS, and reads the service from the parts between the slashes of a signature.
  A signature of version 2, as Pulsar's offloader makes it, is random text. About one in 1,400 has
  as many slashes as one of version 4, and its request failed with status 500. Here each request
  is for S3.
"""

import threading
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication
from moto.s3.responses import S3Response
from moto.server import main

_put_object = S3Response.put_object
_one_step = threading.Lock()


def _put_in_one_step(response: S3Response) -> Any:
    with _one_step:
        return _put_object(response)


def _no_host(dispatcher: DomainDispatcherApplication, environ: dict[str, Any], path: str) -> None:
    """Return no host of another service: moto's default is S3."""


if __name__ == "__main__":
    S3Response.put_object = _put_in_one_step  # type: ignore[method-assign, assignment]
    DomainDispatcherApplication.infer_service_region_host = _no_host  # type: ignore[method-assign, assignment]
    main()

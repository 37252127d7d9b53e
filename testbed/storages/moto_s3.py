"""moto's S3 as a program, whose puts are one step each, as S3's are.

moto looks whether a condition holds, and puts then: of two conditional puts at once both succeeded.
"""

from __future__ import annotations

import threading
from typing import Any

from moto.s3.responses import S3Response
from moto.server import main

_put_object = S3Response.put_object
_one_step = threading.Lock()


def _put_in_one_step(response: S3Response) -> Any:
    with _one_step:
        return _put_object(response)


if __name__ == "__main__":
    S3Response.put_object = _put_in_one_step  # type: ignore[method-assign, assignment]
    main()

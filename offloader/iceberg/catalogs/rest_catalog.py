"""A REST catalog whose server does not answer is an error after a while: PyIceberg would wait."""

from typing import Any

from pyiceberg.catalog.rest import RestCatalog
from requests import PreparedRequest, Response, Session
from requests.adapters import HTTPAdapter

_CONNECT_SECONDS = 5.0
_READ_SECONDS = 60.0


class _Patience(HTTPAdapter):
    def send(self, request: PreparedRequest, *args: Any, **given: Any) -> Response:
        given["timeout"] = given.get("timeout") or (_CONNECT_SECONDS, _READ_SECONDS)
        return super().send(request, *args, **given)


class PatientRestCatalog(RestCatalog):
    """PyIceberg's, with time limits. A commit without an answer is one of unknown outcome."""

    def _create_session(self) -> Session:
        session = super()._create_session()
        for scheme in ("http://", "https://"):
            session.mount(scheme, _Patience())
        return session

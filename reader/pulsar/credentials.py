"""Who we are to Pulsar: a token, given or fetched, for the admin and the broker's client alike.

OAuth2 client credentials (RFC 6749, section 4.4): the issuer's discovery document names the token
endpoint (OpenID Connect Discovery, section 4); id and secret are exchanged there for a token. A
token is kept for its life and shared by the whole process.
"""

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from threading import Lock

import httpx

from reader.config import OAuth2Config, PulsarConfig, header_text
from reader.errors import ConfigurationError, UnavailableError
from reader.pulsar.answers import bounded_send
from reader.rotation import FileState, file_state
from reader.tls import certificate_error, client_context

_MARGIN = 0.1
"""The part of a token's life that is left when it is renewed."""
_DEFAULT_LIFE_SECONDS = 300.0
TIMEOUT_SECONDS = 15.0
"""For each answer as a whole, too: whoever needs a token waits for it."""
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class _Kept:
    """``renew_at``: seconds of the clock that ``current_token`` is given (monotonic)."""

    token: str
    renew_at: float


Identity = tuple[str | None, tuple[FileState, ...]]
"""The token, and ``identity_files``: equal while nothing was rotated."""

_lock = Lock()
_kept: list[tuple[OAuth2Config, _Kept]] = []


def current_token(
    config: PulsarConfig, *, clock: Callable[[], float] = time.monotonic
) -> str | None:
    """The token to show now; None where there is none. ``clock``: seconds.

    Files are read afresh, because they are rotated. Raises ConfigurationError for what the issuer
    or the settings refuse, UnavailableError where the issuer does not answer.
    """
    return _oauth2(config.oauth2, clock) if config.oauth2.configured else config.auth_token()


def current_identity(config: PulsarConfig) -> Identity:
    """What connections that are opened now are opened with. Raises as ``current_token``."""
    return current_token(config), identity_files(config)


def identity_files(config: PulsarConfig) -> tuple[FileState, ...]:
    """The states of the files that connections are opened with. Asks no issuer for a token."""
    return tuple(
        map(
            file_state,
            (
                config.token_file,
                config.tls_trust_certs_file,
                config.tls_certificate_file,
                config.tls_key_file,
            ),
        )
    )


def _oauth2(config: OAuth2Config, clock: Callable[[], float]) -> str:
    with _lock:
        kept = next((found for known, found in _kept if known == config), None)
        if kept is None or clock() >= kept.renew_at:
            kept = _fetch(config, clock)
            _kept[:] = [(config, kept), *(one for one in _kept if one[0] != config)][:16]
        return kept.token


def _fetch(config: OAuth2Config, clock: Callable[[], float]) -> _Kept:
    client_id, secret = _client(config)
    form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret}
    form |= {"audience": config.audience} if config.audience else {}
    form |= {"scope": config.scope} if config.scope else {}
    issuer = config.issuer_url.rstrip("/")
    context = client_context("pulsar.oauth2", trust=config.tls_trust_certs_file)
    send = partial(bounded_send, most=_MOST_BYTES, seconds=TIMEOUT_SECONDS)
    try:
        with httpx.Client(timeout=TIMEOUT_SECONDS, verify=context) as http:
            where = http.build_request("GET", f"{issuer}/.well-known/openid-configuration")
            found = send(http, where)
            endpoint = _member(found, issuer, "token_endpoint")
            if issuer.startswith("https:") and not endpoint.startswith("https:"):
                raise ConfigurationError(f"the token endpoint of {issuer} is not https: {endpoint}")
            asked = clock()
            accept = {"Accept": "application/json"}
            request = http.build_request("POST", endpoint, data=form, headers=accept)
            answer = send(http, request)
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
        if reason := certificate_error(error):
            raise ConfigurationError(
                f"the certificate of the OAuth2 issuer {issuer} is not accepted: {reason}",
                hint="check pulsar.oauth2.tls_trust_certs_file",
            ) from error
        raise UnavailableError(
            f"no answer from the OAuth2 issuer {issuer}: {error or type(error).__name__}",
            hint="check pulsar.oauth2.issuer_url",
        ) from None  # the request that failed holds the secret
    if answer.status_code in (400, 401, 403):
        raise ConfigurationError(
            f"the OAuth2 issuer {issuer} refuses the client {client_id}: {_reason(answer)}",
            hint="check [pulsar.oauth2]: client id, secret, audience, scope",
        )
    token = header_text(
        f"what the OAuth2 issuer {issuer} gives", _member(answer, issuer, "access_token")
    )
    life = _life(answer)
    return _Kept(token, asked + life * (1 - _MARGIN))


def _client(config: OAuth2Config) -> tuple[str, str]:
    """Id and secret: as set, or out of the key file that Pulsar's other clients use."""
    if config.key_file is None:
        assert config.client_secret is not None  # the settings were checked
        return config.client_id, config.client_secret.get_secret_value()
    try:
        found = json.loads(config.key_file.read_text())
        return config.client_id or str(found["client_id"]), str(found["client_secret"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = error.strerror if isinstance(error, OSError) else "client_id or client_secret missing"
        raise ConfigurationError(
            f"cannot use pulsar.oauth2.key_file: {why}", hint=str(config.key_file)
        ) from None  # a parser's error shows what it read


def _member(answer: httpx.Response, issuer: str, name: str) -> str:
    try:
        if answer.is_success:
            return str(answer.json()[name])
    except (ValueError, KeyError, TypeError):
        pass
    raise UnavailableError(
        f"the OAuth2 issuer {issuer} gives no {name}: HTTP {answer.status_code}",
        hint="check pulsar.oauth2.issuer_url",
    )


def _reason(answer: httpx.Response) -> str:
    # Its code alone: a description may repeat what was sent.
    try:
        return str(answer.json()["error"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {answer.status_code}"


def _after_fork() -> None:
    global _lock
    _lock = Lock()  # a thread of the parent may have had it


os.register_at_fork(after_in_child=_after_fork)


def _life(answer: httpx.Response) -> float:
    try:
        return float(answer.json()["expires_in"])
    except (ValueError, KeyError, TypeError):
        return _DEFAULT_LIFE_SECONDS

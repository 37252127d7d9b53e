"""Where brokers are: ``pulsar://`` and ``pulsar+ssl://`` URLs, of one host or several."""

import re
from dataclasses import dataclass

from reader.errors import ConfigurationError

_PORTS = {"pulsar": 6650, "pulsar+ssl": 6651}
_HOST = re.compile(r"(?:\[([^\]/]+)\]|([^:/\[\]]+))(?::(\d{1,5}))?")


@dataclass(frozen=True, slots=True)
class Address:
    """``tls``: the connection begins with TLS."""

    host: str
    port: int
    tls: bool

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_service_url(url: str) -> tuple[Address, ...]:
    """The hosts of a URL, at least one. Raises ConfigurationError for what is none of Pulsar's."""
    scheme, _, rest = url.partition("://")
    port = _PORTS.get(scheme.lower())
    hosts = [_HOST.fullmatch(one.strip()) for one in rest.split("/")[0].split(",")]
    if port is None or not all(hosts):
        raise ConfigurationError(
            f"{url!r} is not where a broker is",
            hint="pulsar.service_url: pulsar://host:6650 or pulsar+ssl://host:6651",
        )
    return tuple(
        Address(one[1] or one[2], int(one[3] or port), scheme.lower() == "pulsar+ssl")
        for one in hosts
        if one
    )

"""``pulsar-lake init``: a commented settings file out of two URLs, and whether it works."""

import json
import re
import shlex
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from offloader.cli.check import finish, run_checks
from offloader.cli.options import settings
from offloader.cli.render import say
from offloader.config import load_config
from reader.errors import ConfigurationError
from reader.model import Topic
from reader.storage import check_storage_options

_SECRET = re.compile(r"secret|password|passwd|token|credential|connection_string|(\b|_)(key|sas)$")
_PORTS = {True: ("https", 8443), False: ("http", 8080)}


def init(
    service_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The broker: pulsar://host:6650, pulsar+ssl://host:6651."),
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(
            metavar="URI",
            help="Where tables go: s3://bucket/prefix, gs://…, abfss://…, hdfs://…, a directory.",
        ),
    ] = None,
    admin_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The admin REST; default: the broker's host, port 8080."),
    ] = None,
    topics: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="What to offload; default: public/default/*."),
    ] = None,
    storage_options: Annotated[
        list[str] | None,
        typer.Option(
            "--storage-option", metavar="NAME=VALUE", help="As endpoint_url, region. No secrets."
        ),
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file that holds Pulsar's token.")
    ] = None,
    tls_trust_certs_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The authority of Pulsar's certificates.")
    ] = None,
    output: Annotated[Path, typer.Option(metavar="FILE", help="What to write.")] = Path(
        "lake.toml"
    ),
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Write a commented settings file, and check what it names as `pulsar-lake check` does.

    On a terminal it asks for what is not given. Secrets are never written: the file says which
    environment variables, or files, they belong to. Exit code 1 if a check failed.
    """
    if output.exists() and not force:
        raise ConfigurationError(
            f"File {output} exists already", hint="--force replaces it, --output names another"
        )
    patterns = topics or ["public/default/*"]
    for one in patterns:
        Topic.parse(one)
    service_url = service_url or _ask("--service-url", "Pulsar's service URL", _EXAMPLE_URL)
    storage = storage or _ask(
        "--storage",
        "Where tables go (s3://bucket/prefix, gs://…, abfss://…, hdfs://… or a directory)",
    )
    text = settings_text(
        service_url,
        storage,
        admin_url=admin_url or admin_url_of(service_url),
        topics=patterns,
        options=_options(storage_options or []),
        token_file=token_file,
        trust=tls_trust_certs_file,
    )
    check_storage_options(load_config(tomllib.loads(text)).storage)
    _write(output, text)
    say(f"{output} is written; now it is checked\n")
    report = run_checks(settings(output))
    named = f"--config {shlex.quote(str(output))}"
    if report.failed:
        say(f"\nPut right what failed, in {output} or there, and look again:")
        say(f"    pulsar-lake check {named}")
    else:
        say("\nNext, with a topic of yours:")
        say(f"    pulsar-lake segments public/default/orders {named}")
        say(f"    pulsar-lake offload --once --now public/default/orders {named}")
        say(
            f'    pulsar-lake sql "SELECT count(*) FROM pulsar.\\`public/default\\`.orders" {named}'
        )
    finish(report)


def _write(output: Path, text: str) -> None:
    try:
        data = text.encode()
    except UnicodeEncodeError as error:  # bytes of the command line that are no characters
        raise ConfigurationError("a URL, or a name, is not UTF-8") from error
    try:
        output.write_bytes(data)
    except OSError as error:
        raise ConfigurationError(f"cannot write {output}: {error.strerror}") from error


_EXAMPLE_URL = "pulsar://localhost:6650"


def _ask(option: str, question: str, default: str | None = None) -> str:
    if not (sys.stdin and sys.stdin.isatty()):
        raise typer.BadParameter(
            "required when standard input is not a terminal", param_hint=option
        )
    return str(typer.prompt(question, default=default, err=True)).strip()


def _options(given: list[str]) -> dict[str, str]:
    found = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not re.fullmatch(r"[a-z_]+", name):
            raise typer.BadParameter("write NAME=VALUE", param_hint="--storage-option")
        if _SECRET.search(name):
            raise typer.BadParameter(
                f"{name} is a secret: set PULSAR_LAKE__STORAGE__OPTIONS__{name.upper()}",
                param_hint="--storage-option",
            )
        found[name] = value
    return found


def admin_url_of(service_url: str) -> str:
    """Return the default URL of the admin REST: the first host, port 8080, with TLS 8443.

    Raises ConfigurationError if ``service_url`` is no service URL.
    """
    from reader.pulsar.binary import parse_service_url

    first = parse_service_url(service_url)[0]
    scheme, port = _PORTS[first.tls]
    host = f"[{first.host}]" if ":" in first.host else first.host
    return f"{scheme}://{host}:{port}"


def settings_text(
    service_url: str,
    storage: str,
    *,
    admin_url: str,
    topics: list[str],
    options: Mapping[str, str],
    token_file: Path | None = None,
    trust: Path | None = None,
) -> str:
    """Return the text of the file: the keys that matter at first, each with its meaning."""
    is_path = "://" not in storage and not storage.startswith("file:")
    lines = [f"{name} = {_quoted(value)}" for name, value in options.items()]
    section = "\n[storage.options]\n" if lines else ""
    if storage.startswith(("s3://", "s3a://")):
        section = _S3_OPTIONS
        examples = {"region": "us-east-1", "endpoint_url": "https://minio:9000"}
        unset = [_line(name, None, one) for name, one in examples.items() if name not in options]
        lines = unset + lines
    return _TEXT.format(
        service_url=_quoted(service_url),
        admin_url=_quoted(admin_url),
        token=_line("token_file", token_file, "/run/secrets/pulsar-token"),
        trust=_line("tls_trust_certs_file", trust, "/etc/pulsar/ca.pem"),
        uri=_quoted(str(Path(storage).expanduser().absolute()) if is_path else storage),
        options=section + "".join(f"{line}\n" for line in lines),
        topics=json.dumps(topics, ensure_ascii=False),
    )


_TEXT = """\
# Settings of pulsar-lake, written by `pulsar-lake init`: the keys that matter at first.
# All of them, with their defaults, are in docs/example.toml of the project.
# Each key is also an environment variable, which wins over this file:
# PULSAR_LAKE__PULSAR__ADMIN_URL for admin_url. `pulsar-lake check` says what is wrong.

[pulsar]
# The broker's own protocol. Several hosts: pulsar://a:6650,b:6650
service_url = {service_url}
# The broker's web service, also called the admin REST.
admin_url = {admin_url}
# Who we are: a token in a file, which may be rotated; or in the environment variable
# PULSAR_LAKE__PULSAR__TOKEN. Its role needs to consume the topics.
{token}
# The authority of Pulsar's certificates, for https:// and pulsar+ssl://.
{trust}

# Only where a bookie's id is no address, or none that is reachable from here.
[pulsar.bookies]
# "bookie-1" = "10.0.0.1:3181"

[storage]
# One Delta table a topic, at <uri>/<tenant>/<namespace>/<topic>.
uri = {uri}
{options}
[offload]
# Names and patterns; * stands for any characters.
topics = {topics}
# Ledgers are offloaded once they hold so much together, or the oldest is closed so long.
threshold_bytes = "1GiB"
max_age = "1h"

[spark]
# Inside this process, on all cores; or spark://host:7077.
master = "local[*]"
"""
_S3_OPTIONS = """
# Keys come by the usual chain (environment, profile, role of the machine), or by the
# environment variables PULSAR_LAKE__STORAGE__OPTIONS__ACCESS_KEY_ID and
# PULSAR_LAKE__STORAGE__OPTIONS__SECRET_ACCESS_KEY.
[storage.options]
"""


def _line(name: str, value: Path | None, example: str) -> str:
    if value is None:
        return f"# {name} = {_quoted(example)}"
    return f"{name} = {_quoted(str(value.expanduser().absolute()))}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)

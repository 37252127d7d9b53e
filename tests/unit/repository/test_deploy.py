"""deploy/: settings that load, ports and paths that meet, a command that exists."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from offloader.cli.app import app
from offloader.config import Config, load_config
from tests.unit.repository.test_docs import no_environment

__all__ = ["no_environment"]

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
CONTAINERFILE = (DEPLOY / "Containerfile").read_text()
UNIT = (DEPLOY / "systemd" / "pulsar-lake.service").read_text()
FILES = [one for one in sorted(DEPLOY.rglob("*")) if one.is_file()]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def manifests(name: str) -> list[dict[str, Any]]:
    found = list(yaml.safe_load_all((DEPLOY / "kubernetes" / name).read_text()))
    assert all(found)
    return found


def one_of(name: str, kind: str) -> dict[str, Any]:
    [found] = [one for one in manifests(name) if one["kind"] == kind]
    return found


def containers() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """(pod, container) of all manifests."""
    for name in ("offloader.yaml", "spark.yaml"):
        for one in manifests(name):
            if one["kind"] == "Deployment":
                pod = one["spec"]["template"]["spec"]
                for container in pod["containers"]:
                    yield pod, container


def offloader() -> tuple[dict[str, Any], dict[str, Any]]:
    [found] = [one for one in containers() if one[1]["name"] == "offloader"]
    return found


def image_environment() -> dict[str, str]:
    """What the image's last stage sets."""
    last = CONTAINERFILE.rpartition("\nFROM ")[2].replace("\\\n", " ")
    [line] = re.findall(r"^ENV (.+)$", last, re.MULTILINE)
    return dict(one.split("=", 1) for one in shlex.split(line))


def image_command() -> list[str]:
    entry, command = (
        re.findall(rf"^{name} (\[.+\])$", CONTAINERFILE, re.MULTILINE)
        for name in ("ENTRYPOINT", "CMD")
    )
    return [*json.loads(entry[0]), *json.loads(command[0])]


def unit(key: str) -> list[str]:
    return re.findall(rf"^{key}=(.*)$", UNIT, re.MULTILINE)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """As the offloader's container has them."""
    [(name, text)] = one_of("offloader.yaml", "ConfigMap")["data"].items()
    (tmp_path / name).write_text(text)
    _, container = offloader()
    for variable in container["env"]:
        if "value" in variable:
            monkeypatch.setenv(variable["name"], variable["value"].replace("$(POD_IP)", "10.1.2.3"))
    for variable, value in one_of("offloader.yaml", "Secret")["stringData"].items():
        monkeypatch.setenv(variable, value)
    return load_config(tmp_path / name)


def test_the_settings_load(settings: Config) -> None:
    assert settings.offload.topics
    assert settings.spark.conf["spark.driver.host"] == "10.1.2.3"
    assert settings.spark.conf["spark.driver.memory"] == "2g", "both are there"
    assert settings.http.secret() == settings.pulsar.auth_token() == "replace-me"


def test_settings_that_are_commented_out_load_too(tmp_path: Path) -> None:
    file = tmp_path / "lake.toml"
    text = one_of("offloader.yaml", "ConfigMap")["data"]["lake.toml"]
    file.write_text(re.sub(r"^# (\w+ = )", r"\1", text, flags=re.MULTILINE))
    [service] = [one for one in manifests("spark.yaml") if one["kind"] == "Service"]
    [port] = service["spec"]["ports"]
    where = f"spark://{service['metadata']['name']}:{port['port']}"
    assert load_config(file).spark.master == where
    text = (DEPLOY / "kubernetes" / "spark.yaml").read_text()
    assert f"- {where}\n" in text
    assert f'"--port", "{port["port"]}"' in text


def test_every_variable_is_a_setting() -> None:
    named = {name for file in FILES for name in re.findall(r"PULSAR_LAKE__\w+", file.read_text())}
    assert len(named) >= 3
    for name in named:
        _, section, *keys = name.lower().split("__")
        model: Any = Config.model_fields[section].annotation
        for key in keys:
            model = model.model_fields[key].annotation


def test_every_other_variable_is_used_somewhere() -> None:
    named = {name for file in FILES for name in re.findall(r"PULSAR_LAKE_[A-Z]+", file.read_text())}
    assert {"PULSAR_LAKE_STATE", "PULSAR_LAKE_CACHE"} <= named
    folders = (ROOT / name for name in ("reader", "spark_ext", "offloader"))
    source = "".join(file.read_text() for folder in folders for file in folder.rglob("*.py"))
    assert not [name for name in named if f'"{name}"' not in source]


def test_the_port_is_one(settings: Config) -> None:
    _, container = offloader()
    [port] = container["ports"]
    assert settings.http.endpoint == ("0.0.0.0", port["containerPort"])
    paths = {}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container[probe]["httpGet"]
        assert asked["port"] == port["name"]
        paths[probe] = asked["path"]
    assert set(paths.values()) == {"/healthz", "/readyz"}
    assert paths["readinessProbe"] == "/readyz"
    service = one_of("offloader.yaml", "Service")["spec"]
    assert service["publishNotReadyAddresses"] is True
    [served] = service["ports"]
    assert (served["targetPort"], served["port"]) == (port["name"], port["containerPort"])
    template = one_of("offloader.yaml", "Deployment")["spec"]["template"]["metadata"]
    assert template["annotations"]["prometheus.io/port"] == str(port["containerPort"])
    assert service["selector"] == template["labels"]


def test_the_image_has_what_the_manifests_use() -> None:
    environment = image_environment()
    home = Path("/opt/pulsar-lake")
    spark = Path(environment["SPARK_HOME"])
    assert Path(environment["PYSPARK_PYTHON"]).parent == home / "bin"
    assert environment["PATH"].split(":")[0] == str(home / "bin")
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    programs = [container["command"][0] for _, container in containers() if "command" in container]
    assert len(programs) == 2
    for program in programs:
        assert (Path(found.origin).parent / Path(program).relative_to(spark)).is_file()
    for text in re.findall(
        r"/opt/pulsar-lake/lib/(python[\d.]+)/", CONTAINERFILE + "".join(programs)
    ):
        assert f"{text} -m venv {home}" in CONTAINERFILE
    for pod, container in containers():
        name, _, version = container["image"].partition(":")
        assert (name, version) == ("pulsar-lake", PROJECT["version"])
        assert f"USER {pod['securityContext']['runAsUser']}\n" in CONTAINERFILE
    assert f"-t pulsar-lake:{PROJECT['version']} " in CONTAINERFILE


def test_the_mounts_are_where_the_image_looks() -> None:
    pod, container = offloader()
    mounts = {one["name"]: Path(one["mountPath"]) for one in container["volumeMounts"]}
    assert mounts.keys() == {one["name"] for one in pod["volumes"]}
    [file] = one_of("offloader.yaml", "ConfigMap")["data"]
    assert Path(image_command()[-1]) == mounts["settings"] / file
    assert Path(image_environment()["PULSAR_LAKE_STATE"]).is_relative_to(mounts["state"])
    secrets = [one["secretRef"]["name"] for one in container["envFrom"]]
    assert secrets == [one_of("offloader.yaml", "Secret")["metadata"]["name"]]


def test_the_commands_are_real() -> None:
    [line] = unit("ExecStart")
    for program, *arguments in (shlex.split(line), image_command()):
        assert Path(program).name in PROJECT["scripts"]
        command: Any = get_command(app)
        with command.make_context("pulsar-lake", arguments, resilient_parsing=False) as context:
            name, found, rest = command.resolve_command(
                context, [*context._protected_args, *context.args]
            )
            with found.make_context(name, rest, parent=context) as inner:
                assert inner.params["config"] == Path("/etc/pulsar-lake/lake.toml")
    assert shlex.split(line)[0] == "/opt/pulsar-lake/bin/pulsar-lake"


def test_a_worker_that_is_killed_stops_no_unit() -> None:
    assert unit("OOMPolicy") == ["continue"]
    assert unit("MemoryMax")
    assert unit("KillMode") == ["mixed"]
    assert unit("TimeoutStopSec") == ["15min"]
    pod, _ = offloader()
    assert pod["terminationGracePeriodSeconds"] == 15 * 60

"""deploy/: settings that load, ports and paths that meet, a command that exists."""

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from offloader.cli.app import app
from offloader.config import Config, load_config

pytestmark = pytest.mark.usefixtures("no_environment")

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
CONTAINERFILE = (DEPLOY / "Containerfile").read_text()
UNIT = (DEPLOY / "systemd" / "pulsar-lake.service").read_text()
FILES = [one for one in sorted(DEPLOY.rglob("*")) if one.is_file()]
WRITTEN = ("PULSAR_LAKE_STATE", "NUMBA_CACHE_DIR", "PULSAR_LAKE__QUERY__CACHE_DIR")
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


def pods() -> Iterator[dict[str, Any]]:
    for name in ("offloader.yaml", "spark.yaml"):
        for one in manifests(name):
            if one["kind"] == "Deployment":
                yield one["spec"]["template"]


def policies() -> dict[str, dict[str, Any]]:
    """By name."""
    found = [one for file in ("offloader.yaml", "spark.yaml") for one in manifests(file)]
    return {one["metadata"]["name"]: one["spec"] for one in found if one["kind"] == "NetworkPolicy"}


def selected(selector: dict[str, Any]) -> set[str]:
    """The values of ``app`` of the pods that it selects."""
    found = set()
    for pod in pods():
        labels = pod["metadata"]["labels"]
        expressions = selector.get("matchExpressions", [])
        assert all(one["operator"] == "In" for one in expressions)
        if labels.items() >= selector.get("matchLabels", {}).items() and all(
            labels.get(one["key"]) in one["values"] for one in expressions
        ):
            found.add(labels["app"])
    return found


def commented_environment() -> list[dict[str, Any]]:
    """What ``offloader.yaml`` says to use with ``spark.yaml``."""
    text = (DEPLOY / "kubernetes" / "offloader.yaml").read_text()
    _, _, rest = text.partition("does not have the secret is refused.\n")
    lines = re.match(r"(?: +# .*\n)+", rest)
    assert lines
    found: list[dict[str, Any]] = yaml.safe_load(re.sub(r"(?m)^ +# ", "", lines[0]))
    return found


def created_secrets(name: str) -> dict[str, dict[str, str]]:
    """Secret → key → what it is made of, by the commands in the comments."""
    text = (DEPLOY / "kubernetes" / name).read_text()
    found: dict[str, dict[str, str]] = {}
    for line in re.findall(r"(?m)^# +kubectl (.* create secret .*)$", joined(text)):
        options, _, rest = line.partition(" create secret generic ")
        assert options == "-n pulsar-lake"
        secret, *arguments = shlex.split(re.sub(r"\$\(.*?\)", lambda one: f"'{one[0]}'", rest))
        assert secret not in found
        found[secret] = {}
        for one in arguments:
            _, key, value = one.split("=")
            found[secret][key] = value
    return found


def joined(text: str) -> str:
    """A comment's lines that end with a backslash are one."""
    return re.sub(r"\\\n# +", "", text)


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
    [secret] = created_secrets("offloader.yaml").values()
    for variable in secret:
        monkeypatch.setenv(variable, f"the {variable}".replace(" ", "-"))
    return load_config(tmp_path / name)


def test_the_settings_load(settings: Config) -> None:
    assert settings.offload.topics
    assert settings.spark.conf["spark.driver.host"] == "127.0.0.1"
    assert settings.spark.conf["spark.driver.memory"] == "2g", "both are there"
    assert settings.http.secret() == "the-PULSAR_LAKE__HTTP__TOKEN"
    assert settings.pulsar.auth_token() == "the-PULSAR_LAKE__PULSAR__TOKEN"


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
    lock = (DEPLOY / "requirements.lock").read_text()
    assert f"\npyspark=={metadata.version('pyspark')} " in lock
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
    assert secrets == list(created_secrets("offloader.yaml"))


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


# -- hardening ---------------------------------------------------------------------------------


def test_sparks_ports_are_on_loopback(settings: Config) -> None:
    """Where Spark runs inside the offloader: its ports take commands from whoever reaches them."""
    assert settings.spark.master.startswith("local")
    assert settings.spark.conf["spark.driver.host"] == "127.0.0.1"
    assert settings.spark.conf["spark.driver.bindAddress"] == "127.0.0.1"
    assert settings.spark.conf["spark.ui.enabled"] == "false"
    for file in FILES:
        assert "bindAddress=0.0.0.0" not in re.sub(r"[\s\"':]+", "=", file.read_text())


def test_no_secret_is_one_that_everybody_knows() -> None:
    """None is in the files, so pods wait for those that the commands in the comments make."""
    for file in FILES:
        assert "replace-me" not in file.read_text()
    for name in ("offloader.yaml", "spark.yaml"):
        assert not [one for one in manifests(name) if one["kind"] == "Secret"]
        [secret] = created_secrets(name).values()
        for key, value in secret.items():
            theirs = key == "PULSAR_LAKE__PULSAR__TOKEN"  # Pulsar's
            assert value == ("pulsar-token" if theirs else "$(openssl rand -hex 32)")
    _, container = offloader()
    references = [one["secretRef"] for one in container["envFrom"]]
    for one in (*(container["env"] for _, container in containers()), commented_environment()):
        references += [
            variable["valueFrom"]["secretKeyRef"]
            for variable in one
            if "secretKeyRef" in variable.get("valueFrom", {})
        ]
    assert len(references) == 4
    assert not [one for one in references if one.get("optional")]


def test_a_spark_cluster_asks_for_its_secret() -> None:
    named = {one["name"]: one for one in commented_environment()}
    conf = json.loads(named["PULSAR_LAKE__SPARK__CONF"]["value"])
    assert conf["spark.authenticate"] == conf["spark.network.crypto.enabled"] == "true"
    assert conf["spark.authenticate.secret"] == "$(SPARK_SECRET)"
    assert conf["spark.driver.bindAddress"] == conf["spark.driver.host"] == "$(POD_IP)"
    [(secret, [key])] = created_secrets("spark.yaml").items()
    reference = {"secretKeyRef": {"name": secret, "key": key}}
    assert named["SPARK_SECRET"]["valueFrom"] == reference
    assert list(named).index("SPARK_SECRET") < list(named).index("PULSAR_LAKE__SPARK__CONF")
    daemons = [one for _, one in containers() if one["name"] in ("master", "worker")]
    assert len(daemons) == 2
    for one in daemons:
        environment = {variable["name"]: variable for variable in one["env"]}
        options = environment["SPARK_DAEMON_JAVA_OPTS"]["value"].split()
        assert "-Dspark.authenticate=true" in options
        assert "-Dspark.network.crypto.enabled=true" in options
        assert environment["_SPARK_AUTH_SECRET"]["valueFrom"] == reference


def test_nobody_else_reaches_sparks_ports() -> None:
    found = policies()
    assert all(one["policyTypes"] == ["Ingress"] for one in found.values())
    cluster = {"spark-master", "spark-worker"}
    spark, driver, page = (
        found[name] for name in ("pulsar-lake-spark", "pulsar-lake-driver", "pulsar-lake")
    )

    def let_in(policy: dict[str, Any]) -> set[str]:
        [rule] = policy["ingress"]
        [source] = rule["from"]
        assert source.keys() == {"podSelector"}, "of the same namespace"
        return selected(source["podSelector"])

    assert (selected(spark["podSelector"]), let_in(spark)) == (cluster, {*cluster, "pulsar-lake"})
    assert (selected(driver["podSelector"]), let_in(driver)) == ({"pulsar-lake"}, cluster)
    assert selected(page["podSelector"]) == {"pulsar-lake"}
    _, container = offloader()
    ports = [one["containerPort"] for one in container["ports"]]
    assert page["ingress"] == [{"ports": [{"port": port} for port in ports]}]


def test_containers_can_write_nothing_but_their_volumes() -> None:
    image = image_environment()
    cache = Path(image["NUMBA_CACHE_DIR"])
    for pod in pods():
        spec = pod["spec"]
        if "fsGroup" in spec["securityContext"]:
            assert spec["securityContext"]["fsGroupChangePolicy"] == "OnRootMismatch"
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        volumes = {one["name"]: one for one in spec["volumes"]}
        for container in (*spec["containers"], *spec.get("initContainers", [])):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert {one["name"] for one in container["volumeMounts"]} <= volumes.keys()
        for container in spec["containers"]:
            mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
            assert mounts["tmp"] == "/tmp"
            if container["name"] == "master":
                continue
            written = [Path(path) for path in mounts.values()]
            for path in (Path(image[name]) for name in WRITTEN):
                assert any(path.is_relative_to(one) for one in written)
                assert path not in written, "a folder of its own, which no fsGroup changes"
            [copying] = spec["initContainers"]
            source, target = copying["command"][-2:]
            [mount] = copying["volumeMounts"]
            assert Path(source) == cache
            assert target == f"{mount['mountPath']}/"
            assert Path(mounts[mount["name"]]) / cache.name == cache, "where the image has it"


def test_the_image_is_built_of_what_was_chosen() -> None:
    assert re.search(r"^ARG BASE=debian:\S+@sha256:[0-9a-f]{64}$", CONTAINERFILE, re.MULTILINE)
    assert set(re.findall(r"^FROM (\S+)", CONTAINERFILE, re.MULTILINE)) == {"${BASE}"}
    joined = CONTAINERFILE.replace("\\\n", " ")
    installs = re.findall(r"pip install ([^&\n]*)", joined)
    assert len(installs) == 3
    for options in installs:
        assert {"--no-deps"} < set(options.split())
        assert "--require-hashes" in options or options.split()[-2:] == ["--no-index", "."]
    assert all(" --no-build-isolation" in options for options in installs[1:])


def test_the_images_lock_is_a_part_of_the_tests() -> None:
    """Every version and hash of it; and each package has hashes."""
    chosen, image = (
        re.findall(r"^(\S+==\S+) ((?:\\\n    --hash=sha256:[0-9a-f]{64} ?)+)", text, re.MULTILINE)
        for text in (
            (ROOT / "requirements.lock").read_text(),
            (DEPLOY / "requirements.lock").read_text(),
        )
    )
    assert len(image) == (DEPLOY / "requirements.lock").read_text().count("==") > 40
    hashes = {name: set(lines.split()) for name, lines in chosen}
    assert all(set(lines.split()) <= hashes[name] for name, lines in image)


def test_the_image_can_follow_in_iceberg() -> None:
    """With a database of SQLite's, a REST catalog or files; drivers of others are not in there."""
    lock = (DEPLOY / "requirements.lock").read_text()
    extra = PROJECT["optional-dependencies"]["iceberg"]
    for one in extra:
        name = re.split(r"[\[<>=]", one)[0]
        assert re.search(rf"^{name}==", lock, re.MULTILINE), name
    assert "--extra iceberg" in (ROOT / "Makefile").read_text()


def test_the_code_is_not_its_users() -> None:
    last = CONTAINERFILE.rpartition("\nFROM ")[2]
    copied = dict(re.findall(r"^COPY --from=build (.*?)(/\S+) /\S+$", last, re.MULTILINE))
    owned = {path: options for options, path in copied.items()}
    assert owned["/opt/pulsar-lake"] == "", "root's"
    environment = image_environment()
    for name in WRITTEN:
        assert not Path(environment[name]).is_relative_to("/opt")
    volumes = json.loads(re.findall(r"^VOLUME (.+)$", last, re.MULTILINE)[0])
    for name in WRITTEN:
        assert any(Path(environment[name]).is_relative_to(one) for one in volumes)


def test_the_service_may_do_little() -> None:
    expected = {
        "UMask": ["0077"],
        "NoNewPrivileges": ["yes"],
        "ProtectSystem": ["strict"],
        "RestrictNamespaces": ["yes"],
        "SystemCallFilter": ["@system-service", "~@privileged"],
        "SystemCallErrorNumber": ["EPERM"],
        "StateDirectoryMode": ["0700"],
        "CacheDirectoryMode": ["0700"],
        "CapabilityBoundingSet": [""],
    }
    assert {key: unit(key) for key in expected} == expected
    writable = (*unit("StateDirectory"), *unit("CacheDirectory"))
    assert writable == ("pulsar-lake", "pulsar-lake"), "and not /opt, where the code is"

"""The files in deploy/ fit each other, the schemas of what reads them, and this program."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from typer.main import get_command
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from ldpstream.cli.app import app
from ldpstream.collector.api.app import build_app
from ldpstream.collector.config import Config, load
from ldpstream.collector.credentials.secrets import ENVIRONMENT
from ldpstream.collector.service.service import Service
from tests.collector.helpers import SECRETS, config

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
OURS = ("ldpstream:latest", "ldpstream-spark:latest")
SECRET_KEYS = {"master", "enrolment", "admin", "postgres", "grafana"}


def documents() -> Iterator[dict[str, Any]]:
    for file in MANIFESTS:
        if file.name in ("kustomization.yaml", "datasource.yaml", "provider.yaml"):
            continue
        yield from yaml.safe_load_all(file.read_text())


def pods() -> Iterator[tuple[str, dict[str, Any]]]:
    for one in documents():
        if one["kind"] in ("Deployment", "StatefulSet"):
            yield one["metadata"]["name"], one["spec"]["template"]


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return found


@pytest.fixture(scope="module")
def streams() -> Config:
    return load(DEPLOY / "stream.toml")


def test_the_configuration_is_one_of_ours(streams: Config) -> None:
    assert streams.database is not None
    assert streams.ingest is not None


@pytest.mark.parametrize(
    "document", [*documents()], ids=lambda one: f"{one['kind']}-{one['metadata']['name']}"
)
def test_manifests_fit_the_schema_of_kubernetes(document: dict[str, Any]) -> None:
    kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


def test_a_manifest_that_does_not_fit_is_found() -> None:
    (service, *_) = [one for one in documents() if one["kind"] == "Service"]
    service["spec"]["ports"][0]["prot"] = 80
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(service, kubernetes_validate.latest_version(), strict=True)


def test_the_kustomization_names_files_that_are_there() -> None:
    folder = DEPLOY / "kubernetes"
    given = yaml.safe_load((folder / "kustomization.yaml").read_text())
    files = [*given["resources"], *(f for one in given["configMapGenerator"] for f in one["files"])]
    assert all((folder / file).is_file() for file in files)
    assert {file.name for file in MANIFESTS} <= {"kustomization.yaml", *files}


def test_manifests_refer_to_what_there_is() -> None:
    folder = DEPLOY / "kubernetes"
    given = yaml.safe_load((folder / "kustomization.yaml").read_text())
    maps = {one["name"] for one in given["configMapGenerator"]}
    labels = {name: pod["metadata"]["labels"] for name, pod in pods()}
    for name, pod in pods():
        spec = pod["spec"]
        volumes = {one["name"]: one for one in spec.get("volumes", [])}
        assert {v["configMap"]["name"] for v in volumes.values() if "configMap" in v} <= maps
        (container,) = spec["containers"]
        claims = {"data"} if name in ("engine", "postgres", "nats") else set()
        assert {one["name"] for one in container["volumeMounts"]} <= {*volumes} | claims
        for variable in container.get("env", []):
            if "valueFrom" in variable:
                assert variable["valueFrom"]["secretKeyRef"]["key"] in SECRET_KEYS
        ports = {one["name"] for one in container.get("ports", [])}
        for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
            asked = container.get(probe, {}).get("httpGet")
            assert asked is None or asked["port"] in ports
    for one in documents():
        if one["kind"] == "Service":
            assert one["spec"]["selector"] in labels.values()


def test_probes_and_health_checks_are_answered(tmp_path: Path) -> None:
    (collector,) = [pod["spec"]["containers"][0] for name, pod in pods() if name == "collector"]
    paths = {
        collector[probe]["httpGet"]["path"]
        for probe in ("livenessProbe", "readinessProbe", "startupProbe")
    }
    check = compose()["services"]["collector"]["healthcheck"]["test"][-1]
    paths |= set(re.findall(r"8080(/[a-z0-9/?=]+)", check))
    paths |= set(re.findall(r"health_uri (\S+)", (DEPLOY / "Caddyfile").read_text()))
    scraped = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"]
    paths |= {one["metrics_path"] for one in scraped}
    assert len(paths) == 3
    with TestClient(build_app(Service(config(tmp_path), SECRETS))) as client:
        for path in sorted(paths):
            assert client.get(path).status_code == 200, path


def test_everyone_means_the_same_ports_and_hosts(streams: Config) -> None:
    services = compose()["services"]
    headless = {one["metadata"]["name"] for one in documents() if one["kind"] == "Service"}
    assert services["collector"]["expose"] == [str(streams.port)]
    (collector,) = [pod["spec"]["containers"][0] for name, pod in pods() if name == "collector"]
    assert collector["ports"][0]["containerPort"] == streams.port
    (scraped,) = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"]
    found = scraped["dns_sd_configs"][0]
    assert (found["names"], found["port"]) == (["collector"], streams.port)
    datasource = yaml.safe_load((DEPLOY / "grafana" / "datasource.yaml").read_text())
    hosts = {"collector", "postgres", "nats"}
    hosts |= {re.split("[/:]+", one["url"])[1] for one in datasource["datasources"]}
    text = (DEPLOY / "stream.toml").read_text()
    hosts |= set(re.findall(r"(?:@|nats://)([a-z]+):", text))
    assert hosts <= services.keys()
    assert hosts <= headless


def commands() -> Iterator[list[str]]:
    for service in compose()["services"].values():
        if service.get("image") in OURS:
            yield service["command"]
    for _, pod in pods():
        (container,) = pod["spec"]["containers"]
        if container["image"] in OURS:
            yield container["args"]
    for line in (DEPLOY / "Dockerfile").read_text().splitlines():
        if line.startswith("CMD"):
            yield yaml.safe_load(line.removeprefix("CMD"))


@pytest.mark.parametrize("words", [*commands()], ids=" ".join)
def test_commands_are_ones_that_this_program_has(words: list[str]) -> None:
    command: Any = get_command(app)
    rest = list(words)
    while hasattr(command, "commands"):
        command = command.commands[rest.pop(0)]
    command.make_context("ldpstream", rest, resilient_parsing=False)


def test_containers_get_the_secrets_that_collectors_read() -> None:
    services = compose()["services"]
    assert {*ENVIRONMENT.values(), "PGPASSWORD"} <= services["collector"]["environment"].keys()
    (collector,) = [pod["spec"]["containers"][0] for name, pod in pods() if name == "collector"]
    names = {one["name"] for one in collector["env"]}
    assert {*ENVIRONMENT.values(), "PGPASSWORD"} <= names
    example = (DEPLOY / "env.example").read_text()
    wanted = set(re.findall(r"\$\{([A-Z_]+):\?", (DEPLOY / "compose.yaml").read_text()))
    assert wanted == set(re.findall(r"^([A-Z_]+)=$", example, re.MULTILINE))


def test_an_engine_gets_the_password_of_the_database_and_no_secret() -> None:
    assert compose()["services"]["engine"]["environment"].keys() == {"PGPASSWORD"}
    (engine,) = [pod["spec"]["containers"][0] for name, pod in pods() if name == "engine"]
    assert {one["name"] for one in engine["env"]} == {"PGPASSWORD"}


def test_grafana_has_a_password_of_its_own() -> None:
    """Its data are what the admin's token shows."""
    service = compose()["services"]["grafana"]
    assert service["environment"]["GF_SECURITY_ADMIN_PASSWORD"].startswith("${GRAFANA_PASSWORD:?")
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    (pod,) = [pod["spec"]["containers"][0] for name, pod in pods() if name == "grafana"]
    assert {one["name"] for one in pod["env"]} == {"GF_SECURITY_ADMIN_PASSWORD"}


def test_the_kustomization_says_how_to_make_each_secret() -> None:
    text = (DEPLOY / "kubernetes" / "kustomization.yaml").read_text()
    assert set(re.findall(r"--from-literal=([a-z]+)=", text)) == SECRET_KEYS


def test_only_the_proxy_and_grafana_can_be_reached_from_outside() -> None:
    """So the collectors may believe whoever asks them about the visitor's address."""
    open_ones = {name for name, one in compose()["services"].items() if "ports" in one}
    assert open_ones == {"proxy", "grafana"}


def test_collectors_believe_their_proxy_who_asks() -> None:
    given = compose()
    (network,) = given["networks"]["default"]["ipam"]["config"]
    believed = given["services"]["collector"]["environment"]["FORWARDED_ALLOW_IPS"]
    assert believed == network["subnet"]

    async def who(request: Request) -> PlainTextResponse:
        assert request.client is not None
        return PlainTextResponse(request.client.host)

    behind: Any = ProxyHeadersMiddleware(Starlette(routes=[Route("/", who)]), believed)  # type: ignore[arg-type]
    proxy = str(next(ip_network(believed).hosts()))
    for asking, heard in ((proxy, "192.0.2.7"), ("198.51.100.1", "198.51.100.1")):
        with TestClient(behind, client=(asking, 50000)) as client:
            assert client.get("/", headers={"X-Forwarded-For": "192.0.2.7"}).text == heard


def test_files_that_compose_mounts_are_there() -> None:
    given = compose()
    for service in given["services"].values():
        for mount in service.get("volumes", []):
            source = mount.split(":")[0]
            if source.startswith("."):
                assert (DEPLOY / source).is_file(), source
            else:
                assert source in given["volumes"]
        for other in service.get("depends_on", {}):
            assert other in given["services"]


def test_the_image_installs_extras_that_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = (DEPLOY / "Dockerfile").read_text()
    extras = {
        one for found in re.findall(r"\.whl\)\[([a-z,]+)\]", text) for one in found.split(",")
    }
    assert extras <= project["optional-dependencies"].keys()
    assert {"postgres", "nats", "spark", "collector"} <= extras
    assert 'ENTRYPOINT ["ldpstream"]' in text
    assert "ldpstream" in project["scripts"]
    for line in text.splitlines():
        if line.startswith("COPY"):
            names = line.split()[1:-1]
            assert "dist/ldpstream-*.whl" in names  # tests/verify/test_dist.py builds it
            assert all((ROOT / name).exists() for name in names if not name.startswith("dist/"))

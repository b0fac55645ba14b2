"""The files in deploy/: brokers accept their properties, containers and units end brokers by SIGTERM, and nothing runs as root."""

from __future__ import annotations

import configparser
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from kafkacompat.config import BrokerConfig
from kafkacompat.config.environment import read_environment

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
BROKERS = {name: service for name, service in COMPOSE["services"].items() if name.startswith("broker-")}


def find_instructions(name: str) -> list[str]:
    """Return the arguments of an instruction in the last stage of the Dockerfile."""
    stage = DOCKERFILE[DOCKERFILE.rindex("\nFROM ") :]
    return re.findall(rf"^{name} +(.*)$", stage, re.MULTILINE)


def image_environment() -> dict[str, str]:
    pairs = (word.partition("=") for line in find_instructions("ENV") for word in shlex.split(line))
    return {name: value for name, _, value in pairs}


def load_config(environment: dict[str, str]) -> BrokerConfig:
    config = BrokerConfig.load(None, read_environment(environment))
    assert (config.unknown_names, config.names_without_effect) == ((), ())
    return config


def test_the_image_has_properties_that_a_broker_accepts() -> None:
    config = load_config(image_environment())
    assert [listener.entry for listener in config.listeners] == ["PLAINTEXT://0.0.0.0:9092"]
    assert config.advertised_listeners == {"PLAINTEXT": ("localhost", 9092)}
    assert find_instructions("VOLUME") == list(config.log_dirs)


def test_the_image_runs_a_broker_as_its_first_process_and_not_as_root() -> None:
    assert find_instructions("USER") == ["65532:65532"]
    assert json.loads(find_instructions("ENTRYPOINT")[0]) == ["/usr/bin/python3", "-m", "kafkacompat"]
    assert json.loads(find_instructions("CMD")[-1]) == ["serve"]
    assert find_instructions("STOPSIGNAL") == ["SIGTERM"]


def test_the_health_check_asks_the_address_where_health_is_served() -> None:
    address = image_environment()["KAFKACOMPAT_KAFKACOMPAT_HTTP_LISTENER"]
    assert f"http://{address}/readyz" in DOCKERFILE


def test_the_build_context_has_what_the_package_needs() -> None:
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert all((ROOT / name).exists() for name in sent)
    assert {
        "setup.py",
        "setup.cfg",
        "pyproject.toml",
        "README.md",
        "kafkacompat",
        "wire",
        "handlers",
        "storage",
        "spark_integration",
    } <= sent


@pytest.mark.parametrize("name", BROKERS)
def test_each_broker_of_the_compose_file_advertises_what_it_publishes(name: str) -> None:
    service: dict[str, Any] = BROKERS[name]
    config = load_config({**image_environment(), **service["environment"]})
    assert f"broker-{config.node_id}" == name == service["hostname"]
    assert config.advertised_listeners["INSIDE"] == (name, 9092)
    host, port, inner_port = service["ports"][0].split(":")
    assert (host, config.advertised_listeners["OUTSIDE"]) == ("127.0.0.1", ("localhost", int(port)))
    assert int(inner_port) == next(listener.port for listener in config.listeners if listener.name == "OUTSIDE")
    assert config.inter_broker_listener.name == "INSIDE"


def test_the_containers_may_do_nothing_else() -> None:
    volumes = [service["volumes"][0].partition(":")[0] for service in BROKERS.values()]
    assert sorted(volumes) == sorted(BROKERS)
    assert set(volumes) < set(COMPOSE["volumes"])
    for service in BROKERS.values():
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])


@pytest.mark.parametrize("path", sorted(DEPLOY.glob("*.properties")), ids=lambda path: path.name)
def test_example_properties_are_accepted_and_have_an_effect(path: Path) -> None:
    config = BrokerConfig.load(path.read_text())
    assert (config.unknown_names, config.names_without_effect) == ((), ())
    assert config.log_dirs == ("/var/lib/kafkacompat",)


def test_the_unit_runs_without_rights_and_is_ended_by_sigterm() -> None:
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(DEPLOY / "kafkacompat.service")
    service = unit["Service"]
    assert (service["User"], service["CapabilityBoundingSet"], service["NoNewPrivileges"]) == ("kafkacompat", "", "yes")
    # KillSignal is SIGTERM by default, and a broker with bad properties ends with 2.
    assert "KillSignal" not in service
    assert service["RestartPreventExitStatus"] == "2"
    assert (
        f"/var/lib/{service['StateDirectory']}"
        == BrokerConfig.load((DEPLOY / "server.properties").read_text()).log_dirs[0]
    )

"""The options --test-clock and --faults of `kafkacompat serve`."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace

import pytest
from twisted.internet.task import Clock

from kafkacompat.adjustable_reactor import AdjustableReactor
from kafkacompat.cli.for_tests import prepare_tests
from kafkacompat.config import BrokerConfig, ConfigError


def make_config(**properties: str) -> BrokerConfig:
    given = {name.replace("_", "."): value for name, value in properties.items()}
    return BrokerConfig({"node.id": "1", "log.dirs": "/data", **given})


def test_a_clock_for_tests_needs_the_http_listener() -> None:
    with pytest.raises(ConfigError, match=r"--test-clock: .*: set kafkacompat\.http\.listener"):
        prepare_tests(make_config(), None, has_clock=True)
    mode = prepare_tests(make_config(kafkacompat_http_listener="127.0.0.1:8080"), None, has_clock=True)
    host = mode.build_host(Clock())
    assert isinstance(host.reactor, AdjustableReactor)


@pytest.mark.parametrize("has_clock", [False, True])
def test_a_broker_with_users_is_controlled_by_users_only(tmp_path: Path, has_clock: bool) -> None:
    path = tmp_path / "faults.yaml"
    path.write_text("rules:\n")
    users = {"authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    http = {"kafkacompat_http_listener": "127.0.0.1:8080"}
    sentence = (
        f"{'--test-clock' if has_clock else '--faults'} with kafkacompat.http.listener needs a login, as the broker has"
    )
    with pytest.raises(ConfigError, match=sentence):
        prepare_tests(make_config(**users, **http), path, has_clock=has_clock)
    prepare_tests(make_config(**users, **http, kafkacompat_http_scram_enable="true"), path, has_clock=has_clock)
    prepare_tests(make_config(**users), path, has_clock=False)


def test_faults_from_a_file_need_no_http_listener(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "faults.yaml"
    path.write_text("rules:\n- drop: true\n  api: Produce\n")
    mode = prepare_tests(make_config(), path, has_clock=False)
    assert [rule["api"] for rule in mode.faults.list()] == ["Produce"]
    with caplog.at_level(logging.WARNING):
        mode.begin(SimpleNamespace(monitor=None))  # type: ignore[arg-type]  # without an HTTP listener
    assert "This broker is for tests, which control its faults: it must not serve in production" in caplog.text


def test_a_leader_can_be_moved_where_the_broker_is_in_a_cluster(tmp_path: Path) -> None:
    path = tmp_path / "faults.yaml"
    path.write_text("rules:\n- {move_leader: true, topic: t, partition: 0}\n")
    with pytest.raises(ConfigError, match="line 2: move_leader: a single broker leads every partition itself"):
        prepare_tests(make_config(), path, has_clock=False)
    mode = prepare_tests(make_config(zookeeper_connect="127.0.0.1:2181"), path, has_clock=False)
    assert len(mode.faults.list()) == 1

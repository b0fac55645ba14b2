"""From options to the commands of brokers."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import pytest

from kafkacompat.cli.cluster.folder import ClusterCommandError
from kafkacompat.cli.cluster.plan import ClusterOptions, broker_overrides, check_options, find_addresses, plan_broker

DATA = Path("cluster")


def options_with(
    properties: Path | None = None,
    *,
    brokers: int = 3,
    zookeeper: str | None = None,
    port: int = 9092,
    **overrides: str,
) -> ClusterOptions:
    named = {name.replace("_", "."): value for name, value in overrides.items()}
    return ClusterOptions(properties, brokers, zookeeper, port, DATA, named)


def write_properties(folder: Path, text: str) -> Path:
    path = folder / "server.properties"
    path.write_text(text)
    return path


def test_the_command_of_a_broker(tmp_path: Path) -> None:
    properties = write_properties(tmp_path, "num.partitions=6")
    plan = plan_broker(2, options_with(properties, x_y="1"), {}, "zk:2181/chroot")
    assert plan.command[:6] == [sys.executable, "-m", "kafkacompat", "serve", "--port", "9093"]
    assert plan.command[-1] == str(properties)
    assert plan.command[6:-1] == [
        *("--override", "x.y=1"),
        *("--override", "node.id=2"),
        *("--override", "log.dirs=cluster/broker-2/data"),
        *("--override", "zookeeper.connect=zk:2181/chroot"),
    ]
    assert (plan.name, plan.folder, plan.log) == ("broker-2", DATA / "broker-2", DATA / "broker-2" / "broker.log")


@pytest.mark.parametrize(("brokers", "factor", "in_sync"), [(1, "1", "1"), (2, "2", "1"), (3, "3", "2"), (5, "3", "2")])
def test_without_a_file_topics_have_as_many_replicas_as_there_are_brokers(
    brokers: int, factor: str, in_sync: str
) -> None:
    overrides = broker_overrides(1, options_with(brokers=brokers), {}, zookeeper="zk")
    assert overrides["default.replication.factor"] == overrides["offsets.topic.replication.factor"] == factor
    assert overrides["min.insync.replicas"] == overrides["transaction.state.log.min.isr"] == in_sync


def test_options_and_variables_win_over_the_chosen_replication() -> None:
    options = options_with(min_insync_replicas="1")
    overrides = broker_overrides(1, options, {"KAFKACOMPAT_DEFAULT_REPLICATION_FACTOR": "2"}, zookeeper="zk")
    assert overrides["min.insync.replicas"] == "1"
    assert "default.replication.factor" not in overrides


def test_the_zookeeper_of_the_strongest_source_counts(tmp_path: Path) -> None:
    assert check_options(options_with(), {}) is None
    properties = write_properties(tmp_path, "zookeeper.connect = file:2181\nbroker.id=7\nlog.dirs=/tmp/kafka-logs")
    assert check_options(options_with(properties), {}) == "file:2181"
    variables = {"KAFKACOMPAT_ZOOKEEPER_CONNECT": "variable:2181"}
    assert check_options(options_with(properties), variables) == "variable:2181"
    assert check_options(options_with(properties, zookeeper_connect="override:1"), variables) == "override:1"
    options = options_with(properties, zookeeper="option:1", zookeeper_connect="override:1")
    assert check_options(options, variables) == "option:1"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (options_with(node_id="7"), "--override node.id=7 is not possible: the command counts"),
        (options_with(log_dirs="/x"), "--override log.dirs=/x is not possible: each broker gets a folder"),
        (options_with(port=65534), "--port 65534 is too high for 3 brokers: the last one would listen on 65536"),
        (options_with(num_partitions="0"), "num.partitions=0 is not valid"),
        (options_with(Path("/proc/self/mem")), "the properties file cannot be read"),
    ],
)
def test_what_no_broker_could_be_started_with(options: ClusterOptions, words: str) -> None:
    with pytest.raises(ClusterCommandError) as problem:
        check_options(options, {})
    assert words in str(problem.value)
    assert problem.value.exit_code == 2


TWO = "listeners=A://h:1,B://:{port}\nlistener.security.protocol.map=A:SSL,B:SASL_SSL\nsasl.enabled.mechanisms=PLAIN\n"


def find_overrides(options: ClusterOptions, number: int) -> dict[str, str]:
    command = plan_broker(number, options, {}, "zk").command
    assert "--port" not in command
    texts = [value for name, value in pairwise(command) if name == "--override"]
    return dict(text.split("=", 1) for text in texts)


def test_each_listener_counts_from_a_port_of_its_own(tmp_path: Path) -> None:
    options = options_with(write_properties(tmp_path, TWO.format(port=19092)))
    check_options(options, {})
    assert find_addresses(options, {}) == [("h", 9092), ("", 19092)]
    overrides = find_overrides(options, 3)
    assert overrides["listeners"] == "A://h:9094,B://:19094"
    assert "advertised.listeners" not in overrides


def test_advertised_ports_count_too(tmp_path: Path) -> None:
    text = "listeners=PLAINTEXT://:1000\nadvertised.listeners=PLAINTEXT://kafka:2000"
    overrides = find_overrides(options_with(write_properties(tmp_path, text), port=1000), 2)
    assert overrides["listeners"] == "PLAINTEXT://:1001"
    assert overrides["advertised.listeners"] == "PLAINTEXT://kafka:2001"


def test_advertised_ports_exist_for_every_broker(tmp_path: Path) -> None:
    text = "listeners=PLAINTEXT://:1000\nadvertised.listeners=PLAINTEXT://kafka:65534"
    with pytest.raises(ClusterCommandError, match=r"advertised.listeners=PLAINTEXT://kafka:65536 is not valid"):
        check_options(options_with(write_properties(tmp_path, text), port=1000), {})


def test_listeners_whose_ports_meet_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ClusterCommandError, match="the port 9094 is needed twice, as 3 brokers take this number"):
        check_options(options_with(write_properties(tmp_path, TWO.format(port=9094))), {})
    with pytest.raises(ClusterCommandError, match="the port 9092 is needed twice"):
        check_options(options_with(write_properties(tmp_path, TWO.format(port=9092))), {})
    check_options(options_with(write_properties(tmp_path, TWO.format(port=9095))), {})
    with pytest.raises(ClusterCommandError, match="the port 65534 of a listener is too high for 3 brokers"):
        check_options(options_with(write_properties(tmp_path, TWO.format(port=65534))), {})


def test_options_become_a_command_line_again() -> None:
    options = ClusterOptions(Path("a.properties"), 5, "zk:1", 19092, DATA, {"a": "b=c"})
    assert options.to_arguments() == [
        *("--brokers", "5", "--port", "19092", "--data", "cluster"),
        *("--zookeeper", "zk:1", "--override", "a=b=c", "a.properties"),
    ]
    assert options_with().to_arguments() == ["--brokers", "3", "--port", "9092", "--data", "cluster"]


def test_replication_that_the_brokers_cannot_give_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ClusterCommandError, match=r"default\.replication\.factor=4 needs as many brokers, and there are 3"
    ):
        check_options(options_with(default_replication_factor="4"), {})
    file = write_properties(tmp_path, "num.partitions=6")
    with pytest.raises(ClusterCommandError, match=r"offsets\.topic\.replication\.factor=3 .* there are 2") as problem:
        check_options(options_with(file, brokers=2), {})
    assert problem.value.exit_code == 2


def test_the_host_of_the_brokers(tmp_path: Path) -> None:
    assert find_addresses(options_with(), {}) == [("127.0.0.1", 9092)]
    options = options_with(write_properties(tmp_path, "listeners=PLAINTEXT://:1"))
    assert find_addresses(options, {}) == [("", 9092)]

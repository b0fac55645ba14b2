"""kcat, as it lies on many machines: list, produce, consume, query, group. Skipped where it is not installed."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from compat_tests.brokers import Broker

pytestmark = pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def run_kcat(broker: Broker, *arguments: str, stdin: str = "", code: int = 0) -> str:
    command = ["kcat", "-b", broker.bootstrap, *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done
    return done.stdout if code == 0 else done.stderr


def produce(broker: Broker, topic: str, count: int) -> None:
    run_kcat(broker, "-P", "-t", topic, "-K:", stdin="".join(f"k{number}:v{number}\n" for number in range(count)))


def test_list(broker: Broker, name: str) -> None:
    produce(broker, name, 1)
    shown = run_kcat(broker, "-L", "-t", name)
    assert f"broker 1 at 127.0.0.1:{broker.port} (controller)" in shown
    assert f'topic "{name}" with 1 partitions:\n    partition 0, leader 1, replicas: 1, isrs: 1\n' in shown
    (topic,) = json.loads(run_kcat(broker, "-L", "-J", "-t", name))["topics"]
    partition = {"partition": 0, "leader": 1, "replicas": [{"id": 1}], "isrs": [{"id": 1}]}
    assert topic == {"topic": name, "partitions": [partition]}


@pytest.mark.parametrize("idempotence", ["false", "true"])
@pytest.mark.parametrize("codec", CODECS)
def test_produce_and_consume(broker: Broker, name: str, codec: str, idempotence: str) -> None:
    options = ("-K:", "-H", "from=kcat", "-z", codec, "-X", f"enable.idempotence={idempotence}")
    run_kcat(broker, "-P", "-t", name, *options, stdin="".join(f"k{number}:v{number}\n" for number in range(500)))
    output = run_kcat(broker, "-C", "-t", name, "-e", "-q", "-f", "%o %k %s %h\n")
    assert output.splitlines() == [f"{number} k{number} v{number} from=kcat" for number in range(500)]


def test_consume_from_where_one_likes(broker: Broker, name: str) -> None:
    produce(broker, name, 5)
    assert run_kcat(broker, "-C", "-t", name, "-o", "-2", "-e", "-q") == "v3\nv4\n"
    assert run_kcat(broker, "-C", "-t", name, "-o", "1", "-c", "2", "-q") == "v1\nv2\n"
    assert run_kcat(broker, "-C", "-t", name, "-o", "s@0", "-c", "1", "-q") == "v0\n"
    first = json.loads(run_kcat(broker, "-C", "-t", name, "-c", "1", "-q", "-J"))
    assert (first["topic"], first["offset"], first["key"], first["payload"]) == (name, 0, "k0", "v0")
    assert first["tstype"] == "create"


def test_query(broker: Broker, name: str) -> None:
    produce(broker, name, 5)
    first = json.loads(run_kcat(broker, "-C", "-t", name, "-c", "1", "-q", "-J"))
    assert run_kcat(broker, "-Q", "-t", f"{name}:0:-1") == f"{name} [0] offset 5\n"
    assert run_kcat(broker, "-Q", "-t", f"{name}:0:-2") == f"{name} [0] offset 0\n"
    assert run_kcat(broker, "-Q", "-t", f"{name}:0:{first['ts']}") == f"{name} [0] offset 0\n"
    assert run_kcat(broker, "-Q", "-t", f"{name}:0:{first['ts'] + 3_600_000}") == f"{name} [0] offset -1\n"


def test_group_goes_on_where_it_was(broker: Broker, name: str) -> None:
    produce(broker, name, 7)
    group = ("-G", name, "-q", "-X", "auto.offset.reset=earliest")
    assert run_kcat(broker, *group, "-c", "3", name) == "v0\nv1\nv2\n"
    assert run_kcat(broker, *group, "-e", name) == "v3\nv4\nv5\nv6\n"


def test_a_topic_that_is_not_there(broker: Broker, name: str) -> None:
    options = ("-e", "-X", "allow.auto.create.topics=false")
    assert "Unknown topic or partition" in run_kcat(broker, "-C", "-t", name, *options, code=1)

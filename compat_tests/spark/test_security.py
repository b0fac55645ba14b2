"""Spark's source and sink, and the pipelines, over TLS: by SCRAM, by certificates and by delegation tokens."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.errors import StreamingQueryException

from compat_tests.brokers import ROOT
from compat_tests.certificates import Authority
from compat_tests.confluent import create_topic
from compat_tests.page_blocks import PageRun, find_blocks, find_section
from compat_tests.spark.auditing import offsets_of
from compat_tests.spark.by_token import ROWS
from compat_tests.spark.scene import read_stored
from compat_tests.spark.secured import (
    MECHANISM,
    PASSWORD,
    SecuredBroker,
    run_watched,
    write_properties,
)
from spark_integration.archive.pipeline import archive
from spark_integration.audit.pipeline import audit
from spark_integration.queries.settings import StreamOptions
from spark_integration.topics.client_settings import read_kafka_options
from spark_integration.topics.cluster import Cluster

Options = dict[str, str]
REDACTION = "*********(redacted)"


@pytest.fixture(scope="module")
def secured(broker_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    running = SecuredBroker(broker_kind, tmp_path_factory.mktemp("secured"))
    try:
        running.start()
        yield running
    finally:
        running.broker.stop()


@pytest.fixture(params=["login", "certificate"])
def options(request: pytest.FixtureRequest, secured: SecuredBroker) -> Options:
    """Spark's options for each way to authenticate."""
    if request.param == "login":
        return secured.options("LOGIN", secured.login())
    return secured.options("MUTUAL", secured.certificate_in_a_file())


def write(spark: Any, options: Options, topic: str, count: int) -> set[str]:
    """Write values by Spark's sink, and return them."""
    rows = spark.range(count).selectExpr("concat('value ', id) as value")
    rows.write.format("kafka").options(**options, topic=topic).save()
    return {f"value {number}" for number in range(count)}


def values_of(frame: Any) -> list[str]:
    return sorted(row.value for row in frame.selectExpr("string(value) as value").collect())


def list_values(secured: SecuredBroker, topic: str) -> set[str | None]:
    return {value for _, _, value in read_stored(secured.broker, topic)}


def test_batches_by_scram_over_tls(secured: SecuredBroker, spark: Any, name: str) -> None:
    """The one of these tests that `make test` runs."""
    create_topic(secured.broker, name, 2)
    login = secured.options("LOGIN", secured.login())
    written = write(spark, login, name, 1000)
    assert list_values(secured, name) == written
    assert values_of(spark.read.format("kafka").options(**login, subscribe=name).load()) == sorted(written)


@pytest.mark.spark
def test_a_stream_from_topic_to_topic(
    secured: SecuredBroker, options: Options, spark: Any, name: str, tmp_path: Path
) -> None:
    target = f"{name}-copy"
    for topic in (name, target):
        create_topic(secured.broker, topic, 2)
    written = write(spark, options, name, 700)
    stream = spark.readStream.format("kafka").options(**options, subscribe=name, startingOffsets="earliest").load()
    writer = stream.select("key", "value").writeStream.format("kafka").options(**options, topic=target)
    query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    assert list_values(secured, target) == written


@pytest.mark.spark
def test_pipelines_by_certificates_without_a_file(
    secured: SecuredBroker, spark: Any, name: str, tmp_path: Path
) -> None:
    """The Admin client commits for a group, and the audit's own client finds the markers of transactions."""
    create_topic(secured.broker, name)
    producer = Producer({"bootstrap.servers": secured.broker.bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(name, b"in a transaction")
    producer.commit_transaction(30)
    file = write_properties(tmp_path / "client.properties", secured.certificate_as_text())
    options = {"kafka.bootstrap.servers": secured.bootstrap("MUTUAL"), **read_kafka_options(file)}
    source = {**options, "subscribe": name, "startingOffsets": "earliest", "kafka.isolation.level": "read_committed"}
    stream = StreamOptions(str(tmp_path / "checkpoint"), commit_group=name)
    assert archive(spark, source, str(tmp_path / "archive"), stream).records == 1
    with Cluster(spark, options) as cluster:
        assert list(cluster.read_committed(name).values()) == [2]
    assert offsets_of(audit(spark, source), "marker") == {(0, 1)}


@pytest.mark.spark
def test_a_token_that_a_program_obtains(secured: SecuredBroker, spark: Any, name: str, tmp_path: Path) -> None:
    """Once the token has been expired, the broker refuses it in a sentence."""
    create_topic(secured.broker, name)
    with Cluster(spark, secured.options("LOGIN", secured.login())) as cluster:
        token = cluster._admin.createDelegationToken().delegationToken().get()
        login = secured.login(str(token.tokenInfo().tokenId()), str(token.hmacAsBase64String()), by_token=True)
        options = secured.options("LOGIN", login)
        written = write(spark, options, name, 50)
        source = {**options, "subscribe": name, "startingOffsets": "earliest"}
        assert archive(spark, source, str(tmp_path / "a"), StreamOptions(str(tmp_path / "b"))).records == len(written)
        expire = spark._jvm.org.apache.kafka.clients.admin.ExpireDelegationTokenOptions().expiryTimePeriodMs(-1)
        cluster._admin.expireDelegationToken(token.hmac(), expire).expiryTimestamp().get()
    with pytest.raises(Exception, match="the broker refuses the credentials"):
        archive(spark, source, str(tmp_path / "c"), StreamOptions(str(tmp_path / "d")))


@pytest.mark.spark
def test_tokens_that_spark_obtains(secured: SecuredBroker, name: str, tmp_path: Path) -> None:
    """The options hold no login, so that the source, the sink and the pipeline can log in by the token alone."""
    create_topic(secured.broker, name)
    login = secured.login()
    settings = {
        "auth.bootstrap.servers": secured.bootstrap("LOGIN"),
        "security.protocol": "SASL_SSL",
        "sasl.token.mechanism": MECHANISM,
        **secured.trust(),
        "kafka.sasl.mechanism": MECHANISM,
        "kafka.sasl.jaas.config": login["sasl.jaas.config"],
    }
    conf = {f"spark.kafka.clusters.here.{key}": value for key, value in settings.items()}
    given = {
        "conf": conf,
        "options": secured.options("LOGIN", secured.trust()),
        "topic": name,
        "folder": str(tmp_path),
    }
    done = run_watched("compat_tests.spark.by_token", [], tmp_path, json.dumps(given))
    assert done.code == 0, done.errors
    assert json.loads(done.output) == {
        "services": ["kafka.server.delegation.token.here"],
        "batch": ROWS,
        "stream": ROWS,
        "archive": ROWS,
    }
    assert any("SparkSubmit" in line and "spark.kafka.clusters.here" in line for line in done.command_lines)
    assert not any(PASSWORD in line for line in done.command_lines)


@pytest.mark.spark
def test_plans_hide_secrets(secured: SecuredBroker, spark: Any, name: str, tmp_path: Path) -> None:
    """A batch that reads, and a stream that writes and fails: its failure shows its plan."""
    create_topic(secured.broker, name)
    secrets = {**secured.certificate_as_text(), "sasl.jaas.config": secured.login()["sasl.jaas.config"]}
    options = {**secured.options("MUTUAL", secrets), "startingOffsets": "earliest"}
    write(spark, options, name, 1)
    batch = spark.read.format("kafka").options(**options, subscribe=name).load()
    stream = spark.readStream.format("kafka").options(**options, subscribe=name).load()
    writer = stream.selectExpr("raise_error('x') as value").writeStream.format("kafka").options(**options, topic=name)
    query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    with pytest.raises(StreamingQueryException) as failure:
        query.awaitTermination(120)
    assert f"kafka.ssl.keystore.key={REDACTION}" in str(failure.value)
    for shown in (str(batch._jdf.queryExecution().toString()), str(failure.value)):
        assert PASSWORD not in shown
        assert "PRIVATE KEY" not in shown


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("password", "the broker refuses the credentials (Authentication failed during authentication due to invalid"),
        ("authority", "the TLS handshake failed (Path does not chain with any of the trust anchors)"),
    ],
)
@pytest.mark.spark
def test_a_failed_login_is_one_sentence(
    secured: SecuredBroker, name: str, tmp_path: Path, change: str, sentence: str
) -> None:
    properties = secured.login(password="an0ther-password") if change == "password" else secured.login()
    if change == "authority":
        properties["ssl.truststore.location"] = str(Authority(tmp_path / "other").certificate)
    config = write_properties(tmp_path / "client.properties", properties)
    places = ["--path", str(tmp_path / "archive"), "--checkpointLocation", str(tmp_path / "checkpoint")]
    words = ["--bootstrap-server", secured.bootstrap("LOGIN"), "--command-config", str(config), "--subscribe", name]
    done = run_watched("kafkacompat", ["spark", "archive", *words, *places], tmp_path)
    assert done.code == 2
    shown = [line for line in done.errors.splitlines() if not line.startswith("Spark ")]
    assert len(shown) == 1, done.errors
    assert shown[0].startswith(f"Error: {secured.bootstrap('LOGIN')}: {sentence}")
    assert any("SparkSubmit" in line for line in done.command_lines)
    assert not any("password=" in text for text in (done.output, done.errors, *done.command_lines))


@pytest.mark.spark
def test_the_page(secured: SecuredBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create_topic(secured.broker, "orders")
    producer = Producer({"bootstrap.servers": secured.broker.bootstrap})
    producer.produce("orders", b"an order")
    assert producer.flush(30) == 0
    shutil.copy(secured.authority.certificate, tmp_path / "ca.pem")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    page = PageRun(tmp_path, {"localhost:9094": secured.bootstrap("LOGIN")})
    for block in find_blocks(find_section((ROOT / "docs" / "SPARK.md").read_text(), "Security")):
        page.run(block)
    assert list((tmp_path / "archive").rglob("*.parquet"))

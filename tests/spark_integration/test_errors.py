"""Explanations of Spark's and Kafka's failures."""

from __future__ import annotations

import pytest

from spark_integration.errors import explain_failure

PY4J = "An error occurred while calling o42.get.\n: "
KAFKA = "java.util.concurrent.ExecutionException: org.apache.kafka.common.errors."


@pytest.mark.parametrize(
    ("text", "explanation"),
    [
        (
            "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.",
            "check --driver-memory",
        ),
        (
            "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\nThis stopped SparkContext",
            "is the cluster of --master running?",
        ),
        (
            "org.apache.spark.api.python.PythonException: pyspark.errors.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] "
            "Python in worker has different version: 3.9 than that in driver: 3.11",
            "set PYSPARK_PYTHON",
        ),
        (f"{KAFKA}UnknownTopicOrPartitionException: This server does not host it.", "does not exist"),
        ("[KAFKA_DATA_LOSS.START_OFFSET_RESET] Some data may have been lost.", "--failOnDataLoss false"),
        ("Partition t-0's offset was changed from 10 to 2, some data", "--failOnDataLoss false"),
        (
            "org.apache.kafka.common.config.ConfigException: No resolvable bootstrap urls given in bootstrap.servers",
            "cannot be resolved",
        ),
        (
            "org.apache.kafka.common.KafkaException: Failed to create new KafkaAdminClient\n\tat a.b(c)\n"
            "Caused by: org.apache.kafka.common.config.ConfigException: no file /x\n\tat a.b(c)",
            "does not take its options (no file /x): correct --command-config",
        ),
        (
            f"{KAFKA}TimeoutException: Timed out waiting for a node assignment. Call: listTopics",
            "no broker answered in time",
        ),
        (
            f"{KAFKA}SaslAuthenticationException: Authentication failed: Invalid username\n\tat a.b",
            "(Authentication failed: Invalid username)",
        ),
        (
            f"{KAFKA}UnsupportedSaslMechanismException: Client SASL mechanism 'PLAIN' not enabled in the server",
            "has no such login (Client SASL mechanism 'PLAIN' not enabled in the server): check sasl.mechanism",
        ),
        (f"{KAFKA}SslAuthenticationException: SSL handshake failed", "(SSL handshake failed)"),
        (
            f"{KAFKA}SslAuthenticationException: SSL handshake failed\n\tat a.b(c)\n"
            "Caused by: javax.net.ssl.SSLHandshakeException: PKIX path building failed: a.Odd: no path\n\tat a.b(c)\n"
            "Caused by: a.SunCertPathBuilderException: unable to find valid certification path\n\tat a.b(c)",
            "the TLS handshake failed (unable to find valid certification path): check ssl.*",
        ),
        (f"{KAFKA}GroupAuthorizationException: Not authorized to access group: g", "access group: g"),
        (f"{KAFKA}TopicAuthorizationException: Not authorized to access topics: [t]", "access topics: [t]"),
        (
            f"{KAFKA}UnknownMemberIdException: Failed altering group offsets for the following partitions: [t-0]",
            "has members of its own",
        ),
        ("[PATH_NOT_FOUND] Path does not exist: file:/tmp/a. SQLSTATE: 42K03", "there is no file:/tmp/a: give"),
        ("java.util.ConcurrentModificationException: Multiple streaming queries are using it", "same checkpoint"),
        (
            "[STREAM_FAILED] Query terminated with exception: Task 0 in stage 1.0 failed: java.io.IOException: "
            "No space left on device\n\tat java.base/java.util.concurrent.ThreadPoolExecutor.runWorker(Unknown)",
            "a disk is full",
        ),
        ("spark_integration.errors.PipelineError: the words of ours\n  File b", "the words of ours"),
    ],
)
def test_known_failures_have_a_sentence(text: str, explanation: str) -> None:
    sentence = explain_failure(Exception(PY4J + text))
    assert explanation in sentence
    assert "\n" not in sentence
    assert "Exception" not in sentence


def test_unknown_failures_show_their_first_line() -> None:
    assert explain_failure(Exception(f"{PY4J}java.lang.Odd: so it is\n\tat a.b(c)")) == "java.lang.Odd: so it is"


def test_a_stack_of_threads_is_not_another_run() -> None:
    text = "[STREAM_FAILED] Query terminated: Odd\n\tat java.util.concurrent.ThreadPoolExecutor.runWorker(Unknown)"
    assert explain_failure(Exception(text)) == "[STREAM_FAILED] Query terminated: Odd"


def test_a_failure_without_text_shows_its_kind() -> None:
    assert explain_failure(KeyError()) == "KeyError"

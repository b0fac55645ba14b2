"""Failures of a pipeline, each explained in one sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple


class PipelineError(Exception):
    """A pipeline cannot do its work; the text is one sentence: what is wrong, with which value, what to do."""


class KnownFailure(NamedTuple):
    """A failure of Spark's or Kafka's that users meet: a pattern of its text, and the sentence that explains it."""

    pattern: str
    sentence: str


# The first pattern that fits counts; its groups are filled into the sentence.
KNOWN_FAILURES: Sequence[KnownFailure] = (
    # An error that a function of ours raised in the query's thread or on an executor.
    KnownFailure(r"spark_integration\.\S+\.(?:Pipeline|Registry)Error: ([^\n]+)", "{0}"),
    KnownFailure(
        r"ModuleNotFoundError: No module named '([^']+)'",
        "the executors' Python has no {0}: run pip install '.[spark]' in a clone of kafkacompat on every worker",
    ),
    KnownFailure(
        r"JAVA_GATEWAY_EXITED",
        "the JVM of Spark did not start, for the reason printed above: check --driver-memory and --conf",
    ),
    KnownFailure(
        r"Cannot call methods on a stopped SparkContext",
        "Spark stopped, for the reason printed above: is the cluster of --master running?",
    ),
    KnownFailure(
        r"PYTHON_VERSION_MISMATCH\][^\n]*",
        "the workers' Python is of another release than the driver's: set PYSPARK_PYTHON to one that all of them have",
    ),
    KnownFailure(
        r"UnknownTopicOrPartitionException|KAFKA_UNKNOWN_TOPIC_OR_PARTITION",
        "a topic that is read or written does not exist (any more): create it, or name another",
    ),
    KnownFailure(
        r"(?:KAFKA_DATA_LOSS|Some data may have been lost|Partition [\S]+'s offset was changed)[^\n]*",
        "offsets that were still to be read are gone, as the topic was truncated, deleted or recreated: "
        "give --failOnDataLoss false to continue with the existing records",
    ),
    KnownFailure(
        r"No resolvable bootstrap urls given in bootstrap\.servers",
        "the bootstrap server's name cannot be resolved: give --bootstrap-server HOST:PORT of a broker",
    ),
    KnownFailure(
        r"Failed to create new Kafka\w+.*?Caused by: [\w.$]+: ([^\n]+)",
        "Kafka's client does not take its options ({0}): correct --command-config or --option",
    ),
    KnownFailure(
        r"SaslAuthenticationException: ([^\n]*)",
        "the broker refuses the credentials ({0}): check sasl.jaas.config in the file of --command-config",
    ),
    KnownFailure(
        r"(?:UnsupportedSaslMechanism|IllegalSaslState)Exception: ([^\n]*)",
        "the broker has no such login ({0}): check sasl.mechanism in the file of --command-config",
    ),
    # The last cause of a failed handshake names what is wrong.
    KnownFailure(
        r"SslAuthenticationException: (?:.*Caused by: [\w.$]+: )?([^\n]*)",
        "the TLS handshake failed ({0}): check ssl.* in the file of --command-config",
    ),
    KnownFailure(
        r"Timed out waiting for a node assignment|TimeoutException",
        "no broker answered in time: is it running, do its advertised listeners lead there, and is their "
        "security.protocol that in the file of --command-config?",
    ),
    KnownFailure(
        r"(Topic|Group|Cluster)AuthorizationException: ([^\n]*)",
        "the broker forbids it ({1}): grant this user what it needs",
    ),
    KnownFailure(
        r"UnknownMemberIdException",
        "the consumer group has members of its own, and only they may commit its offsets: end them, or name another group",
    ),
    KnownFailure(
        r"ClassNotFoundException: (org\.apache\.spark\.sql\.kafka010\S*|kafka)\b",
        "Spark has no Kafka source: let spark_integration.session start it",
    ),
    KnownFailure(
        # Spark 3.5 has words where later releases have the name of an error class.
        r"(?:FAILED_READ_FILE|CANNOT_READ_FILE_FOOTER|error while reading)[^\n]*?file:? \[?([a-z0-9]+:/[^\s\]]+?)\.? ",
        "{0} cannot be read as it is damaged: restore it from a copy",
    ),
    KnownFailure(
        r"No space left on device",
        "a disk is full: make room where Spark keeps its files (spark.local.dir) and where it writes",
    ),
    KnownFailure(
        r"PATH_NOT_FOUND\] Path does not exist: ([^\s]+?)\.? ",
        "there is no {0}: give a path that exists",
    ),
    KnownFailure(
        r"ConcurrentModificationException|CONCURRENT_STREAM|Multiple streaming queries are concurrently using",
        "another run uses the same checkpoint: let it end, or give a checkpoint of its own",
    ),
)


def explain_failure(failure: BaseException) -> str:
    """Explain a failure of Spark's in one sentence; for an unknown one that is the first line of its text."""
    text = str(failure)
    for known in KNOWN_FAILURES:
        if match := re.search(known.pattern, text, re.DOTALL):
            return known.sentence.format(*(group or "" for group in match.groups()))
    return _first_line(text) or type(failure).__name__


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # py4j puts a line of its own before the failure itself.
    own_lines = [line for line in lines if not line.startswith("An error occurred while calling")]
    return own_lines[0].removeprefix(": ") if own_lines else ""

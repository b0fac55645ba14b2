"""One test against several releases of Kafka by a marker, in sessions of pytest of its own."""

from __future__ import annotations

import pytest

import kafkacompat.testing

pytest_plugins = ["pytester"]
OPTIONS = ("-p", "kafkacompat.testing.plugin", "-p", "no:cacheprovider", "-q")


@pytest.fixture(autouse=True, scope="module")
def _load_broker() -> None:
    """Load the broker once: pytester forgets the modules that a session in this process loads."""
    with kafkacompat.testing.broker() as kafka:
        kafka.release("2.8")


def run(pytester: pytest.Pytester, test: str) -> pytest.RunResult:
    pytester.makepyfile(f"import pytest\n\n{test}")
    return pytester.runpytest_inprocess(*OPTIONS)


def test_a_marked_test_runs_once_for_each_release(pytester: pytest.Pytester) -> None:
    marked = """
@pytest.mark.kafka_releases("0.11", "4.3")
def test_marked(kafka, kafka_release):
    assert kafka_release in ("0.11", "4.3")
    assert kafka.bootstrap_servers == kafka.release(kafka_release)

def test_without(kafka, kafka_release):
    assert kafka_release is None
"""
    result = run(pytester, marked)
    result.assert_outcomes(passed=3)


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        ('@pytest.mark.kafka_releases("2.8")\ndef test_it():\n    pass', "uses no broker: use the fixture kafka"),
        ("@pytest.mark.kafka_releases\ndef test_it(kafka):\n    pass", "name the releases as @pytest.mark.kafka_releases("),
        ('@pytest.mark.kafka_releases("5.0")\ndef test_it(kafka):\n    pass', "release '5.0' of Kafka is not known"),
    ],
)  # fmt: skip
def test_a_wrong_marker_is_one_sentence(pytester: pytest.Pytester, test: str, reason: str) -> None:
    result = run(pytester, test)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*{reason.replace('[', '[[]')}*"])

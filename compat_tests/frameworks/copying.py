"""A job that copies a topic in transactions and is killed in the middle."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest

from compat_tests.brokers import Broker
from compat_tests.confluent import create_topic, produce
from compat_tests.frameworks.interruption import InterruptedJob
from compat_tests.frameworks.programme import Programme, serves_transactions
from compat_tests.frameworks.reading import Reader, by_partition, read_topic

PARTITIONS = 3
RECORDS = 4000


def check_killed_copy(broker: Broker, name: str, begin: Callable[[], Programme]) -> None:
    """Kill and restart a job that sends every value of the topic *name* in capitals to the same partition of NAME-out."""
    if not serves_transactions(broker):
        pytest.skip("the broker does not serve transactions yet")
    for topic in (name, f"{name}-out"):
        create_topic(broker, topic, PARTITIONS)
    values = [f"value-{number:05}" for number in range(RECORDS)]
    produce(broker, name, values[: RECORDS // 2])
    with closing(Reader(broker, f"{name}-out", PARTITIONS)) as reader:
        job = InterruptedJob(begin, Programme.kill, at_work=True)
        job.run(reader, RECORDS, lambda: produce(broker, name, values[RECORDS // 2 :]))
        written = by_partition(reader.records)
    source = by_partition(read_topic(broker, name, PARTITIONS, RECORDS))
    for partition, records in source.items():
        wanted = [(key, value.upper()) for key, value in (record.texts for record in records)]
        assert [record.texts for record in written[partition]] == wanted

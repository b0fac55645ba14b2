"""Step 1: produce every flight with confluent-kafka, compressed with zstd.

To run this step alone: ``python -m spark_integration.demo.produce --bootstrap-server 127.0.0.1:9092``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import click
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from spark_integration.demo.flights import PARTITIONS, TOPIC, Flight, load_flights
from spark_integration.errors import PipelineError

SECONDS = 60
# A broker that does not answer is reported in one sentence, and not in librdkafka's log lines.
SILENT = logging.getLogger(f"{__name__}.librdkafka")
SILENT.disabled = True


def create_topic(bootstrap: str) -> None:
    """Create the topic of the demo; raises PipelineError if it exists already, or if no broker answers."""
    admin = AdminClient({"bootstrap.servers": bootstrap}, logger=SILENT)
    try:
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)], operation_timeout=SECONDS)[TOPIC].result(SECONDS)
    except (KafkaException, TimeoutError) as problem:
        error = problem.args[0] if problem.args and isinstance(problem, KafkaException) else None
        if error is not None and error.code() == KafkaError.TOPIC_ALREADY_EXISTS:
            raise PipelineError(
                f"there is a topic {TOPIC!r} already: delete it to produce the flights again"
            ) from problem
        reason = error.str() if error is not None else "no answer"
        raise PipelineError(
            f"{bootstrap} did not create the topic {TOPIC!r} ({reason}): is a broker running?"
        ) from problem


def produce_flights(bootstrap: str, flights: Sequence[Flight], advance: Callable[[int], None]) -> int:
    """Produce all flights; return the number of acknowledged ones. Calls *advance* with 1 for each of them.

    Raises PipelineError if a flight is rejected, or if not all are acknowledged in time.
    """
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "compression.type": "zstd",
            "acks": "all",
            "linger.ms": 20,
            "partitioner": "murmur2_random",
        }
    )
    acknowledged = 0

    def delivered(error: Any, _: Any) -> None:
        nonlocal acknowledged
        if error is not None:
            raise PipelineError(f"a flight was not written to {TOPIC!r} ({error.str()}): is the broker running?")
        acknowledged += 1
        advance(1)

    for flight in flights:
        while True:
            try:
                producer.produce(
                    TOPIC, key=flight.key, value=flight.value, headers=flight.headers, on_delivery=delivered
                )
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    if left := producer.flush(SECONDS):
        raise PipelineError(
            f"{bootstrap} has not acknowledged {left:,} of {len(flights):,} flights within {SECONDS} s: is it running?"
        )
    return acknowledged


@click.command()
@click.option("--bootstrap-server", default="127.0.0.1:9092", show_default=True, help="The broker.")
def main(bootstrap_server: str) -> None:
    """Create the topic and produce the flights into it."""
    flights = load_flights()
    try:
        create_topic(bootstrap_server)
        with click.progressbar(length=len(flights), label=f"Producing to '{TOPIC}'") as bar:
            count = produce_flights(bootstrap_server, flights, bar.update)
    except PipelineError as problem:
        raise click.ClickException(str(problem)) from problem
    click.echo(f"{count:,} flights are in '{TOPIC}'")


if __name__ == "__main__":
    main()

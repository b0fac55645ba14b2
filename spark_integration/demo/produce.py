"""Step 1: produce every flight through confluent-kafka, compressed with zstd.

By itself: ``python -m spark_integration.demo.produce --bootstrap-server 127.0.0.1:9092``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from spark_integration.demo.flights import PARTITIONS, TOPIC, Flight, load


def create_topic(bootstrap: str) -> None:
    """Create the topic of the demo."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)


def produce(bootstrap: str, flights: Sequence[Flight], advance: Callable[[int], None]) -> int:
    """Produce all flights; return how many the broker acknowledged. ``advance`` hears of each as it is."""
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
            raise KafkaException(error)
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
    producer.flush(60)
    return acknowledged


@click.command()
@click.option("--bootstrap-server", default="127.0.0.1:9092", show_default=True, help="The broker.")
def main(bootstrap_server: str) -> None:
    """Create the topic and produce the flights into it."""
    flights = load()
    create_topic(bootstrap_server)
    with click.progressbar(length=len(flights), label=f"Producing to '{TOPIC}'") as bar:
        count = produce(bootstrap_server, flights, bar.update)
    click.echo(f"{count:,} flights are in '{TOPIC}'")


if __name__ == "__main__":
    main()

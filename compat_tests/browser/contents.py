"""A broker with the page and with something to look at: topics of several kinds, a group that lags, and an instance."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

ORDERS = 3000
CITIES = ("Berlin", "Kyiv", "Lagos", "Lima", "Osaka", "Pune", "Quito", "Turin")
HOSTILE = "<img src=x onerror=alert(1)>"
"""A key, a value, and the name of a header that would run a script on a careless page."""


def make_properties(port: int) -> dict[str, str]:
    """Return the properties of a broker with the page and without users."""
    return {"kafkacompat.http.listener": f"127.0.0.1:{port}", "kafkacompat.ui.enable": "true"}


def make_order(number: int, rng: Random) -> bytes:
    """Return an order as JSON."""
    order = {
        "order": number,
        "customer": {"id": rng.randrange(500), "city": rng.choice(CITIES)},
        "items": [{"sku": f"A-{rng.randrange(90):02d}", "count": rng.randint(1, 4)} for _ in range(rng.randint(1, 3))],
        "total": round(rng.uniform(5, 200), 2),
    }
    return json.dumps(order).encode()


def fill(bootstrap: str) -> None:
    """Create topics with messages, and a group that has read a part."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [
        NewTopic("orders", 6, 1, config={"retention.ms": "604800000", "compression.type": "zstd"}),
        NewTopic("payments", 3, 1),
        NewTopic("customers", 3, 1, config={"cleanup.policy": "compact"}),
        NewTopic("hostile", 1, 1),
        *(NewTopic(f"sensors.line-{number}", 2, 1) for number in range(1, 8)),
    ]
    for created in admin.create_topics(topics).values():
        created.result(30)
    rng = Random(1)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for number in range(ORDERS):
        producer.produce(
            "orders", make_order(number, rng), f"customer-{number % 500}", headers={"trace": f"{number:08x}"}
        )
        if number % 100 == 0:
            producer.poll(0)
    for number in range(200):
        producer.produce("payments", rng.randbytes(24), f"payment-{number}")
        producer.produce("customers", f"customer {number} from {rng.choice(CITIES)}", f"customer-{number}")
    producer.produce("hostile", HOSTILE, HOSTILE, headers={HOSTILE: HOSTILE.encode()})
    producer.produce("hostile", None, b"\xff\xfe\x00")
    producer.produce("hostile", "left \u202e right", "\x00" + "k" * 3)
    assert producer.flush(30) == 0


@contextmanager
def open_group(bootstrap: str, group: str, protocol: str = "classic") -> Iterator[None]:
    """Have a group of a protocol with one member, which has read half of the orders."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "client.id": "billing-7",
        "auto.offset.reset": "earliest",
        "group.protocol": protocol,
    }
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.subscribe(["orders"])
    read = 0
    while read < ORDERS // 2:
        message = consumer.poll(10)
        assert message is not None and message.error() is None
        read += 1
    assigned = [TopicPartition(part.topic, part.partition) for part in consumer.assignment()]
    consumer.commit(offsets=consumer.position(assigned), asynchronous=False)
    try:
        yield
    finally:
        consumer.close()


@contextmanager
def make_traffic(bootstrap: str) -> Iterator[None]:
    """Produce orders in bursts from a thread, for as long as the context is open."""
    ending = threading.Event()
    thread = threading.Thread(target=_produce_until, args=(bootstrap, ending))
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


def _produce_until(bootstrap: str, ending: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    rng = Random(2)
    number = 0
    while not ending.wait(0.5):
        for _ in range(rng.randrange(20, 400)):
            producer.produce("orders", make_order(number, rng), f"customer-{number % 500}")
            number += 1
        producer.produce("payments", rng.randbytes(24), f"payment-{number}")
        producer.poll(0)
    producer.flush(30)

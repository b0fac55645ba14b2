"""Drives kafka-python 0.9.0, the first that can be had; runs on Python 2.7, with nothing but itself.

It has no compressed sets of keyed messages, so the set is compressed here; its consumer never resumes."""

import json
import sys
import time

from kafka import KafkaClient, SimpleConsumer, create_message
from kafka.codec import gzip_encode, snappy_encode
from kafka.common import Message, ProduceRequest
from kafka.partitioner import HashedPartitioner
from kafka.protocol import KafkaProtocol

PATIENCE_SECONDS = 25.0
FILL = "x" * 100
ENCODE = {"gzip": (KafkaProtocol.CODEC_GZIP, gzip_encode), "snappy": (KafkaProtocol.CODEC_SNAPPY, snappy_encode)}


def tell(**event):
    # type: (**object) -> None
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def message_of(number):
    # type: (int) -> Message
    return create_message("value-%d-%s" % (number, FILL), "key-%d" % (number % 50))


def packed(messages, codec):
    # type: (list[Message], str) -> list[Message]
    if codec == "none":
        return messages
    attributes, encode = ENCODE[codec]
    return [Message(0, attributes, None, encode(KafkaProtocol._encode_message_set(messages)))]


def connected(bootstrap, topic):
    # type: (str, str) -> KafkaClient
    """Return a client that knows the topic, which is made by asking for it."""
    client = KafkaClient(bootstrap, client_id="matrix", timeout=15)
    deadline = time.time() + PATIENCE_SECONDS
    while topic not in client.topic_partitions:
        if time.time() > deadline:
            raise RuntimeError("the topic was not made")
        client.load_metadata_for_topics(topic)
    return client


def produce(bootstrap, topic, codec, numbers):
    # type: (str, str, str, range) -> None
    client = connected(bootstrap, topic)
    partitions = client.topic_partitions[topic]
    partitioner = HashedPartitioner(partitions)
    messages = {}  # type: dict[int, list[Message]]
    for number in numbers:
        message = message_of(number)
        messages.setdefault(partitioner.partition(message.key, partitions), []).append(message)
    for partition, some in messages.items():
        client.send_produce_request([ProduceRequest(topic, partition, packed(some, codec))], acks=-1, timeout=10000)
    client.close()


def consume(bootstrap, topic, count):
    # type: (str, str, int) -> None
    client = connected(bootstrap, topic)
    sizes = {"fetch_size_bytes": 1 << 20, "buffer_size": 1 << 20, "max_buffer_size": None}
    consumer = SimpleConsumer(client, topic + "-reader", topic, auto_commit=False, **sizes)
    consumer.provide_partition_info()
    seen = 0
    deadline = time.time() + PATIENCE_SECONDS
    while seen < count:
        for partition, entry in consumer.get_messages(count=500, block=True, timeout=0.2):
            tell(partition=partition, offset=entry.offset, key=entry.message.key, value=entry.message.value)
            seen += 1
        if time.time() > deadline:
            raise RuntimeError("only %d of %d records came" % (seen, count))
    client.close()


def obey(bootstrap, verb, words):
    # type: (str, str, list[str]) -> None
    if verb == "create":
        connected(bootstrap, words[0]).close()
    elif verb == "produce":
        first, count = int(words[3]), int(words[4])
        produce(bootstrap, words[1], words[2], range(first, first + count))
    else:
        consume(bootstrap, words[1], int(words[3]))


def main():
    # type: () -> None
    for line in iter(sys.stdin.readline, ""):
        words = line.split()
        try:
            obey(sys.argv[-1], words[0], words[1:])
            tell(done=True)
        except Exception as problem:
            tell(error="%s: %s" % (type(problem).__name__, problem))


if __name__ == "__main__":
    main()

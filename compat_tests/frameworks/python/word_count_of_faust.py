"""A word count of Faust: the topic's lines are counted by word in a table; every new count goes out.

Run as ``word_count_of_faust.py worker``; the environment says BOOTSTRAP, NAME (application and topic) and PARTITIONS.
"""

from __future__ import annotations

import os
from typing import Any

import faust

NAME = os.environ["NAME"]
PARTITIONS = int(os.environ["PARTITIONS"])

app = faust.App(
    NAME,
    broker=f"aiokafka://{os.environ['BOOTSTRAP']}",
    store="memory://",
    topic_partitions=PARTITIONS,
    topic_replication_factor=1,
    web_enabled=False,
    broker_commit_interval=0.5,
    broker_session_timeout=6,
    broker_heartbeat_interval=1,
)
lines = app.topic(NAME, key_serializer="raw", value_serializer="raw", key_type=bytes, value_type=bytes)
words = app.topic(f"{NAME}-words", key_serializer="raw", value_serializer="raw", key_type=bytes, value_type=bytes)
counts = app.topic(f"{NAME}-out", key_serializer="raw", value_serializer="raw", key_type=bytes, value_type=bytes)
table = app.Table(f"{NAME}-table", default=int, partitions=PARTITIONS)


@app.agent(lines)  # type: ignore[untyped-decorator]
async def split(stream: Any) -> None:
    """Send every word where its count is kept."""
    async for line in stream:
        for word in line.split():
            await words.send(key=word, value=b"")


@app.agent(words)  # type: ignore[untyped-decorator]
async def count(stream: Any) -> None:
    """Count a word and send its count."""
    async for word, _ in stream.items():
        text = word.decode()
        table[text] += 1
        await counts.send(key=word, value=str(table[text]).encode())


if __name__ == "__main__":
    app.main()

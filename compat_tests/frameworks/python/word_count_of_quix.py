"""A word count of Quix Streams: the topic's lines are split, grouped by word and counted; every new count goes out.

The environment says BOOTSTRAP, NAME (group and topic), GUARANTEE and STATE (a folder).
"""

from __future__ import annotations

import os
from typing import Any

from quixstreams import Application

NAME = os.environ["NAME"]


def count(word: str, state: Any) -> str:
    """Add one to a word's count."""
    total = state.get("total", 0) + 1
    state.set("total", total)
    return str(total)


def main() -> None:
    """Run until a signal ends it."""
    application = Application(
        broker_address=os.environ["BOOTSTRAP"],
        consumer_group=NAME,
        auto_offset_reset="earliest",
        processing_guarantee=os.environ["GUARANTEE"],
        commit_interval=0.5,
        state_dir=os.environ["STATE"],
        consumer_extra_config={"session.timeout.ms": 6000, "heartbeat.interval.ms": 1000},
    )
    lines = application.topic(NAME, value_deserializer="str")
    counts = application.topic(f"{NAME}-out", value_serializer="str")
    words = application.dataframe(lines).apply(str.split, expand=True)
    by_word = words.group_by(lambda word: word, name="word", value_serializer="str", value_deserializer="str")
    by_word.apply(count, stateful=True).to_topic(counts)
    application.run()


if __name__ == "__main__":
    main()

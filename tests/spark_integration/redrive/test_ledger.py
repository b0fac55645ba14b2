"""The topic of a ledger, and the letters of killed runs."""

from __future__ import annotations

from typing import Any

import pytest

from spark_integration.errors import PipelineError
from spark_integration.redrive import ledger
from spark_integration.redrive.ledger import RedriveLedger
from spark_integration.topics.cluster import TopicDescription
from spark_integration.topics.offsets import Offsets, TopicPartition


class Memory:
    """A folder in memory instead of Hadoop's."""

    uri = "memory:/ledger"

    def __init__(self) -> None:
        self.held: dict[str, str] = {}

    def exists(self, name: str) -> bool:
        return name in self.held

    def read(self, name: str) -> str:
        return self.held[name]

    def write_new(self, name: str, text: str) -> None:
        assert name not in self.held
        self.held[name] = text

    def numbers(self, folder: str) -> list[int]:
        return [int(name.partition("/")[2]) for name in self.held if name.startswith(f"{folder}/")]


LETTERS = TopicDescription("letters", "1", 1, False)


def test_a_ledger_is_of_one_topic_whatever_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    memory, spark = Memory(), Any
    monkeypatch.setattr(ledger, "HadoopFiles", lambda *_: memory)
    RedriveLedger(spark, "/ledger", LETTERS).check("a:1")
    assert memory.held == {}
    RedriveLedger(spark, "/ledger", LETTERS).begin({})
    RedriveLedger(spark, "/ledger", LETTERS).begin({})
    RedriveLedger(spark, "/ledger", LETTERS).check("a:1")
    RedriveLedger(spark, "/ledger", LETTERS._replace(name="others", topic_id="2")).check("a:1")
    with pytest.raises(
        PipelineError, match=r"is of another topic letters than the one on a:1, .*: give another --ledger$"
    ):
        RedriveLedger(spark, "/ledger", LETTERS._replace(topic_id="2")).check("a:1")


class Frame:
    """A frame that is never computed."""

    def unionByName(self, _: Frame) -> Frame:
        return self

    def distinct(self) -> Frame:
        return self


class Session:
    def createDataFrame(self, *_: Any) -> Frame:
        return Frame()


def test_records_of_killed_runs_are_read_once_from_the_first_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    memory, read = Memory(), list[Offsets]()

    def find_redriven(_spark: Any, _target: Any, begin: Offsets) -> Frame:
        read.append(begin)
        return Frame()

    monkeypatch.setattr(ledger, "HadoopFiles", lambda *_: memory)
    monkeypatch.setattr(ledger, "find_redriven", find_redriven)
    a, b = TopicPartition("a", 0), TopicPartition("b", 0)
    spark: Any = Session()
    book = RedriveLedger(spark, "/ledger", LETTERS)
    book.read_redriven({})
    assert read == []
    for begin in ({a: 100}, {a: 200, b: 5}, {b: 7}):
        book.begin(begin)
    book.read_redriven({})
    assert read == [{a: 100, b: 5}]

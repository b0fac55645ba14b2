"""What is better, level and worse than Apache Kafka, in a sentence each, sorted by what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.row import HEADER, KAFKA, OLD_KAFKA, RECORDS
from bench.verdict import Spread, compute_ratios

BETTER, LEVEL, WORSE = "Better", "Level", "Worse"
SIDES = (BETTER, LEVEL, WORSE)


@dataclass(frozen=True)
class Comparison:
    """A metric of a row, and the sentence about it: ``{ours}`` and ``{theirs}`` stand for the medians."""

    row: str
    metric: str
    sentence: str
    more_is_better: bool = True
    contender: str = RECORDS
    kafka: str = KAFKA

    def side(self, results: Mapping[str, Sequence[Mapping[str, float]]]) -> str:
        """Return the side on which the whole interquartile range of the ratios lies; LEVEL where it includes 1."""
        spread = self._ratios(results)
        if spread.low <= 1 <= spread.high:
            return LEVEL
        return BETTER if (spread.low > 1) == self.more_is_better else WORSE

    def words(self, results: Mapping[str, Sequence[Mapping[str, float]]], note: str) -> str:
        """Return the sentence with its figures, the ratio with its quartiles, and a note on scaled loads."""
        ours, theirs = (format_figure(median(self._figures(results, name))) for name in (self.contender, self.kafka))
        spread = self._ratios(results)
        ratio = f"{format_figure(spread.middle)} times ({format_figure(spread.low)} to {format_figure(spread.high)})"
        return f"{self.sentence.format(ours=ours, theirs=theirs)}: {ratio}.{note}"

    def _ratios(self, results: Mapping[str, Sequence[Mapping[str, float]]]) -> Spread:
        return Spread.of(compute_ratios(*(self._figures(results, name) for name in (self.contender, self.kafka))))

    def _figures(self, results: Mapping[str, Sequence[Mapping[str, float]]], contender: str) -> list[float]:
        return [sample[self.metric] for sample in results[contender]]


def _compare_throughput(row: str, title: str, contender: str = RECORDS) -> Comparison:
    return Comparison(row, "records/s", f"{title}: {{ours}} records a second, Kafka {{theirs}}", contender=contender)


def _compare_cpu(row: str, title: str, contender: str = RECORDS) -> Comparison:
    words = f"{title}: {{ours}} CPU seconds of the broker per million records, Kafka {{theirs}}"
    return Comparison(row, "broker CPU s per million records", words, more_is_better=False, contender=contender)


def _compare_lower(row: str, metric: str, sentence: str) -> Comparison:
    return Comparison(row, metric, sentence, more_is_better=False)


def _first_record(row: str, client: str) -> Comparison:
    words = f"First record of a new group, {client}: {{ours}} ms, Kafka {{theirs}} ms"
    return _compare_lower(f"first-record-{row}", "first record ms", words)


COMPARISONS = (
    _compare_lower(
        "start", "seconds to first answer", "Start of a new node: {ours} s to the first response, Kafka {theirs} s"
    ),
    _compare_lower("start", "resident MB", "Memory after the start: {ours} MB, Kafka {theirs} MB"),
    _first_record("java", "Java client"),
    _first_record("librdkafka", "librdkafka"),
    _first_record("kafka-python", "kafka-python"),
    Comparison("transactions-1", "commits/s", "Transactions of one record: {ours} commits a second, Kafka {theirs}"),
    Comparison("read-committed", "read_committed MB/s", "Reading committed records: {ours} MB/s, Kafka {theirs} MB/s"),
    _compare_lower(
        "latency-1000", "end-to-end p50 us", "Median latency at 1,000 records a second: {ours} µs, Kafka {theirs} µs"
    ),
    _compare_lower(
        "latency-1000", "end-to-end p99 us", "p99 latency at 1,000 records a second: {ours} µs, Kafka {theirs} µs"
    ),
    _compare_lower(
        "latency-half-load", "end-to-end p50 us", "Median latency at half load: {ours} µs, Kafka {theirs} µs"
    ),
    _compare_lower("latency-half-load", "end-to-end p99 us", "p99 latency at half load: {ours} µs, Kafka {theirs} µs"),
    _compare_throughput("produce", "Raw produce"),
    _compare_throughput("produce", "Raw produce, header validation", HEADER),
    _compare_cpu("produce", "Raw produce"),
    _compare_throughput("fetch", "Raw fetch"),
    _compare_cpu("fetch", "Raw fetch"),
    _compare_throughput("producer-performance", "ProducerPerformance"),
    _compare_cpu("producer-performance", "ProducerPerformance"),
    _compare_throughput("consumer-performance-1", "ConsumerPerformance"),
    _compare_cpu("consumer-performance-1", "ConsumerPerformance"),
    _compare_throughput("both-at-once", "Both tools at once"),
    Comparison("group-commit-1", "batches/s", "Every batch synced first: {ours} batches a second, Kafka {theirs}"),
    _compare_throughput("compaction-100-uncompressed", "Compaction of 100-byte records"),
    _compare_throughput("compaction-1024-uncompressed", "Compaction of 1,024-byte records"),
    Comparison(
        "down-conversion-1024",
        "MB/s",
        "Conversion for old clients: {ours} MB/s, Kafka 3.9.1 {theirs} MB/s",
        kafka=OLD_KAFKA,
    ),
    _compare_lower(
        "rebalance-100", "ms since the first JoinGroup", "Rebalance of 100 members: {ours} ms, Kafka {theirs} ms"
    ),
    _compare_throughput("cluster-produce-unreplicated", "Three nodes, one producer, no replication"),
    _compare_cpu("cluster-produce-unreplicated", "Three nodes, one producer, no replication"),
    _compare_throughput("cluster-produce-synchronous", "Three nodes, one producer, three replicas, acks=all"),
    _compare_cpu("cluster-produce-synchronous", "Three nodes, one producer, three replicas, acks=all"),
    _compare_throughput("cluster-consume-one", "Three nodes, one consumer"),
    _compare_throughput("spark-archive", "Spark writes an archive"),
    _compare_throughput("spark-replay", "Spark replays an archive"),
)


def summarize_results(stored: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the summary: a list of sentences for each side."""
    yield "## In short\n"
    yield "**Better** and **worse** mean that the whole interquartile range of the ratios to Kafka lies on that side of 1;"
    yield "**level** means that it includes 1. Each line gives both medians, and the median ratio with its quartiles.\n"
    for side in SIDES:
        sentences = [
            comparison.words(stored[comparison.row]["results"], stored[comparison.row]["note"])
            for comparison in COMPARISONS
            if comparison.row in stored and comparison.side(stored[comparison.row]["results"]) == side
        ]
        yield f"**{side}:**\n"
        yield from (f"- {sentence}" for sentence in sentences or ["nothing."])
        yield ""
    yield sendfile_sentence(stored)
    yield ""


def sendfile_sentence(stored: Mapping[str, Any]) -> str:
    """Say how near raw fetch is to the bound that the kernel sets, if that was measured."""
    if "sendfile" not in stored:
        return (
            "Raw fetch leaves the copying to the kernel's `sendfile`. `make bench ROWS=sendfile` compares it with a loop that does "
            "nothing else, in the same run; it has not been run on a quiet machine yet, so there is no figure here."
        )
    samples = stored["sendfile"]["results"][RECORDS]
    fetched, bare = (median(sample[metric] for sample in samples) for metric in ("fetch MB/s", "bare sendfile MB/s"))
    share = Spread.of([sample["share of bare"] for sample in samples])
    is_level = share.low <= 1 <= share.high
    beginning = (
        "Raw fetch runs at the speed of" if is_level else f"Raw fetch has {format_figure(share.middle)} of the speed of"
    )
    return (
        f"{beginning} a bare `sendfile` loop: {format_figure(fetched)} MB/s beside {format_figure(bare)} MB/s of a process that does nothing else "
        f"with the same files, measured in turn; the share is {format_figure(share.middle)} ({format_figure(share.low)} to {format_figure(share.high)})."
    )


def format_figure(value: float) -> str:
    """Write three significant digits, with thousands apart."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"

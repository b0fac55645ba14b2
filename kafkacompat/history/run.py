"""A run: clients of all roles work, some of them and the broker are killed, and one file collects what they recorded."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from kafkacompat.history.broker import (
    OwnBrokers,
    RunError,
    run_restart_command,
    serves_transactions,
    wait_for_broker,
)
from kafkacompat.history.client import (
    COPIES_PARTITIONS,
    LONGEST_END_S,
    RECORDS_PARTITIONS,
    ClientOrders,
    HistoryTopicNames,
    now_ns,
    pause,
)
from kafkacompat.history.events import ISOLATIONS, READ_COMMITTED, Event, Restarted, Worked, encode_event, merge_parts
from kafkacompat.history.kills import BrokerKills, Disturbance, random_time_after
from kafkacompat.history.slots import ClientSlot

TICK_S = 0.05
SECONDS_A_CLIENT_KILL = 3.0
RUN = "run.0"
"""The client name of events that the run itself records."""
LONGEST_WARM_UP_S = 60.0
LONGEST_LAST_S = 240.0
TOPIC_CALL_S = 30.0

KEEP_ALL_CONFIGS = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
"""Topic configs that keep all records."""


class RunPlan(NamedTuple):
    """The plan of a run. Without a bootstrap server, the run has brokers of its own."""

    bootstrap: str | None
    seconds: float
    kills: int
    producers: int
    transactional: int
    copiers: int
    members: int
    group_protocol: str
    throughput: float
    seed: int
    topic_prefix: str
    replication_factor: int
    """Replicas of the topics; -1 means the broker's default."""
    config: dict[str, str]
    """Further client properties for the bootstrap server, by librdkafka's names."""
    restart_command: str | None
    session_timeout_ms: int
    """Session timeout of the groups' members with the classic protocol."""


@dataclass
class RunTally:
    """The progress of a run."""

    phase: str = "starting"
    seconds: float = 0
    broker_kills: int = 0
    client_kills: int = 0
    replacement_reasons: list[str] = field(default_factory=list)
    """The reasons of clients that could not continue and were replaced."""
    client_failures: list[str] = field(default_factory=list)
    """Defects of clients: one did not end when it was stopped, or ended with an unexpected exit code."""
    serves_transactions: bool = True


ShowTally = Callable[[RunTally], None]


class Run:
    """One run in a folder, which holds all its files.

    *own* are the brokers that the run starts and stops, None for those of the plan's bootstrap server. *disturbance* replaces
    the plan's kills.
    """

    def __init__(
        self,
        plan: RunPlan,
        folder: Path,
        show: ShowTally,
        own: OwnBrokers | None = None,
        disturbance: Disturbance | None = None,
    ) -> None:
        self._plan = plan
        self._folder = folder
        self._show = show
        self._random = Random(plan.seed)
        self._parts = folder / "parts"
        self._own = own
        self._bootstrap = plan.bootstrap or (own.bootstrap if own is not None else "")
        self._disturbance = disturbance or BrokerKills(plan.kills, plan.seconds, self._random, self._restart_broker)
        self._is_encrypted = plan.config.get("security.protocol", "").upper().endswith("SSL")
        self._names = HistoryTopicNames.with_prefix(plan.topic_prefix)
        self._slots: list[ClientSlot] = []
        self.tally = RunTally()

    def make_history(self, target: Path) -> int:
        """Make the run; returns the number of events. Raises RunError."""
        self._parts.mkdir(parents=True)
        try:
            if self._own is not None:
                self._own.start()
            self.tally.serves_transactions = serves_transactions(self._bootstrap, is_encrypted=self._is_encrypted)
            self._create_topics()
            self._slots += map(ClientSlot, self._list_orders())
            self._work()
            self._stop_clients()
            self._read_all()
        finally:
            for slot in self._slots:
                slot.kill()
                slot.wait(LONGEST_END_S)
            if self._own is not None:
                self._own.stop()
        self._begin_phase("merging the records of clients")
        return merge_parts(self._parts.glob("*.jsonl"), target)

    def delete_topics(self) -> None:
        """Delete the topics of the run from the user's broker."""
        if self._own is None:
            for deleted in self._admin(str).delete_topics([self._names.records, self._names.copies]).values():
                with contextlib.suppress(Exception):
                    deleted.result(TOPIC_CALL_S)

    def _begin_phase(self, name: str) -> None:
        self.tally.phase = name
        self._show(self.tally)

    def _admin(self, on_error: Callable[[Any], object]) -> Any:
        """Create an admin client, which passes transient errors to *on_error*."""
        from confluent_kafka.admin import AdminClient

        servers = {"bootstrap.servers": self._bootstrap, "error_cb": on_error}
        return AdminClient({"log_level": 0, **self._plan.config, **servers})

    def _create_topics(self) -> None:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import NewTopic

        counts = {self._names.records: RECORDS_PARTITIONS, self._names.copies: COPIES_PARTITIONS}
        factor = self._plan.replication_factor
        topics = [NewTopic(name, count, factor, config=KEEP_ALL_CONFIGS) for name, count in counts.items()]
        errors: list[Any] = ["there is no answer"]
        admin = self._admin(errors.append)
        for name, created in admin.create_topics(topics).items():
            try:
                created.result(TOPIC_CALL_S)
            except (KafkaException, TimeoutError, futures.TimeoutError) as problem:
                admin.poll(0)
                raise RunError(f"topic {name} cannot be created: {str(problem) or errors[-1]}") from problem

    def _list_orders(self) -> Iterator[ClientOrders]:
        plan, transactions = self._plan, self.tally.serves_transactions
        counts = {
            "producer": plan.producers,
            "transactional": plan.transactional if transactions else 0,
            "copier": plan.copiers if transactions else 0,
            "member": plan.members,
        }
        for role, count in counts.items():
            yield from (self._build_orders(role, ordinal, READ_COMMITTED) for ordinal in range(count))
        yield from (self._build_orders("reader", ordinal, isolation) for ordinal, isolation in enumerate(ISOLATIONS))

    def _build_orders(self, role: str, ordinal: int, isolation: str) -> ClientOrders:
        return ClientOrders(
            role=role,
            ordinal=ordinal,
            incarnation=0,
            bootstrap=self._bootstrap,
            config=self._plan.config,
            topic_prefix=self._plan.topic_prefix,
            throughput=self._plan.throughput,
            isolation=isolation,
            group_protocol=self._plan.group_protocol,
            session_timeout_ms=self._plan.session_timeout_ms,
            transactional=self.tally.serves_transactions,
            seed=self._plan.seed,
            folder=str(self._parts),
            parent=os.getpid(),
        )

    def _work(self) -> None:
        for slot in self._slots:
            slot.start()
        self._wait_for_clients()
        self.tally.phase = "at work"
        started, begun_ns = time.monotonic(), now_ns()
        self._disturbance.begin()
        client_kill = random_time_after(self._random, SECONDS_A_CLIENT_KILL)
        while (now := time.monotonic()) < started + self._plan.seconds or not self._disturbance.is_over:
            self.tally.seconds = now - started
            self._show(self.tally)
            self._disturbance.advance()
            if now >= client_kill:
                self._kill_client()
                client_kill = random_time_after(self._random, SECONDS_A_CLIENT_KILL)
            self._replace_ended_clients()
            pause(TICK_S)
        self._record(Worked(now_ns(), RUN, begun_ns))

    def _kill_client(self) -> None:
        self._random.choice([slot for slot in self._slots if slot.role != "reader"]).kill()
        self.tally.client_kills += 1

    def _wait_for_clients(self) -> None:
        deadline = time.monotonic() + LONGEST_WARM_UP_S
        while idle := [slot.name for slot in self._slots if not slot.has_begun]:
            self._show(self.tally)
            self._replace_ended_clients()
            if time.monotonic() > deadline:
                raise RunError(
                    f"after {LONGEST_WARM_UP_S:g} s these clients have done nothing: {', '.join(idle)}; see {self._parts}"
                )
            pause(TICK_S)

    def _replace_ended_clients(self) -> None:
        """Replace each client that ended."""
        if self._own is not None:
            self._own.check()
        for slot in self._slots:
            if slot.may_be_replaced():
                self._note_failure(slot)
                if not slot.was_killed:
                    self.tally.replacement_reasons.append(slot.last_log_line())
                slot.start()

    def _note_failure(self, slot: ClientSlot) -> None:
        if slot.has_failed:
            self.tally.client_failures.append(f"client {slot.name} failed with code {slot.exit_code}")

    def _restart_broker(self) -> None:
        self.tally.broker_kills += 1
        killed_ns = now_ns()
        if self._own is not None:
            self._own.restart()
        elif self._plan.restart_command is not None:
            run_restart_command(self._plan.restart_command, self._folder / "restart.log")
            self._wait_for_broker()
        self._record(Restarted(now_ns(), RUN, killed_ns))

    def _record(self, event: Event) -> None:
        with (self._parts / f"{RUN}.jsonl").open("ab") as part:
            part.write(encode_event(event))

    def _wait_for_broker(self) -> None:
        wait_for_broker(self._bootstrap, is_encrypted=self._is_encrypted)

    def _stop_clients(self) -> None:
        """Stop the writing clients, then the readers, which read to the ends of the partitions."""
        readers = [slot for slot in self._slots if slot.role == "reader"]
        others = [slot for slot in self._slots if slot.role != "reader"]
        self._stop("stopping the clients", others, LONGEST_END_S + 10)
        self._wait_for_broker()
        self._stop("reading to the end", readers, LONGEST_LAST_S)

    def _stop(self, phase: str, slots: list[ClientSlot], longest_s: float) -> None:
        self._begin_phase(phase)
        for slot in slots:
            slot.stop()
        deadline = time.monotonic() + longest_s
        for slot in slots:
            if not slot.wait(max(deadline - time.monotonic(), 0)):
                self.tally.client_failures.append(f"client {slot.name} did not end when it was stopped")
            self._note_failure(slot)

    def _read_all(self) -> None:
        self._begin_phase("reading everything")
        last = [ClientSlot(self._build_orders("last", index, isolation)) for index, isolation in enumerate(ISOLATIONS)]
        self._slots += last
        for slot in last:
            slot.start()
        for slot in last:
            if not slot.wait(LONGEST_LAST_S) or slot.exit_code:
                raise RunError(f"the last reader {slot.name} failed with code {slot.exit_code}: see {slot.log_path}")

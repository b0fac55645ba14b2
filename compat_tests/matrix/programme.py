"""The steps that every client performs on a broker; a step's outcome is a cell of the table."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from compat_tests.matrix.driver import ANSWER_SECONDS, ClientError, Driver, Launch
from compat_tests.matrix.proxy import Proxy
from compat_tests.matrix.recording import Recording, spoken_name
from compat_tests.matrix.records import CONTENTS, HEADERS, TIMESTAMPS, Record, compare_records, number_of

PARTITIONS = 4
COUNT = 1000
FEW = 100
SHOWN_WORDS = 250
SHOWN_NOTES = 6

OK, FAILED, NOT_APPLICABLE, NOT_SERVED = "ok", "failed", "n/a", "not served yet"
NOT_TRIED = "not tried: the client cannot even write and read plain records"

CREATE, PLAIN, GROUP, RESUME, IDEMPOTENT, TRANSACTIONS = (
    "create",
    "none",
    "group",
    "resume",
    "idempotent",
    "transactions",
)
CODECS = (PLAIN, "gzip", "snappy", "lz4", "zstd")
STEPS = (CREATE, *CODECS, HEADERS, TIMESTAMPS, GROUP, RESUME, IDEMPOTENT, TRANSACTIONS)
ALWAYS = {CREATE, PLAIN}
"""Steps that every client knows; the others are features that a row lists."""
NEEDED_APIS = {IDEMPOTENT: 22, TRANSACTIONS: 24}
"""Step -> the API without which a broker does not have it: InitProducerId, AddPartitionsToTxn."""
USED_APIS = {IDEMPOTENT: 22, TRANSACTIONS: 26}
"""Step -> the API without which a client did not do it: InitProducerId, EndTxn (KIP-890 spares AddPartitionsToTxn)."""


class Cell(NamedTuple):
    """The outcome of one step: OK, FAILED and why, NOT_APPLICABLE (to the client) or NOT_SERVED (by the broker)."""

    outcome: str
    why: str = ""


class WrongAnswerError(Exception):
    """The client carried out its command, and the outcome is wrong."""


@dataclass
class Outcome:
    """The outcome of a programme: a cell a step, and the summary of the recording."""

    cells: dict[str, Cell]
    wire: Recording = field(default_factory=Recording)


class Programme:
    """One client on one broker. Topics and groups are named after the row, so that rows share a broker.

    *served* are the keys of the APIs that the broker says it serves. *prepare_topic* is called with each new topic.
    """

    def __init__(
        self,
        name: str,
        launch: Launch,
        proxy: Proxy,
        bootstrap: str,
        folder: Path,
        served: Collection[int],
        prepare_topic: Callable[[str], None] = lambda _topic: None,
    ) -> None:
        self._name = name
        self._launch = launch
        self._proxy = proxy
        self._bootstrap = bootstrap
        self._folder = folder
        self._served = served
        self._prepare_topic = prepare_topic
        self._main: Driver | None = None
        self._started = 0
        self._aspects: dict[str, str] = {}

    def run(self, features: frozenset[str], tell: Callable[[str], None]) -> Outcome:
        """Go through all steps that the client has the features for."""
        outcome = Outcome({})
        try:
            for step in STEPS:
                tell(step)
                outcome.cells[step] = self._cell(step, features, outcome)
        finally:
            self._end_main()
        return outcome

    def _cell(self, step: str, features: frozenset[str], outcome: Outcome) -> Cell:
        cell = find_foregone(step, features, self._served, outcome.cells)
        if cell is not None:
            return cell
        if step in (HEADERS, TIMESTAMPS):
            return Cell(FAILED, self._aspects[step]) if step in self._aspects else Cell(OK)
        return self._recorded(step, outcome)

    def _recorded(self, step: str, outcome: Outcome) -> Cell:
        recording = self._proxy.recording = Recording()
        try:
            _STEPS[step](self, step)
            _refuse_new_formats(recording)
            refuse_unasked(step, recording)
            return Cell(OK)
        except (ClientError, WrongAnswerError) as problem:
            self._end_main()
            return Cell(FAILED, explain_failure(problem, recording))
        finally:
            outcome.wire.add(recording)
            if self._main is None:
                self._proxy.hang_up()

    # The steps.

    def create(self, step: str) -> None:
        self._topic(step)

    def round_trip(self, codec: str) -> None:
        """Write and read records with one codec; wrong headers and times have cells of their own."""
        problems = self._written_and_read("plain", codec, codec)
        for aspect in (HEADERS, TIMESTAMPS):
            if aspect in problems:
                self._aspects.setdefault(aspect, f"{codec}: {problems[aspect]}")
        _raise_problem(problems)

    def idempotent(self, step: str) -> None:
        _raise_problem(self._written_and_read("idempotent", step, PLAIN))

    def transactions(self, step: str) -> None:
        """Abort a transaction, commit another; a reader of committed records sees the second alone."""
        topic, base = self._topic(step), _now_ms()
        self._produce("aborted", topic, PLAIN, 0, FEW, base)
        self._produce("committed", topic, PLAIN, FEW, COUNT, base)
        got = self._client().ask("consume", "committed", topic, PARTITIONS, COUNT)
        _raise_problem(compare_records(got, FEW, COUNT, base))

    def group(self, step: str) -> None:
        """Two members share the partitions, and between them see every record."""
        topic = self._topic(step)
        with ExitStack() as stack:
            members = [stack.enter_context(self._member(topic))]
            members[0].wait_for("its partitions", lambda: len(members[0].assigned) == PARTITIONS)
            members.append(stack.enter_context(self._member(topic)))
            _hear_until(members, "both to have partitions", lambda: _are_shared(members))
            self._produce("plain", topic, PLAIN, 0, COUNT, _now_ms())
            _hear_until(members, f"{COUNT} records", lambda: len(_list_numbers(members)) == COUNT)
            if not all(member.records for member in members):
                raise WrongAnswerError("one member saw no record")
            for member in members:
                member.ask("leave")

    def resume(self, step: str) -> None:
        """A consumer that starts again goes on where it committed: no record twice, none left out."""
        topic, base = self._topic(step), _now_ms()
        for first in (0, COUNT):
            self._produce("plain", topic, PLAIN, first, COUNT, base)
            with self._member(topic) as member:
                member.wait_for(f"{COUNT} records", lambda member=member: len(member.records) >= COUNT)
                got = member.records
                member.ask("leave")
            problems = compare_records(got, first, COUNT, base)
            if CONTENTS in problems:
                raise WrongAnswerError(f"{'after the restart' if first else 'at first'} {problems[CONTENTS]}")

    # What they are made of.

    def _written_and_read(self, mode: str, name: str, codec: str) -> Mapping[str, str]:
        topic, base = self._topic(name), _now_ms()
        self._produce(mode, topic, codec, 0, COUNT, base)
        got = self._client().ask("consume", "all", topic, PARTITIONS, COUNT)
        return compare_records(got, 0, COUNT, base)

    def _topic(self, name: str) -> str:
        topic = f"{self._name}-{name}"
        self._client().ask("create", topic, PARTITIONS)
        self._prepare_topic(topic)
        return topic

    def _produce(self, *words: object) -> None:
        self._client().ask("produce", *words)

    def _client(self) -> Driver:
        """Return the driver for all steps but joining groups, restarted after a failure."""
        if self._main is None:
            self._main = self._start()
        return self._main

    def _member(self, topic: str) -> Driver:
        member = self._start()
        member.tell("join", topic, f"{topic}-group")
        return member

    def _start(self) -> Driver:
        self._started += 1
        return Driver(self._launch, self._bootstrap, self._folder / f"{self._name}-{self._started}.stderr")

    def _end_main(self) -> None:
        if self._main is not None:
            self._main.end()
            self._main = None


_STEPS: dict[str, Callable[[Programme, str], None]] = {
    CREATE: Programme.create,
    **dict.fromkeys(CODECS, Programme.round_trip),
    GROUP: Programme.group,
    RESUME: Programme.resume,
    IDEMPOTENT: Programme.idempotent,
    TRANSACTIONS: Programme.transactions,
}


def find_foregone(
    step: str, features: Collection[str], served: Collection[int], cells: Mapping[str, Cell]
) -> Cell | None:
    """Return the outcome of a step that need not be tried; None if it has to be tried."""
    if step not in ALWAYS and step not in features:
        return Cell(NOT_APPLICABLE)
    if step in NEEDED_APIS and NEEDED_APIS[step] not in served:
        return Cell(NOT_SERVED)
    if PLAIN in cells and cells[PLAIN].outcome == FAILED:
        return Cell(FAILED, NOT_TRIED)
    return None


def _now_ms() -> int:
    return int(time.time() * 1000)


def _raise_problem(problems: Mapping[str, str]) -> None:
    if CONTENTS in problems:
        raise WrongAnswerError(problems[CONTENTS])


def _refuse_new_formats(recording: Recording) -> None:
    if recording.formats_too_new:
        raise WrongAnswerError(", ".join(sorted(recording.formats_too_new)))


def refuse_unasked(step: str, recording: Recording) -> None:
    """Raise WrongAnswerError where the client never used the API that the step is about."""
    needed = USED_APIS.get(step)
    if needed is not None and needed not in recording.versions:
        raise WrongAnswerError(f"the client never sent {spoken_name(needed)}")


def explain_failure(problem: Exception, recording: Recording) -> str:
    """Return the client's words, cut to the width of a page, and in brackets the last exchange on the wire."""
    words = str(problem)
    if len(words) > SHOWN_WORDS:
        words = f"{words[:SHOWN_WORDS]}..."
    notes = "; ".join(recording.notes[:SHOWN_NOTES])
    return f"{words} [{notes}]" if notes else words


def _list_numbers(members: list[Driver]) -> set[int]:
    return {number_of(record) for member in members for record in member.records}


def _are_shared(members: list[Driver]) -> bool:
    """Tell whether every member has partitions and each partition has one member."""
    together = [partition for member in members for partition in member.assigned]
    return all(member.assigned for member in members) and sorted(together) == list(range(PARTITIONS))


def _hear_until(members: list[Driver], description: str, reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + ANSWER_SECONDS
    while not reached():
        if time.monotonic() > deadline:
            held = ", ".join(
                f"{len(member.assigned)} partitions and {len(member.records)} records" for member in members
            )
            raise ClientError(
                f"no answer in {ANSWER_SECONDS:.0f} s, waiting for {description}; the members have {held}"
            )
        for member in members:
            member.hear(0.01)


__all__ = [
    "CODECS",
    "FAILED",
    "NOT_APPLICABLE",
    "NOT_SERVED",
    "NOT_TRIED",
    "OK",
    "PLAIN",
    "STEPS",
    "Cell",
    "Outcome",
    "Programme",
    "Record",
]

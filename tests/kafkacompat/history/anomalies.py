"""What a broker may do wrong, planted in a history: each under the name of the check that is to find it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

from kafkacompat.history.events import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Acknowledged,
    CommitAcknowledged,
    Ended,
    Event,
    Fetched,
    Finished,
    HistoryPartition,
    Listed,
    Read,
    Send,
)
from kafkacompat.history.index import History, index_history, split_client_name, value_text
from tests.kafkacompat.history.simulation import COPIERS, COPIES, MEMBERS

Candidate = TypeVar("Candidate")


class NothingToSpoilError(Exception):
    """The history has none of what the anomaly needs."""


class Spoiling:
    """A history that is being spoiled."""

    def __init__(self, events: list[Event], random: Random) -> None:
        self.events, self.random = list(events), random
        self.history: History = index_history(events)
        self.stored = [text for text, value in self.history.values.items() if value.must_be_read(READ_COMMITTED)]
        self.live_runs = [run for run in self.history.runs if not is_last(run.client)]

    def pick(self, candidates: Sequence[Candidate]) -> Candidate:
        """One of them."""
        if not candidates:
            raise NothingToSpoilError
        return self.random.choice(candidates)

    def replace(self, old: Event, new: Event) -> None:
        """Put one event in another's place."""
        self.events[self.events.index(old)] = new

    def reread(self, change: Callable[[Read, int, str], str | None]) -> None:
        """Change what stands in each record that was read; None takes it away."""
        for at, event in enumerate(self.events):
            if isinstance(event, Read):
                texts = [(offset, change(event, offset, text)) for offset, text in event.records]
                self.events[at] = event._replace(records=[(offset, text) for offset, text in texts if text is not None])

    def append(self, place: HistoryPartition, text: str) -> None:
        """Let the last readers find one more record at a partition's end."""
        end = max(event.end_offset for event in self.events if isinstance(event, Finished) and event.place == place)
        for at, event in enumerate(self.events):
            if isinstance(event, Read) and event.place == place and is_last(event.client):
                self.events[at] = event._replace(records=[*event.records, (end, text)])
            elif isinstance(event, Finished) and event.place == place and is_last(event.client):
                self.events[at] = event._replace(offset=end + 1, end_offset=end + 1)


def is_last(client: str) -> bool:
    """Return whether a client is one of the last readers, which read everything in the end."""
    return client.startswith("last-")


def lose(spoiling: Spoiling) -> None:
    lost = spoiling.pick(spoiling.stored)
    spoiling.reread(lambda _, __, text: None if text == lost else text)


def lose_for_read_committed(spoiling: Spoiling) -> None:
    lost = spoiling.pick(spoiling.stored)
    spoiling.reread(lambda read, _, text: None if text == lost and read.isolation == READ_COMMITTED else text)


def lose_the_end(spoiling: Spoiling) -> None:
    value = spoiling.history.values[spoiling.pick(spoiling.stored)]
    cut = value.offset
    if cut < 0:
        raise NothingToSpoilError
    for at, event in enumerate(spoiling.events):
        if isinstance(event, Read) and event.place == value.place:
            kept = [(offset, text) for offset, text in event.records if offset < cut]
            spoiling.events[at] = event._replace(records=kept)
        elif isinstance(event, Finished) and event.place == value.place:
            spoiling.events[at] = event._replace(offset=cut, end_offset=cut)


def lose_what_was_not_committed(spoiling: Spoiling) -> None:
    lost = spoiling.pick(
        [
            text
            for text, value in spoiling.history.values.items()
            if value.acknowledged and value.transaction is not None and not value.transaction.may_be_committed
        ]
    )
    spoiling.reread(lambda _, __, text: None if text == lost else text)


def hide_from_read_committed(spoiling: Spoiling) -> None:
    records = [records for of, records in spoiling.history.final.items() if of[0] == READ_UNCOMMITTED]
    plain = [text for texts in records for text in texts.values() if spoiling.history.values[text].transaction is None]
    hidden = spoiling.history.values[spoiling.pick(plain)]
    spoiling.events = [
        event
        for event in spoiling.events
        if not (isinstance(event, Acknowledged) and (event.client, event.number) == (hidden.client, hidden.number))
    ]
    name = value_text(hidden.client, hidden.number)
    spoiling.reread(lambda read, _, text: None if text == name and read.isolation == READ_COMMITTED else text)


def take_a_commit_back(spoiling: Spoiling) -> None:
    seen = [
        value.transaction
        for run in spoiling.live_runs
        for _, text in run.records
        if run.isolation == READ_COMMITTED and (value := spoiling.history.values[text]).transaction is not None
    ]
    transaction = spoiling.pick(seen)
    spoiling.events = [
        event
        for event in spoiling.events
        if not (isinstance(event, Ended) and (event.client, event.transaction) == transaction.name)
    ]
    spoiling.reread(
        lambda read, _, text: (
            None if text in transaction.values and is_last(read.client) and read.isolation == READ_COMMITTED else text
        )
    )


def vanish(spoiling: Spoiling) -> None:
    run = spoiling.pick([run for run in spoiling.live_runs if run.records])
    gone = spoiling.pick(run.records)[1]
    spoiling.reread(lambda read, _, text: None if text == gone and is_last(read.client) else text)


def corrupt(spoiling: Spoiling) -> None:
    run = spoiling.pick([run for run in spoiling.history.runs if run.records])
    old = spoiling.pick(run.records)[1]
    spoiling.reread(lambda read, _, text: "\ufffd" if text == old and read.client == run.client else text)


def misplace(spoiling: Spoiling) -> None:
    text = spoiling.pick(spoiling.stored)
    place = spoiling.history.values[text].place
    spoiling.append(
        HistoryPartition(place.topic, 1 - place.partition) if place != COPIES else HistoryPartition("records", 0), text
    )


def show_another(spoiling: Spoiling) -> None:
    run = spoiling.pick([run for run in spoiling.live_runs if len(run.records) > 1])
    (old_offset, old), (_, other) = spoiling.random.sample(run.records, 2)
    spoiling.reread(
        lambda read, offset, text: other if (read.client, offset, text) == (run.client, old_offset, old) else text
    )


def acknowledge_elsewhere(spoiling: Spoiling) -> None:
    place = spoiling.pick([run for run in spoiling.history.runs if len(run.records) > 1]).place
    acknowledgements = [
        event
        for event in spoiling.events
        if isinstance(event, Acknowledged)
        and event.offset > 0
        and spoiling.history.values[value_text(event.client, event.number)].place == place
    ]
    first = spoiling.pick(acknowledgements)
    second = spoiling.pick([event for event in acknowledgements if event is not first])
    spoiling.replace(first, first._replace(offset=second.offset))


def double(spoiling: Spoiling) -> None:
    text = spoiling.pick(spoiling.stored)
    spoiling.append(spoiling.history.values[text].place, text)


def disorder(spoiling: Spoiling) -> None:
    values = spoiling.history.values
    (_, place), records = spoiling.pick(
        [item for item in spoiling.history.final.items() if item[0][0] == READ_UNCOMMITTED]
    )
    first = spoiling.pick(list(records.values()))
    second = spoiling.pick(
        [text for text in records.values() if text != first and values[text].client == values[first].client]
    )
    spoiling.events = [
        event._replace(offset=-1) if isinstance(event, Acknowledged) else event for event in spoiling.events
    ]
    swapped = {first: second, second: first}
    spoiling.reread(lambda read, _, text: swapped.get(text, text) if read.place == place else text)


def let_the_fenced_write(spoiling: Spoiling) -> None:
    values = spoiling.history.values
    by_producer: dict[tuple[HistoryPartition, str], dict[str, str]] = {}
    for (isolation, place), records in spoiling.history.final.items():
        for text in records.values() if isolation == READ_UNCOMMITTED else ():
            if values[text].transaction is not None:
                producer = place, split_client_name(values[text].client)[0]
                by_producer.setdefault(producer, {}).setdefault(values[text].client, text)
    first, second, *_ = spoiling.pick([list(texts.values()) for texts in by_producer.values() if len(texts) > 1])
    spoiling.events = [
        event._replace(offset=-1) if isinstance(event, Acknowledged) else event for event in spoiling.events
    ]
    swapped = {first: second, second: first}
    spoiling.reread(lambda _, __, text: swapped.get(text, text))


def read_again(spoiling: Spoiling) -> None:
    event = spoiling.pick([event for event in spoiling.events if isinstance(event, Read) and event.records])
    spoiling.events.insert(spoiling.events.index(event), event)


def skip(spoiling: Spoiling) -> None:
    run = spoiling.pick([run for run in spoiling.live_runs if len(run.records) > 1 and run.isolation])
    skipped = spoiling.pick(run.records[:-1])
    spoiling.reread(
        lambda read, offset, text: None if read.client == run.client and (offset, text) == skipped else text
    )


def skip_the_last(spoiling: Spoiling) -> None:
    followers = {event.client for event in spoiling.events if isinstance(event, Finished)}
    run = spoiling.pick([run for run in spoiling.live_runs if run.client in followers and run.records])
    spoiling.reread(
        lambda read, offset, text: None if (read.client, offset, text) == (run.client, *run.records[-1]) else text
    )


def skip_all(spoiling: Spoiling) -> None:
    followers = {event.client for event in spoiling.events if isinstance(event, Finished)}
    run = spoiling.pick([run for run in spoiling.live_runs if run.client in followers and run.records])
    spoiling.events = [
        event
        for event in spoiling.events
        if not (isinstance(event, Read) and (event.client, event.place) == (run.client, run.place))
    ]


def list_what_is_past(spoiling: Spoiling) -> None:
    listed = [event for event in spoiling.events if isinstance(event, Listed)]
    later = [
        (event, before.end_offset)
        for event in listed
        for before in listed
        if (before.isolation, before.place) == (event.isolation, event.place)
        and before.time_ns < event.asked_ns
        and before.end_offset > 0
    ]
    event, end = spoiling.pick(later)
    spoiling.replace(event, event._replace(end_offset=spoiling.random.randrange(end)))


def list_what_is_read_already(spoiling: Spoiling) -> None:
    reads = [event for event in spoiling.events if isinstance(event, Read) and event.records]
    read = spoiling.pick(reads)
    end = read.records[-1][0]
    listed = Listed(read.time_ns + 2, "reader-9.0", read.isolation, read.place, end, read.time_ns + 1)
    spoiling.events.append(listed)


def get_stuck(spoiling: Spoiling) -> None:
    event = spoiling.pick([event for event in spoiling.events if isinstance(event, Finished) and event.end_offset])
    spoiling.replace(event, event._replace(offset=spoiling.random.randrange(event.end_offset)))


def show_the_aborted(spoiling: Spoiling) -> None:
    aborted = [
        (place, offset, text)
        for (isolation, place), records in spoiling.history.final.items()
        for offset, text in records.items()
        if isolation == READ_UNCOMMITTED
        and (transaction := spoiling.history.values[text].transaction) is not None
        and not transaction.may_be_committed
    ]
    place, offset, text = spoiling.pick(aborted)
    finals = (
        event for event in spoiling.events if isinstance(event, Read) and event.place == place and is_last(event.client)
    )
    event = next(event for event in finals if event.isolation == READ_COMMITTED)
    spoiling.replace(event, event._replace(records=sorted([*event.records, (offset, text)])))


def show_too_early(spoiling: Spoiling) -> None:
    reads = [
        event
        for event in spoiling.events
        if isinstance(event, Read)
        and event.isolation == READ_COMMITTED
        and any(spoiling.history.values[text].transaction is not None for _, text in event.records)
    ]
    event = spoiling.pick(reads)
    spoiling.replace(event, event._replace(time_ns=0))


def tear(spoiling: Spoiling) -> None:
    large = [
        transaction
        for transaction in spoiling.history.transactions.values()
        if transaction.may_be_committed and len(transaction.values) > 1
    ]
    torn = spoiling.pick(spoiling.pick(large).values)
    spoiling.reread(lambda read, _, text: None if text == torn and read.isolation == READ_COMMITTED else text)


def go_back(spoiling: Spoiling) -> None:
    spoiled = []
    for event in spoiling.events:
        if isinstance(event, Fetched):
            commits = spoiling.history.commits[event.group, event.place]
            held = (commit for commit in commits if commit.acknowledged_ns is not None)
            if floors := [commit.offset for commit in held if (commit.acknowledged_ns or 0) <= event.asked_ns]:
                spoiled.append((event, max(floors)))
    event, floor = spoiling.pick(spoiled)
    spoiling.replace(event, event._replace(offset=spoiling.random.randrange(-1, floor)))


def go_back_behind_what_was_seen(spoiling: Spoiling) -> None:
    fetches = [event for event in spoiling.events if isinstance(event, Fetched)]
    later = [
        (event, before.offset)
        for event in fetches
        for before in fetches
        if (before.group, before.place) == (event.group, event.place)
        and before.time_ns < event.asked_ns
        and before.offset > 0
    ]
    event, offset = spoiling.pick(later)
    spoiling.replace(event, event._replace(offset=spoiling.random.randrange(-1, offset)))
    spoiling.events = [event for event in spoiling.events if not isinstance(event, CommitAcknowledged | Ended)]


def go_ahead(spoiling: Spoiling) -> None:
    event = spoiling.pick([event for event in spoiling.events if isinstance(event, Fetched)])
    spoiling.replace(event, event._replace(offset=event.offset + 1000))


def commit_what_was_aborted(spoiling: Spoiling) -> None:
    aborted = [
        (place, commit)
        for (group, place), commits in spoiling.history.commits.items()
        for commit in commits
        if group == COPIERS
        and commit.asked_ns is None
        and all(other.offset != commit.offset or other.asked_ns is None for other in commits)
    ]
    place, commit = spoiling.pick(aborted)
    fetches = (event for event in spoiling.events if isinstance(event, Fetched) and event.group == COPIERS)
    event = [event for event in fetches if event.place == place][-1]
    spoiling.replace(event, event._replace(offset=commit.offset))


def withhold_from_a_group(spoiling: Spoiling) -> None:
    (_, place), _ = spoiling.pick([item for item in spoiling.history.commits.items() if item[0][0] == MEMBERS])
    end = spoiling.history.last_committed_offset(MEMBERS, place)
    final = spoiling.history.final[READ_UNCOMMITTED, place]
    gone = spoiling.pick([text for offset, text in final.items() if offset < end])
    spoiling.reread(lambda read, _, text: None if text == gone and read.client.startswith("member-") else text)


def copy_again(spoiling: Spoiling) -> None:
    copies = [text for text in spoiling.stored if spoiling.history.values[text].source is not None]
    value = spoiling.history.values[spoiling.pick(copies)]
    assert value.transaction is not None
    client, transaction = value.transaction.name
    send = Send(len(spoiling.events), client, 10**6, COPIES, transaction, value.source)
    spoiling.events.insert(0, send)
    spoiling.append(COPIES, value_text(client, send.number))


def copy_nothing(spoiling: Spoiling) -> None:
    copies = [text for text in spoiling.stored if spoiling.history.values[text].source is not None]
    gone = spoiling.pick(copies)
    spoiling.reread(lambda _, __, text: None if text == gone else text)


def forget_what_was_copied(spoiling: Spoiling) -> None:
    copied = {
        HistoryPartition(*value.source[:2])
        for text in spoiling.stored
        if (value := spoiling.history.values[text]).source
    }
    place = spoiling.pick(sorted(copied))
    fetches = (event for event in spoiling.events if isinstance(event, Fetched) and event.group == COPIERS)
    event = [event for event in fetches if event.place == place][-1]
    spoiling.replace(event, event._replace(offset=0))


ANOMALIES: list[tuple[str, Callable[[Spoiling], None]]] = [
    ("lost", lose),
    ("lost", lose_for_read_committed),
    ("lost", lose_the_end),
    ("lost", lose_what_was_not_committed),
    ("vanished", vanish),
    ("vanished", hide_from_read_committed),
    ("vanished", take_a_commit_back),
    ("unknown", corrupt),
    ("unknown", misplace),
    ("different", show_another),
    ("different", acknowledge_elsewhere),
    ("doubled", double),
    ("out of order", disorder),
    ("out of order", let_the_fenced_write),
    ("read backwards", read_again),
    ("skipped", skip),
    ("skipped", skip_the_last),
    ("skipped", skip_all),
    ("stuck", get_stuck),
    ("end back", list_what_is_past),
    ("end back", list_what_is_read_already),
    ("aborted read", show_the_aborted),
    ("aborted read", show_too_early),
    ("torn", tear),
    ("offset back", go_back),
    ("offset back", go_back_behind_what_was_seen),
    ("offset ahead", go_ahead),
    ("offset ahead", commit_what_was_aborted),
    ("group skipped", withhold_from_a_group),
    ("copied again", copy_again),
    ("miscopied", copy_nothing),
    ("miscopied", forget_what_was_copied),
]

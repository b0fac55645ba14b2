"""The names of one instance, in both directions."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.metadata.topic_names import MAX_NAME_LENGTH, is_legal_name
from kafkacompat.patterns import Pattern, PatternError
from kafkacompat.tenancy.names import FOREIGN, MAX_CACHED, MAX_CACHED_CHARACTERS, Names, RenamedTopics
from kafkacompat.tenancy.topic_ids import PermutedIds
from kafkacompat.wire import entities
from kafkacompat.wire.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    read_assignment,
    read_subscription,
    write_assignment,
    write_subscription,
)
from kafkacompat.wire.primitives import ZERO_UUID, format_uuid

FOREIGN_NAMES = ["orders", "bank.orders", "shopping", "__consumer_offsets", "shop"]
IDS = [entities.GROUP, entities.TRANSACTIONAL_ID, entities.USER]


def make_names(prefix: str = "shop.", **options: Any) -> Names:
    return Names(prefix, b"secret", "cluster", options.pop("tables", {}), **options)


@pytest.fixture
def names() -> Names:
    return make_names()


@pytest.mark.parametrize("kind", [entities.TOPIC, *IDS])
def test_a_name_gets_the_prefix_and_loses_it(names: Names, kind: str) -> None:
    assert names.to_physical[kind]["orders"] == "shop.orders"
    assert names.to_client[kind]["shop.orders"] == "orders"
    assert names.to_client[kind]["shop.shop.orders"] == "shop.orders"


@pytest.mark.parametrize("kind", [entities.TOPIC, *IDS])
@pytest.mark.parametrize("name", FOREIGN_NAMES)
def test_what_is_not_the_instances_is_foreign(names: Names, kind: str, name: str) -> None:
    assert names.to_client[kind][name] is FOREIGN


@pytest.mark.parametrize("name", ["", ".", "..", "Größe", "a/b", "shop․orders", "x" * 250, "!orders", "orders\n"])
def test_a_name_that_no_topic_may_have_stays_and_names_nothing(names: Names, name: str) -> None:
    physical = names.to_physical[entities.TOPIC][name]
    assert physical == name and not is_legal_name(physical)
    assert names.to_client[entities.TOPIC][physical] == name


def test_a_long_topic_gets_a_stable_short_form(names: Names) -> None:
    long = "x" * MAX_NAME_LENGTH
    short = names.to_physical[entities.TOPIC][long]
    assert len(short) == MAX_NAME_LENGTH and short.startswith("shop.xxx") and is_legal_name(short)
    assert names.to_client[entities.TOPIC][short] == long == names.find_long_name(short)
    assert names.to_physical[entities.TOPIC]["y" + long[1:]] != short
    assert make_names().to_physical[entities.TOPIC][long] == short
    assert Names("shop.", b"other", "cluster", {}).to_physical[entities.TOPIC][long] != short


def test_the_long_name_of_a_short_form_is_found_after_a_restart(names: Names) -> None:
    long = "x" * MAX_NAME_LENGTH
    short = names.to_physical[entities.TOPIC][long]
    stored = {short: long}
    assert make_names(find_long_name=stored.get).to_client[entities.TOPIC][short] == long


def test_many_names_take_a_bounded_memory(names: Names) -> None:
    long = "x" * 244
    for number in range(2 * MAX_CACHED + 1):
        name = f"{long}{number:05}"
        short = names.to_physical[entities.TOPIC][name]
        assert names.find_long_name(short) == name
        _ = names.to_physical[entities.GROUP][str(number)], names.to_physical[entities.TOPIC][str(number)]
    # A short form that is still remembered has its long name, too.
    assert names.find_long_name(names.to_physical[entities.TOPIC][f"{long}00000"]) == f"{long}00000"
    assert len(names.to_physical[entities.TOPIC]) <= MAX_CACHED
    assert len(names.to_physical[entities.GROUP]) <= MAX_CACHED
    huge = "g" * 20_000
    assert names.to_physical[entities.GROUP][huge] == f"shop.{huge}"
    assert huge not in names.to_physical[entities.GROUP]


def test_adopted_things_keep_their_physical_names() -> None:
    tables = {entities.TOPIC: {"orders": "legacy-orders"}, entities.GROUP: {"g": "legacy-g"}}
    names = make_names(tables=tables)
    assert names.to_physical[entities.TOPIC]["orders"] == "legacy-orders"
    assert names.to_client[entities.TOPIC]["legacy-orders"] == "orders"
    assert names.to_physical[entities.TRANSACTIONAL_ID]["g"] == "shop.g"
    assert names.to_client[entities.TOPIC]["legacy-g"] is FOREIGN


def test_a_renaming_that_cannot_be_undone_names_nothing() -> None:
    names = make_names(renamed=RenamedTopics((r"^a(.*)$", r"b\1"), (r"^b(.*)$", r"a\1")))
    assert names.to_physical[entities.TOPIC]["apple"] == "shop.bpple"
    assert names.to_client[entities.TOPIC]["shop.bpple"] == "apple"
    illegal = names.to_physical[entities.TOPIC]["bean"]
    assert not is_legal_name(illegal) and names.to_client[entities.TOPIC][illegal] == "bean"
    assert names.to_client[entities.TOPIC]["!Größe"] == "!Größe"


@pytest.mark.parametrize("kind", [entities.TOPIC, *IDS])
def test_long_names_take_little_memory(names: Names, kind: str) -> None:
    known = names.to_physical[kind]
    assert isinstance(known, dict)
    for number in range(MAX_CACHED):
        known[f"{number:06}{'x' * 230}"]
        assert sum(map(len, known)) <= MAX_CACHED_CHARACTERS
    assert len(known) > 100


def test_both_forms_of_an_id_tell_nothing_of_another_id(names: Names) -> None:
    """A client knows both if it used a topic before its adoption; with an exclusive or it could name topics of others."""
    known, other = b"k" * 16, b"o" * 16
    hidden = names.to_client[entities.TOPIC_ID]
    mask = int.from_bytes(known, "big") ^ int.from_bytes(hidden[known], "big")
    guess = (int.from_bytes(other, "big") ^ mask).to_bytes(16, "big")
    assert names.to_physical[entities.TOPIC_ID][guess] != other


def test_no_id_becomes_the_empty_one(names: Names) -> None:
    ids = PermutedIds(b"secret")
    nearly_empty = ids._reveal(ZERO_UUID)
    assert ids.hide(nearly_empty) == ids._hide(ZERO_UUID) != ZERO_UUID
    assert ids.reveal(ids.hide(nearly_empty)) == nearly_empty
    assert ids.hide(ZERO_UUID) == ids.reveal(ZERO_UUID) == ZERO_UUID


def test_topic_ids_are_masked_in_both_directions(names: Names) -> None:
    topic_id = bytes(range(16))
    masked = names.to_client[entities.TOPIC_ID][topic_id]
    assert masked != topic_id and names.to_physical[entities.TOPIC_ID][masked] == topic_id
    assert names.to_client[entities.TOPIC_ID][ZERO_UUID] == ZERO_UUID
    assert Names("bank.", b"other", "cluster", {}).to_client[entities.TOPIC_ID][topic_id] != masked


def test_empty_ids_stay_empty_where_a_handler_rejects_them(names: Names) -> None:
    for kind in (entities.GROUP, entities.TRANSACTIONAL_ID):
        assert names.to_physical[kind][""] == "shop."
        assert names.to_physical_or_empty[kind][""] == "" and names.to_physical_or_empty[kind]["g"] == "shop.g"
        assert names.to_client[kind][""] is FOREIGN
        assert names.to_client_or_empty[kind][""] == "" and names.to_client_or_empty[kind]["shop.g"] == "g"
        assert names.to_client_or_empty[kind]["bank.g"] is FOREIGN


def test_a_cluster_id_is_the_instances_where_there_is_one(names: Names) -> None:
    assert names.to_client[entities.CLUSTER]["physical"] == "cluster"
    assert names.to_client[entities.CLUSTER][""] == ""


# Patterns


@pytest.mark.parametrize(
    ("text", "matched"),
    [
        ("ord.*", {"orders"}),
        ("^orders$", {"orders"}),
        (r"\Aorders\z", {"orders"}),
        ("(?i)ORD.*", {"orders"}),
        ("orders|bills", {"orders", "bills"}),
        (r"\Qorders", {"orders"}),
        (".*", {"orders", "bills", "shop.orders"}),
        ("shop.*", {"shop.orders"}),
        ("bank.*", set()),
        ("(?s).*|bank.*", {"orders", "bills", "shop.orders"}),
    ],
)
def test_a_pattern_matches_the_names_that_clients_know(names: Names, text: str, matched: set[str]) -> None:
    stored = names.to_physical[entities.TOPIC_PATTERN][text]
    matches = names.compile_pattern(entities.TOPIC, stored)
    own = {f"shop.{name}" for name in ("orders", "bills", "shop.orders")}
    assert {physical for physical in {*own, *FOREIGN_NAMES} if matches(physical)} == {
        f"shop.{name}" for name in matched
    }
    assert names.to_client[entities.TOPIC_PATTERN][stored] == text


@pytest.mark.parametrize("text", ["(", "x)|(?:bank.*", ".*)|(?:.*", "[a", r"\E)|(?:bank.*", "a{2000}{2000}"])
def test_a_pattern_that_is_not_valid_stays_so(names: Names, text: str) -> None:
    stored = names.to_physical[entities.TOPIC_PATTERN][text]
    assert stored == text == names.to_client[entities.TOPIC_PATTERN][stored]
    with pytest.raises(PatternError):
        names.compile_pattern(entities.TOPIC, stored)


@pytest.mark.parametrize(
    "text", [".*", "^.*$", "a|.*", "(?s).*", "[^x]*", "bank.*|shop.*", r"\Qbank.", "(?i)BANK.*", r"(?:)|bank\..*"]
)
def test_a_stored_pattern_matches_nothing_foreign_by_itself(names: Names, text: str) -> None:
    stored = names.to_physical[entities.TOPIC_PATTERN][text]
    try:
        pattern = Pattern(stored)
    except PatternError:
        return
    assert not any(map(pattern.matches, FOREIGN_NAMES))


def test_a_pattern_matches_adopted_topics_by_their_names() -> None:
    names = make_names(tables={entities.TOPIC: {"orders": "legacy"}})
    matches = names.compile_pattern(entities.TOPIC, names.to_physical[entities.TOPIC_PATTERN]["ord.*"])
    assert matches("legacy") and not matches("orders")


# Texts


def test_a_text_has_the_names_that_clients_know(names: Names) -> None:
    assert names.clean_text("topic shop.orders-0 and 'shop.bills'.") == "topic orders-0 and 'bills'."
    # Other words may end as the prefix does.
    assert names.clean_text("the workshop. is open") == "the workshop. is open"


def test_a_text_has_the_names_of_adopted_things() -> None:
    names = make_names(tables={entities.TOPIC: {"orders": "legacy"}})
    assert (
        names.clean_text("there is no partition legacy-7, but legacy.") == "there is no partition orders-7, but orders."
    )


def test_a_text_has_long_names_whole(names: Names) -> None:
    long = "x" * MAX_NAME_LENGTH
    short = names.to_physical[entities.TOPIC][long]
    assert names.clean_text(f"topic {short} exists") == f"topic {long} exists"


def test_no_text_has_both_forms_of_a_topic_id(names: Names) -> None:
    # With both forms of one id a client would know the other form of all ids.
    for number in range(200):
        topic_id = bytes([number, *range(15)])
        masked = names.to_client[entities.TOPIC_ID][topic_id]
        text = f"there is no topic with the id {format_uuid(topic_id)}, nor {format_uuid(topic_id)}-7"
        expected = f"there is no topic with the id {format_uuid(masked)}, nor {format_uuid(masked)}-7"
        assert names.clean_text(text) == expected
        assert names.clean_text(f"{format_uuid(topic_id)}-0 is elsewhere") == f"{format_uuid(masked)}-0 is elsewhere"


def test_the_ids_of_members_in_a_text_stay(names: Names) -> None:
    member = format_uuid(bytes(range(16)))
    for text in (
        f"instance id i now belongs to member {member}, not to {member}",
        f"{member} is not a member of group g",
    ):
        assert names.clean_text(text) == text


# Bytes of classic members


def _translate(translation: Any, data: bytes, in_steps: bool) -> bytes:
    if not in_steps:
        return bytes(translation[data])
    steps = translation.in_steps(data)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return bytes(end.value)


@pytest.mark.parametrize("in_steps", [False, True])
def test_topics_in_subscriptions_and_assignments_are_translated(names: Names, in_steps: bool) -> None:
    owned = [TopicPartition(topic="orders", partitions=[1])]
    subscription = ConsumerProtocolSubscription(topics=["orders", "Größe"], user_data=b"own", owned_partitions=owned)
    for version in range(4):
        data = write_subscription(subscription, version) + b"rest"
        physical = _translate(names.to_physical[entities.SUBSCRIPTION], data, in_steps)
        assert read_subscription(physical).topics == ["shop.orders", "Größe"]
        assert physical.endswith(b"rest")
        assert _translate(names.to_client[entities.SUBSCRIPTION], physical, in_steps) == data
    data = write_assignment(ConsumerProtocolAssignment(assigned_partitions=owned, user_data=b"shop.orders"), 1)
    physical = _translate(names.to_physical[entities.ASSIGNMENT], data, in_steps)
    assert read_assignment(physical).assigned_partitions[0].topic == "shop.orders"
    assert read_assignment(physical).user_data == b"shop.orders"
    assert _translate(names.to_client[entities.ASSIGNMENT], physical, in_steps) == data


@pytest.mark.parametrize("in_steps", [False, True])
@pytest.mark.parametrize(
    "data", [b"", b"\x00", b"\xff\xff", b"\x00\x01\x00\x00\x00\x05ab", b"\x00\x00\xff\xff\xff\xff"]
)
def test_other_bytes_stay(names: Names, data: bytes, in_steps: bool) -> None:
    for kind in (entities.SUBSCRIPTION, entities.ASSIGNMENT):
        assert _translate(names.to_physical[kind], data, in_steps) == data
        assert _translate(names.to_client[kind], data, in_steps) == data

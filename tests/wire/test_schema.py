"""The results of a declaration: constructors, bytes, and errors for bytes that do not fit."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from kafkacompat.wire.apis.fetch import FetchRequest, ReplicaState
from kafkacompat.wire.apis.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from kafkacompat.wire.apis.stop_replica import StopReplicaRequest, StopReplicaTopicV1
from kafkacompat.wire.compiler import decode_message, encode_message, find_reader, find_writer
from kafkacompat.wire.primitives import ZERO_UUID, MalformedError, encode_uvarint
from kafkacompat.wire.schema import (
    MAX_VERSION,
    Message,
    Struct,
    Versions,
    array,
    batches,
    boolean,
    bytestring,
    float64,
    int8,
    int16,
    int32,
    string,
    struct,
    uint16,
    uint32,
    uuid,
)


class Point(Struct):
    x: int = int16()
    label: str | None = string(versions="1+", nullable="1+", default=None)
    weight: int = int32(versions="2+", default=7, tag=0)


class Drawing(Message, versions="0-2", flexible="2+"):
    name: str = string()
    points: list[Point] | None = array(Point, nullable="1+")
    origin: Point | None = struct(Point, versions="1+", nullable="1+")
    numbers: list[int] = array(int32())
    tags: list[str] = array(string(), versions="2+", tag=3)


class NewerPoint(Struct):
    x: int = int16()
    label: str | None = string(versions="1+", nullable="1+", default=None)
    colour: str = string(versions="2+", tag=1)
    history: list[int] = array(int32(), versions="2+", tag=500)


class NewerDrawing(Message, versions="0-2", flexible="2+"):
    name: str = string()
    points: list[NewerPoint] | None = array(NewerPoint, nullable="1+")
    origin: NewerPoint | None = struct(NewerPoint, versions="1+", nullable="1+")
    numbers: list[int] = array(int32())
    scale: int = int32(versions="2+", tag=0)


class Tagged(Message, versions="0", flexible="0+"):
    origin: Point | None = struct(Point, nullable="0+", tag=0)


class Kinds(Message, versions="0"):
    small: int = int8()
    port: int = uint16()
    checksum: int = uint32()
    ratio: float = float64()
    flag: bool = boolean(default=True)
    id: bytes = uuid()
    ids: list[bytes] = array(uuid())
    blob: bytes | None = bytestring(nullable="0+", default=None)


class Carrier(Message, versions="0-1", flexible="1+"):
    before: int = int16()
    records: object = batches(nullable="0+")
    after: int = int16()


@dataclass
class Region:
    size_bytes: int


@pytest.mark.parametrize(("text", "first", "last"), [("3+", 3, MAX_VERSION), ("0-4", 0, 4), ("7", 7, 7), ("", 1, 0)])
def test_version_ranges_are_read_as_kafka_writes_them(text: str, first: int, last: int) -> None:
    assert Versions.parse(text) == Versions(first, last)


def test_a_version_range_contains_its_ends_and_nothing_else() -> None:
    assert [version for version in range(-1, 7) if version in Versions(2, 4)] == [2, 3, 4]
    assert list(Versions(2, 4)) == [2, 3, 4]


def test_every_field_has_a_default_and_lists_are_not_shared() -> None:
    assert Drawing() == Drawing(name="", points=[], origin=None, numbers=[], tags=[])
    assert Drawing().points is not Drawing().points


def test_messages_show_and_compare_their_fields() -> None:
    assert repr(Point(x=1, label="a")) == "Point(x=1, label='a', weight=7)"
    assert Point(x=1) != Point(x=2)
    assert Point(x=1) != NewerPoint(x=1)


def test_the_plain_form_has_fixed_lengths() -> None:
    drawing = Drawing(name="ab", points=[Point(x=-1, label="lost in this version")], numbers=[5])
    assert encode_message(drawing, 0).hex() == "00026162" + "00000001" + "ffff" + "00000001" + "00000005"
    assert decode_message(Drawing, encode_message(drawing, 0), 0).points == [Point(x=-1)]


def test_nulls_in_the_plain_form() -> None:
    drawing = Drawing(points=None, origin=None)
    assert encode_message(drawing, 1).hex() == "0000" + "ffffffff" + "ff" + "00000000"
    assert decode_message(Drawing, encode_message(drawing, 1), 1) == drawing


def test_the_flexible_form_has_compact_lengths_and_tagged_fields() -> None:
    drawing = Drawing(name="ab", points=[Point(x=1, weight=8)], origin=Point(label="c"), numbers=[5], tags=["t"])
    point = "0001" + "00" + "01" + "00" + "04" + "00000008"
    origin = "01" + "0000" + "0263" + "00"
    tagged = "01" + "03" + "03" + "02" + "0274"
    assert encode_message(drawing, 2).hex() == "036162" + "02" + point + origin + "02" + "00000005" + tagged
    assert decode_message(Drawing, encode_message(drawing, 2), 2) == drawing


def test_a_tagged_struct_may_be_null() -> None:
    for tagged, data in (
        (Tagged(), "01" + "00" + "01" + "00"),
        (Tagged(origin=Point(x=1)), "01000401" + "0001" + "00"),
    ):
        assert encode_message(tagged, 0).hex() == data
        assert decode_message(Tagged, encode_message(tagged, 0), 0) == tagged
    assert decode_message(Tagged, b"\x00", 0) == Tagged()


def test_unknown_tagged_fields_are_skipped_in_every_struct() -> None:
    newer = NewerDrawing(
        name="n",
        points=[NewerPoint(x=1, colour="red", history=[1, 2]), NewerPoint(x=2, history=[3] * 200)],
        origin=NewerPoint(colour="blue"),
        scale=0,
    )
    assert decode_message(Drawing, encode_message(newer, 2), 2) == Drawing(
        name="n", points=[Point(x=1), Point(x=2)], origin=Point()
    )


def test_a_tagged_field_must_end_where_its_length_says() -> None:
    data = bytearray(encode_message(Drawing(tags=["t"]), 2))
    assert data[-4] == 3
    data[-4] = 2
    with pytest.raises(MalformedError):
        decode_message(Drawing, data, 2)


def test_every_fixed_kind_is_read_again() -> None:
    kinds = Kinds(small=-128, port=65535, checksum=2**32 - 1, ratio=-1.5, flag=False, id=b"i" * 16, ids=[ZERO_UUID])
    assert decode_message(Kinds, encode_message(kinds, 0), 0) == kinds
    assert decode_message(Kinds, encode_message(Kinds(blob=b""), 0), 0).blob == b""


@pytest.mark.parametrize("version", [0, 1])
def test_records_are_read_without_a_copy(version: int) -> None:
    data = encode_message(Carrier(before=1, records=b"abc", after=2), version)
    carrier, position = find_reader(Carrier, version)(memoryview(data), 0)
    assert position == len(data)
    assert isinstance(carrier.records, memoryview)
    assert carrier.records.obj is data
    assert bytes(carrier.records) == b"abc"


@pytest.mark.parametrize("version", [0, 1])
def test_a_region_stands_in_the_output_as_a_part_of_its_own(version: int) -> None:
    region = Region(size_bytes=300)
    parts = find_writer(Carrier, version)(Carrier(before=1, records=region, after=2))
    assert parts[1] is region
    joined = bytes(parts[0]) + bytes(300) + bytes(parts[2])  # type: ignore[arg-type]
    assert joined == encode_message(Carrier(before=1, records=bytes(300), after=2), version)


def test_missing_records_are_null_and_not_empty() -> None:
    assert decode_message(Carrier, encode_message(Carrier(records=None), 1), 1).records is None
    assert decode_message(Carrier, encode_message(Carrier(records=b""), 1), 1).records == b""


@pytest.mark.parametrize("build", [find_reader, find_writer])
def test_a_version_outside_the_declaration_is_a_mistake_of_the_caller(build: object) -> None:
    assert callable(build)
    with pytest.raises(ValueError, match="Drawing has no version 3; use one of 0-2"):
        build(Drawing, 3)


def test_the_elements_of_all_arrays_together_are_limited() -> None:
    few = NewerDrawing(points=[NewerPoint(history=[0] * 40_000)] * 2, numbers=[0] * 19_996)
    assert len(decode_message(NewerDrawing, encode_message(few, 2), 2).numbers) == 19_996
    few.numbers.append(0)
    with pytest.raises(MalformedError, match="numbers brings a message to more than 100000 elements and tagged fields"):
        decode_message(NewerDrawing, encode_message(few, 2), 2)


def test_a_controllers_request_has_as_many_elements_as_its_frame_can_hold() -> None:
    states = [
        LeaderAndIsrPartitionState(partition_index=index, replicas=[1, 2, 3], isr=[1, 2, 3]) for index in range(30_000)
    ]
    request = LeaderAndIsrRequest(topic_states=[LeaderAndIsrTopicState(topic_name="t", partition_states=states)])
    decoded = decode_message(LeaderAndIsrRequest, encode_message(request, 7), 7)
    assert decoded.topic_states[0].partition_states == states


def test_a_controllers_request_of_tiny_elements_is_limited() -> None:
    topics = [StopReplicaTopicV1(name="") for _ in range(200_000)]
    request = StopReplicaRequest(topics=topics)
    with pytest.raises(MalformedError, match="topics brings a message to more than 150005 elements"):
        decode_message(StopReplicaRequest, encode_message(request, 2), 2)


@pytest.mark.parametrize("count", [100_001, 2**31, 2**32 - 1])
def test_the_tagged_fields_of_a_message_are_limited(count: int) -> None:
    data = encode_message(Drawing(), 2)
    assert data.endswith(b"\0")
    with pytest.raises(MalformedError, match="tags of Drawing brings a message to more than 100000 elements"):
        decode_message(Drawing, data[:-1] + encode_uvarint(count) + bytes(300_000), 2)


def test_tagged_fields_of_no_bytes_are_skipped() -> None:
    unknown = b"".join(encode_uvarint(tag) + b"\0" for tag in range(10, 1010))
    data = encode_message(Drawing(), 2)[:-1] + encode_uvarint(1000) + unknown
    assert find_reader(Drawing, 2)(data, 0) == (Drawing(), len(data))


LIES = {
    "a string of negative length": "fffe" + "00000000" * 2,
    "a null string": "ffff" + "00000000" * 2,
    "a string longer than the frame": "7fff6162",
    "an array longer than the frame": "0000" + "7fffffff",
    "a null array": "0000" + "ffffffff" + "00000000",
    "a numbers array longer than the frame": "0000" + "00000000" + "00000002" + "00000001",
    "text that is not UTF-8": "0001ff" + "00000000" * 2,
}


@pytest.mark.parametrize("data", LIES.values(), ids=LIES.keys())
def test_bytes_that_lie_are_refused(data: str) -> None:
    with pytest.raises(MalformedError):
        decode_message(Drawing, bytes.fromhex(data), 0)


@pytest.mark.parametrize("version", [0, 2])
def test_a_string_is_never_longer_than_an_int16_says(version: int) -> None:
    longest = Drawing(name="x" * 0x7FFF)
    assert decode_message(Drawing, encode_message(longest, version), version) == longest
    with pytest.raises(MalformedError, match="name"):
        decode_message(Drawing, encode_message(Drawing(name="x" * 0x8000), 2), 2)


def test_a_default_that_messages_share_refuses_to_be_changed() -> None:
    first, second = FetchRequest(), FetchRequest()
    assert first.replica_state == ReplicaState() and ReplicaState() == first.replica_state
    with pytest.raises(AttributeError, match="assign a new ReplicaState"):
        first.replica_state.replica_id = 1
    first.replica_state = ReplicaState(replica_id=1)
    assert second.replica_state == ReplicaState() != first.replica_state

"""Lists of instances that are too long for a string of the protocol."""

from __future__ import annotations

from kafkacompat.metadata.config_changes import ConfigOperation, ConfigOperationType
from kafkacompat.tenancy.instance_messages import MAX_PART_LENGTH, decode_properties, encode_changes, split_list
from kafkacompat.wire.apis.describe_configs import DescribeConfigsResourceResult

NETWORKS = ",".join(f"10.{number // 250}.{number % 250}.0/24" for number in range(10_000))


def test_a_long_list_is_split_between_its_elements() -> None:
    parts = list(split_list(NETWORKS))
    assert len(parts) > 4
    assert ",".join(parts) == NETWORKS
    assert all(len(part) <= MAX_PART_LENGTH for part in parts)
    assert list(split_list("")) == [""]


def test_every_part_fits_into_a_string_whatever_its_letters() -> None:
    users = ",".join(f"User:\N{GRINNING FACE}{number}" for number in range(20_000))
    parts = list(split_list(users))
    assert ",".join(parts) == users
    assert all(len(part.encode()) < 1 << 15 for part in parts)


def test_a_long_value_is_set_and_the_rest_appended() -> None:
    sent = encode_changes([ConfigOperation("whitelist", ConfigOperationType.SET, NETWORKS)])
    assert [config.config_operation for config in sent] == [0, *[2] * (len(sent) - 1)]
    removed = encode_changes([ConfigOperation("whitelist", ConfigOperationType.SUBTRACT, NETWORKS)])
    assert {config.config_operation for config in removed} == {3}
    (deleted,) = encode_changes([ConfigOperation("whitelist", ConfigOperationType.DELETE, None)])
    assert (deleted.config_operation, deleted.value) == (1, None)


def test_the_entries_of_one_name_are_one_value() -> None:
    entries = [
        DescribeConfigsResourceResult(name="whitelist", value=part, config_source=9) for part in split_list(NETWORKS)
    ]
    hidden = DescribeConfigsResourceResult(name="secret", value=None, config_source=9)
    default = DescribeConfigsResourceResult(name="state", value="active", config_source=5)
    assert decode_properties([*entries, hidden, default]) == {"whitelist": NETWORKS}

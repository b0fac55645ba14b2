"""Classic groups in the log: members of a group in Kafka go on here, and the other way round."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from compat_tests.brokers import Broker, KafkaBroker, KafkacompatBroker
from compat_tests.same_answers.classic_members import Member, join_generation, look_at, make_company, sync_generation
from compat_tests.same_answers.groups import wait_for_coordinator
from compat_tests.same_answers.transcript import Transcript
from kafkacompat.wire.apis.describe_groups import DescribedGroup


@contextmanager
def run_filled_broker(broker: Broker, name: str) -> Iterator[list[Member]]:
    """Run a broker with a stable group of a dynamic member, which leads, and of a static one."""
    with broker, closing(Transcript(broker.port)) as script, make_company(script, name, "a", "b") as (a, b):
        b.instance_id = b.joining["group_instance_id"] = "instance-b"
        join_generation("met", a, b)
        sync_generation("met", a, b)
        assert look_at(script, name).group_state == "Stable"
        yield [a, b]


def go_on(broker: Broker, name: str, members: list[Member], left: DescribedGroup) -> None:
    """The members are unchanged, and the static one may have been restarted too."""
    with closing(Transcript(broker.port)) as script:
        wait_for_coordinator(script, name)
        assert look_at(script, name) == left
        for member in members:
            member.script = script
            member.connect()
            assert member.beat().error_code == 0
            member.syncs("goes on")
            assert script.answers[f"{name}, goes on, synced: {member.name}"]["assignment"] == member.name.encode()
        leader, static = members
        generation, static.member_id = static.generation, ""
        static.joins("back")
        assert static.generation == generation
        assert leader.beat().error_code == static.beat().error_code == 0


@pytest.mark.migration
def test_members_go_from_kafka_to_ours_and_back(tmp_path: Path) -> None:
    kafka, ours = KafkaBroker(tmp_path / "kafka"), KafkacompatBroker(tmp_path / "ours")
    with run_filled_broker(kafka, "kafkas") as kafkas:
        left = look_at(kafkas[0].script, "kafkas")
    ours.prepare()
    shutil.copytree(kafka.data_folder, ours.data_folder)
    with run_filled_broker(ours, "ours") as members:
        go_on(ours, "kafkas", kafkas, left)
        left = look_at(members[0].script, "ours")
    shutil.rmtree(kafka.data_folder)
    shutil.copytree(ours.data_folder, kafka.data_folder)
    with kafka:
        go_on(kafka, "ours", members, left)

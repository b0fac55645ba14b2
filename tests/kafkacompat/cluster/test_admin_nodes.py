"""What old tools write to ZooKeeper, carried out by the controller of three brokers on one clock."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kafkacompat.groups.commits import OffsetToCommit
from kafkacompat.metadata.znodes.configs import encode_config_change
from kafkacompat.zookeeper.memory_client import MemoryClient
from tests.kafkacompat.three_brokers.support import Cluster
from tests.kafkacompat.three_brokers.test_leaders import produce_some

TOPIC = "/brokers/topics/{}"
STATE = "/brokers/topics/{}/partitions/{}/state"
REASSIGNMENT = "/admin/reassign_partitions"
ELECTION = "/admin/preferred_replica_election"


class OldTool:
    """A client of ZooKeeper that knows nothing of the brokers."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.client: MemoryClient = cluster.zookeeper.connect(cluster.clock, "/kafka")
        cluster.run(self.client.start())

    def write(self, path: str, value: Any) -> None:
        """Create a node, or replace its value, and let the cluster work for a second."""
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        if self.cluster.run(self.client.exists(path)) is None:
            self.cluster.run(self.client.create(path, data, make_path=True))
        else:
            self.cluster.run(self.client.set(path, data))
        self.cluster.advance(1)

    def read(self, path: str) -> Any:
        """Return a node's JSON value, None if there is no node."""
        value = self.cluster.zookeeper.contents().get(f"/kafka{path}")
        return None if value is None else json.loads(value)

    def names(self, folder: str) -> list[str]:
        return self.cluster.run(self.client.children(folder))  # type: ignore[no-any-return]

    def assign(self, topic: str, partitions: dict[str, list[int]]) -> None:
        self.write(TOPIC.format(topic), {"version": 1, "partitions": partitions})


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(auto_leader_rebalance_enable="false", auto_create_topics_enable="false")


@pytest.fixture
def tool(cluster: Cluster) -> OldTool:
    return OldTool(cluster)


def reassign(tool: OldTool, *entries: tuple[str, int, list[int]]) -> None:
    partitions = [{"topic": topic, "partition": index, "replicas": nodes} for topic, index, nodes in entries]
    tool.write(REASSIGNMENT, {"version": 1, "partitions": partitions})


def test_a_topic_that_a_tool_creates_gets_an_id_and_leaders(cluster: Cluster, tool: OldTool) -> None:
    tool.assign("old", {"0": [2, 3, 1], "1": [3, 1]})
    stored = tool.read(TOPIC.format("old"))
    assert (stored["version"], stored["partitions"]) == (3, {"0": [2, 3, 1], "1": [3, 1]})
    assert len(stored["topic_id"]) == 22
    assert [cluster.leader("old", index) for index in (0, 1)] == [2, 3]
    cluster.ids["old"] = cluster.describe(1, "old").topic_id
    assert cluster.produce(2, "old", b"a").error_code == 0
    assert cluster.read(2, "old") == [b"a"]


def test_a_topic_created_without_a_controller_waits_for_the_next_one(cluster: Cluster, tool: OldTool) -> None:
    for node in (1, 2, 3):
        cluster.kill(node)
    tool.assign("old", {"0": [2, 3]})
    assert "topic_id" not in tool.read(TOPIC.format("old"))
    for node in (1, 2, 3):
        cluster.start(node)
    cluster.advance(2)
    assert len(tool.read(TOPIC.format("old"))["topic_id"]) == 22
    assert cluster.leader("old") == 2
    tool.assign("newer", {"0": [3]})
    assert cluster.leader("newer") == 3


def test_partitions_that_a_tool_adds_are_led_and_the_topic_keeps_its_id(cluster: Cluster, tool: OldTool) -> None:
    cluster.create("t", replicas=2)
    before = tool.read(TOPIC.format("t"))
    tool.assign("t", {**before["partitions"], "1": [3, 2]})
    after = tool.read(TOPIC.format("t"))
    assert after["topic_id"] == before["topic_id"]
    assert after["partitions"] == {**before["partitions"], "1": [3, 2]}
    assert cluster.leader("t", 1) == 3
    assert cluster.produce(3, "t", b"a", index=1).error_code == 0


def test_a_tool_cannot_move_replicas_by_writing_a_topic(cluster: Cluster, tool: OldTool) -> None:
    tool.assign("t", {"0": [1, 2]})
    tool.assign("t", {"0": [3], "1": [3]})
    assert tool.read(TOPIC.format("t"))["partitions"] == {"0": [1, 2], "1": [3]}


def test_a_topic_that_a_tool_damages_is_left_out(cluster: Cluster, tool: OldTool) -> None:
    values = {"bad": b"{", "good": b'{"version":1,"partitions":{"0":[1]}}'}
    for name, value in values.items():
        tool.client.create(TOPIC.format(name), value)
    cluster.advance(1)
    assert cluster.leader("good") == 1


def test_a_topic_whose_deletion_a_tool_requests_goes(cluster: Cluster, tool: OldTool) -> None:
    cluster.create("t")
    tool.write("/admin/delete_topics/t", b"")
    tool.write("/admin/delete_topics/unknown", b"")
    cluster.advance(2)
    assert tool.names("/brokers/topics") == []
    assert tool.names("/admin/delete_topics") == []
    assert cluster.describe(1, "t").error_code == 3


def test_a_requested_election_moves_the_leadership_to_the_preferred_replica(cluster: Cluster, tool: OldTool) -> None:
    tool.assign("t", {"0": [1, 2, 3], "1": [2, 3]})
    cluster.kill(1)
    cluster.advance(2)
    assert cluster.leader("t") == 2
    cluster.start(1)
    cluster.advance(10)
    assert cluster.leader("t") == 2
    wanted = [{"topic": "t", "partition": index} for index in (0, 1)] + [{"topic": "unknown", "partition": 7}]
    tool.write(ELECTION, {"version": 1, "partitions": wanted})
    assert (cluster.leader("t"), cluster.leader("t", 1)) == (1, 2)
    assert tool.read(ELECTION) is None
    # The next request is noticed too, and one that cannot be read does not stay in its way.
    tool.write(ELECTION, b"{}")
    assert tool.read(ELECTION) is None


def test_requested_reassignments_are_carried_out_and_leave_the_node_one_by_one(cluster: Cluster, tool: OldTool) -> None:
    tool.assign("t", {"0": [1, 2]})
    tool.assign("u", {"0": [1]})
    cluster.kill(3)
    cluster.advance(2)
    reassign(tool, ("t", 0, [2, 1]), ("u", 0, [3]), ("unknown", 0, [1]))
    assert tool.read(REASSIGNMENT)["partitions"] == [{"topic": "u", "partition": 0, "replicas": [3]}]
    # The controller that shortens the list does not begin with the rest anew.
    cluster.advance(5)
    assert tool.read(STATE.format("u", 0))["leader_epoch"] == 1
    cluster.start(3)
    cluster.advance(10)
    assert tool.read(REASSIGNMENT) is None
    assert tool.read(TOPIC.format("t"))["partitions"] == {"0": [2, 1]}
    assert tool.read(TOPIC.format("u"))["partitions"] == {"0": [3]}
    assert cluster.leader("u") == 3
    reassign(tool, ("t", 0, [1, 2]))
    cluster.advance(5)
    assert tool.read(REASSIGNMENT) is None
    assert tool.read(TOPIC.format("t"))["partitions"] == {"0": [1, 2]}


def test_a_new_controller_goes_on_with_a_requested_reassignment(cluster: Cluster, tool: OldTool) -> None:
    tool.assign("t", {"0": [1, 2]})
    first = cluster.controller()
    other = next(node for node in (3, 2, 1) if node != first)
    cluster.kill(other)
    cluster.advance(2)
    stays = 6 - first - other
    reassign(tool, ("t", 0, [stays, other]))
    assert tool.read(REASSIGNMENT) is not None
    cluster.kill(first)
    cluster.start(other)
    cluster.start(first)
    cluster.advance(10)
    assert cluster.controller() != first
    assert tool.read(REASSIGNMENT) is None
    assert tool.read(TOPIC.format("t"))["partitions"] == {"0": [stays, other]}


def test_a_state_that_an_old_broker_writes_is_announced(cluster: Cluster, tool: OldTool) -> None:
    tool.assign("t", {"0": [1, 2, 3]})
    state = tool.read(STATE.format("t", 0))
    cluster.run(tool.client.set("/brokers/topics/t/partitions/0/state", json.dumps({**state, "isr": [1, 2]}).encode()))
    folder = "/isr_change_notification"
    notification = {"version": 1, "partitions": [{"topic": "t", "partition": 0}, {"topic": "unknown", "partition": 0}]}
    cluster.run(tool.client.create(f"{folder}/isr_change_", json.dumps(notification).encode(), sequence=True))
    cluster.run(tool.client.create(f"{folder}/isr_change_", b"damaged", sequence=True))
    cluster.advance(0.5)
    assert tool.names(folder) == []
    assert cluster.describe(2, "t").partitions[0].isr_nodes == [1, 2]


def change_config(tool: OldTool, topic: str, **configs: str) -> None:
    """Change a topic's configuration as kafka-configs up to 2.8 does."""
    path = f"/config/topics/{topic}"
    tool.write(path, {"version": 1, "config": {name.replace("_", "."): value for name, value in configs.items()}})
    tool.cluster.run(tool.client.create("/config/changes/config_change_", encode_config_change(path), sequence=True))
    tool.cluster.advance(1)


def test_an_unclean_election_follows_when_a_tool_allows_it(cluster: Cluster, tool: OldTool) -> None:
    tool.assign("t", {"0": [1, 2]})
    cluster.kill(2)
    cluster.advance(6)
    assert tool.read(STATE.format("t", 0))["isr"] == [1]
    cluster.kill(1)
    cluster.start(2)
    cluster.advance(2)
    assert tool.read(STATE.format("t", 0))["leader"] == -1
    change_config(tool, "t", unclean_leader_election_enable="true")
    assert tool.read(STATE.format("t", 0))["leader"] == 2


def test_old_notifications_are_purged(cluster: Cluster, tool: OldTool) -> None:
    tool.assign("t", {"0": [1]})
    for _ in range(3):
        change_config(tool, "t", retention_ms="1000")
    assert len(tool.names("/config/changes")) == 3
    cluster.clock.advance(16 * 60)
    cluster.advance(5)
    assert len(tool.names("/config/changes")) == 3
    change_config(tool, "t", retention_ms="2000")
    assert len(tool.names("/config/changes")) == 1


def test_what_happens_while_the_controller_is_disconnected_is_read_afterwards(
    cluster: Cluster, tool: OldTool, caplog: pytest.LogCaptureFixture
) -> None:
    tool.assign("t", {"0": [1, 2]})
    side: Any = cluster.brokers[cluster.controller()]._node
    client = side.member._zookeeper
    cluster.zookeeper.disconnect(client)
    cluster.advance(1)
    tool.assign("t", {"0": [1, 2], "1": [3]})
    tool.assign("new", {"0": [3]})
    reassign(tool, ("t", 0, [2, 1]))
    change_config(tool, "t", retention_ms="1000")
    assert tool.read(STATE.format("new", 0)) is None
    cluster.zookeeper.reconnect(client)
    cluster.advance(5)
    assert (cluster.leader("new"), cluster.leader("t", 1)) == (3, 3)
    assert tool.read(REASSIGNMENT) is None
    assert tool.read(TOPIC.format("t"))["partitions"] == {"0": [2, 1], "1": [3]}
    assert "The controller failed to handle" not in caplog.text


@pytest.mark.parametrize("controller_changes", [False, True])
def test_without_delete_topic_enable_the_requests_of_tools_are_removed(controller_changes: bool) -> None:
    cluster = Cluster(delete_topic_enable="false")
    tool = OldTool(cluster)
    cluster.create("t")
    cluster.wait_for_leader("t")
    if controller_changes:
        cluster.zookeeper.disconnect(cluster.client_of(cluster.controller()))
    for topic in ("t", "unknown"):
        tool.write(f"/admin/delete_topics/{topic}", b"")
    if controller_changes:
        cluster.kill(cluster.controller())
        cluster.wait(lambda: cluster.controller() != -1)
        cluster.advance(1)
    assert tool.names("/admin/delete_topics") == []
    assert cluster.produce(cluster.wait_for_leader("t"), "t", b"0").error_code == 0


def test_the_offsets_of_old_consumers_stay_when_their_topic_is_deleted(cluster: Cluster, tool: OldTool) -> None:
    cluster.create("t")
    tool.write("/consumers/g/offsets/t/0", b"8")
    assert cluster.delete("t") == 0
    cluster.advance(2)
    assert tool.read("/consumers/g/offsets/t/0") == 8


def test_offsets_of_version_0_are_in_zookeeper_for_every_broker(cluster: Cluster, tool: OldTool) -> None:
    topic_id = cluster.create("t")
    first, second = (cluster.brokers[node].coordinators.stored_offsets for node in (1, 2))
    assert cluster.run(first.commit("g", [OffsetToCommit("t", topic_id, 0, 8, -1, None)])) == [0]
    assert tool.read("/consumers/g/offsets/t/0") == 8
    assert cluster.run(second.fetch("g", [("t", 0)])) == {("t", 0): 8}
    tool.write("/consumers/g/offsets/t/0", b"9")
    assert cluster.run(first.commit("g", [OffsetToCommit("t", topic_id, 0, 10, -1, None)])) == [0]
    assert cluster.run(second.fetch("g", [("t", 0), ("t", 1)])) == {("t", 0): 10}


def produce_and_settle(cluster: Cluster, topic: str) -> None:
    cluster.create(topic)
    leader = cluster.wait_for_leader(topic)
    for value in (b"0", b"1"):
        assert cluster.produce(leader, topic, value).error_code == 0
    cluster.advance(3)


def remove_id(tool: OldTool, topic: str) -> None:
    tool.assign(topic, tool.read(TOPIC.format(topic))["partitions"])


def assert_topic_is_whole(cluster: Cluster, topic: str) -> None:
    leader = cluster.wait_for_leader(topic)
    cluster.wait_for_in_sync(topic, list(cluster.brokers))
    cluster.advance(2)
    for node in cluster.brokers:
        assert [value for _, _, value in cluster.read_log(node, topic)] == [b"0", b"1"]
    cluster.ids[topic] = cluster.describe(leader, topic).topic_id
    assert cluster.read(leader, topic) == [b"0", b"1"]


def test_a_topic_written_while_there_is_no_controller_keeps_its_id(cluster: Cluster, tool: OldTool) -> None:
    produce_and_settle(cluster, "t")
    before = tool.read(TOPIC.format("t"))
    cluster.kill(cluster.controller(), expire=False)
    remove_id(tool, "t")
    assert "topic_id" not in tool.read(TOPIC.format("t"))
    cluster.wait(lambda: cluster.controller() != -1)
    cluster.advance(5)
    assert tool.read(TOPIC.format("t"))["topic_id"] == before["topic_id"]
    assert_topic_is_whole(cluster, "t")


@pytest.mark.parametrize("has_metadata_files", [True, False])
def test_a_topic_without_an_id_keeps_its_records_when_all_brokers_start(
    cluster: Cluster, tool: OldTool, has_metadata_files: bool
) -> None:
    produce_and_settle(cluster, "t")
    for node in (1, 2, 3):
        cluster.kill(node)
    remove_id(tool, "t")
    for node in (1, 2, 3):
        if not has_metadata_files:
            # As an Apache Kafka before 2.8 leaves them.
            cluster.files[node].remove("/data/t-0/partition.metadata")
        cluster.start(node)
    cluster.advance(5)
    assert_topic_is_whole(cluster, "t")


@pytest.mark.parametrize("order", [(2, 3), (3, 2)])
@pytest.mark.parametrize("has_metadata_files", [True, False])
def test_a_first_controller_without_a_replica_leaves_the_id_to_the_replicas(
    cluster: Cluster, tool: OldTool, order: tuple[int, int], has_metadata_files: bool
) -> None:
    cluster.create("t", assignment={0: [2, 3], 1: [3, 2]})
    produce_some(cluster, "t", [b"0", b"1"], 0)
    produce_some(cluster, "t", [b"2"], 1)
    before = tool.read(TOPIC.format("t"))["topic_id"]
    cluster.advance(3)
    for node in (1, 2, 3):
        cluster.kill(node)
    remove_id(tool, "t")
    if not has_metadata_files:
        for folder in ((2, "t-0"), (2, "t-1"), (3, "t-0"), (3, "t-1")):
            cluster.files[folder[0]].remove(f"/data/{folder[1]}/partition.metadata")
    cluster.start(1)
    cluster.advance(20)
    assert "topic_id" not in tool.read(TOPIC.format("t"))
    for node in order:
        cluster.start(node)
    leader = cluster.wait_for_leader("t", 0)
    other = cluster.wait_for_leader("t", 1)
    cluster.wait_for_in_sync("t", [2, 3])
    cluster.ids["t"] = cluster.describe(leader, "t").topic_id
    assert (tool.read(TOPIC.format("t"))["topic_id"] == before) == has_metadata_files
    assert (cluster.read(leader, "t"), cluster.read(other, "t", index=1)) == ([b"0", b"1"], [b"2"])
    assert not any("stray" in name for node in order for name in cluster.files[node].list("/data"))


def test_a_topic_whose_id_is_missing_when_everything_is_read_again_keeps_it(cluster: Cluster, tool: OldTool) -> None:
    produce_and_settle(cluster, "t")
    before = tool.read(TOPIC.format("t"))
    cluster.zookeeper.delay_watches(3)
    remove_id(tool, "t")
    active = cluster.side(cluster.controller()).member._active
    assert active is not None
    # ZooKeeper has not confirmed a change, so that the next one reads everything again.
    active._ledger._stale = True
    cluster.create("other")
    cluster.advance(5)
    assert tool.read(TOPIC.format("t"))["topic_id"] == before["topic_id"]
    assert_topic_is_whole(cluster, "t")


def test_the_folders_of_a_topic_get_the_id_that_it_gets(cluster: Cluster, tool: OldTool) -> None:
    produce_and_settle(cluster, "t")
    for node in (1, 2, 3):
        cluster.stop(node)
    remove_id(tool, "t")
    for node in (1, 2, 3):
        cluster.files[node].remove("/data/t-0/partition.metadata")
        cluster.start(node)
    cluster.advance(5)
    assert_topic_is_whole(cluster, "t")
    first = next(iter(cluster.brokers))
    cluster.stop(first)
    stored = cluster.files[first].read("/data/t-0/partition.metadata").decode()
    assert tool.read(TOPIC.format("t"))["topic_id"] in stored

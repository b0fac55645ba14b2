"""The pages of brokers in a cluster: what each shows of the whole, and of what it has itself."""

from __future__ import annotations

from tests.kafkacompat.monitoring.test_cluster_metrics import MonitoredCluster
from tests.kafkacompat.monitoring.web import connect, parse_answer
from tests.kafkacompat.web.visitor import PageText


class WebCluster(MonitoredCluster):
    """Three brokers with the page."""

    def __init__(self) -> None:
        super().__init__(kafkacompat_ui_enable="true")

    def show(self, node: int, path: str) -> PageText:
        """Return a page of a broker that must be there."""
        protocol, transport = connect(self.http[node].site)
        protocol.dataReceived(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        while transport.connected:
            self.turn()
        answer = parse_answer(transport.value())
        assert answer.status == 200, (path, answer.body)
        return PageText(answer.body)


def test_each_broker_shows_the_cluster_and_its_own_replicas() -> None:
    cluster = WebCluster()
    cluster.create("everywhere", assignment={0: (1, 2, 3)})
    cluster.create("on-one", assignment={0: (2,)})
    cluster.create("wide", assignment={**dict.fromkeys(range(110), (1,)), 110: (3,)})
    cluster.wait_for_leader("everywhere")
    cluster.wait_for_leader("on-one")
    cluster.wait_for_leader("wide", 110)
    cluster.produce(1, "everywhere", b"replicated value")
    cluster.produce(2, "on-one", b"value of broker 2")
    cluster.produce(3, "wide", b"in the last partition", index=110)
    cluster.advance(2)
    for node in (1, 2, 3):
        assert "/ui/topics/on-one" in cluster.show(node, "/ui/topics").links()
        brokers = cluster.show(node, "/ui/brokers").text
        assert all(f"broker-{other}:9092" in brokers for other in (1, 2, 3))
        # A follower has the records, too.
        assert "replicated value" in cluster.show(node, "/ui/topics/everywhere/messages").text
        page = cluster.show(node, "/ui/topics/on-one/messages").text
        assert ("value of broker 2" in page) == (node == 2)
        assert ("1 partition has no replica on this broker" in page) == (node != 2)
    page = cluster.show(3, "/ui/topics/wide/messages").text
    assert "in the last partition" in page and "110 partitions have no replica on this broker" in page
    cluster.kill(3)
    cluster.wait(lambda: cluster.in_sync("everywhere") == [1, 2], 60)
    cluster.kill(2)
    cluster.wait(lambda: cluster.in_sync("everywhere") == [1], 60)
    problems = cluster.show(1, "/ui/partitions")
    assert "under-replicated" in problems.text and "no leader" in problems.text
    assert {"/ui/topics/everywhere", "/ui/topics/on-one"} <= set(problems.links())

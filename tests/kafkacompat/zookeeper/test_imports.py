"""A broker without a ZooKeeper does not pay for kazoo."""

from __future__ import annotations

import subprocess
import sys


def test_kazoo_is_imported_with_its_client_only() -> None:
    modules = "kafkacompat.broker, kafkacompat.metadata.zookeeper_store, kafkacompat.zookeeper.memory"
    look = "print('kazoo' in sys.modules)"
    program = f"import sys, {modules}; {look}; import kafkacompat.zookeeper.kazoo_client; {look}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_a_single_node_imports_nothing_that_only_brokers_of_a_cluster_or_of_tests_need() -> None:
    modules = "kafkacompat.cli.serve, kafkacompat.cli.process, kafkacompat.broker, kafkacompat.host"
    packages = (
        "('cluster', 'replication', 'client', 'zookeeper', 'server.inter_broker', 'wire.apis', 'cluster_node', "
        "'faults', 'adjustable_reactor', 'watched_host', 'cli.for_tests')"
    )
    look = f"print(*(m for m in sys.modules if m.removeprefix('kafkacompat.').startswith({packages})))"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, {modules}; {look}"], capture_output=True, text=True, check=True
    )
    # The errors of a start, and the package of the messages.
    errors = [
        "kafkacompat.cluster",
        "kafkacompat.cluster.errors",
        "kafkacompat.zookeeper",
        "kafkacompat.zookeeper.client",
    ]
    assert sorted(done.stdout.split()) == [*errors[:2], "kafkacompat.wire.apis", *errors[2:]]

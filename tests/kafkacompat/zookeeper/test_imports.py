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

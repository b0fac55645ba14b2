"""A broker without the HTTP listener pays for none of its libraries, and one without instances for none of theirs."""

from __future__ import annotations

import subprocess
import sys

LIBRARIES = (
    "prometheus_client",
    "opentelemetry",
    "google.protobuf",
    "twisted.web",
    "jinja2",
    "kafkacompat.monitoring",
    "kafkacompat.web",
)
FOR_INSTANCES = ("yaml", "kafkacompat.instances_file", "kafkacompat.instance_removal", "kafkacompat.instance_listeners")


def test_a_broker_without_the_listener_and_without_instances_imports_nothing_for_them() -> None:
    look = f"print(*(name for name in sys.modules if name.startswith({LIBRARIES + FOR_INSTANCES})))"
    code = f"import sys; import kafkacompat.broker, kafkacompat.cluster_node, kafkacompat.cli.process; {look}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []

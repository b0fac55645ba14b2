"""A broker without the HTTP listener pays for none of its libraries."""

from __future__ import annotations

import subprocess
import sys

LIBRARIES = ("prometheus_client", "opentelemetry", "google.protobuf", "twisted.web", "kafkacompat.monitoring")


def test_a_broker_without_the_listener_imports_no_library_for_it() -> None:
    look = f"print(*(name for name in sys.modules if name.startswith({LIBRARIES})))"
    code = f"import sys; import kafkacompat.broker, kafkacompat.cluster_node, kafkacompat.cli.process; {look}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []

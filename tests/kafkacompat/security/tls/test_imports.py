"""A broker without TLS does not pay for it."""

from __future__ import annotations

import subprocess
import sys


def test_the_libraries_of_tls_are_imported_with_it_only() -> None:
    modules = "kafkacompat.cli.serve, kafkacompat.broker, kafkacompat.host, kafkacompat.cluster_node"
    look = "print(*(name in sys.modules for name in ('OpenSSL', 'cryptography', 'service_identity')))"
    start = "from kafkacompat.cli.process import install_reactor; install_reactor()"
    program = f"import sys; {start}; import {modules}; {look}; import kafkacompat.security.tls.listeners; {look}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["False False False", "True True True"]

"""A temporary broker: a process of its own on a free port, with its data in a folder of the caller's."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spark_integration.errors import PipelineError


@contextmanager
def run_broker(folder: Path) -> Iterator[str]:
    """Run a broker for the block; yields its address for clients. Its log is ``<folder>/broker.log``.

    If the broker ends instead of serving, raises PipelineError with the last line of that log.
    """
    listener, data = "listeners=PLAINTEXT://127.0.0.1:0", f"log.dirs={folder / 'data'}"
    command = [sys.executable, "-m", "kafkacompat", "serve", "--override", listener, "--override", data]
    log = folder / "broker.log"
    with (
        log.open("w") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            ready = re.search(r"PLAINTEXT://(127\.0\.0\.1:\d+)", process.stdout.readline())
            if ready is None:
                words = log.read_text().strip().splitlines()[-1:]
                raise PipelineError(f"the broker did not start: {''.join(words) or 'it gives no reason'}")
            yield ready[1]
        finally:
            process.terminate()
            process.wait()

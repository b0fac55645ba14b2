"""Keeps the classes that a Kafka broker of 4.3.1 loads as its JVM leaves them behind: the next JVMs start in half the time.

`make` runs it once, after the jars. Without the archive, or with another JVM than its maker, JVMs start as before.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from compat_tests.brokers import KafkaBroker
from compat_tests.java_tools import SHORT_LIVED, class_archive
from spark_integration.runtime.maven import build_once

LONGEST_STOP_SECONDS = 120


class _ArchivedBroker(KafkaBroker):
    def __init__(self, folder: Path, archive: Path) -> None:
        super().__init__(folder)
        self.JVM = (*SHORT_LIVED, f"-XX:ArchiveClassesAtExit={archive}")


def _make_archive(folder: Path) -> None:
    broker = _ArchivedBroker(folder / "node", folder / class_archive().name)
    broker.start()
    broker.stop(LONGEST_STOP_SECONDS)
    shutil.rmtree(broker.folder)


def main() -> None:
    """Make the archive, unless it is there."""
    build_once(class_archive().parent, _make_archive)


if __name__ == "__main__":
    main()

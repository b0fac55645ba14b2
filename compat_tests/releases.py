"""``python -m compat_tests.releases``: print the table of `kafkacompat.wire.releases` from Kafka's own jars."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from compat_tests.java_tools import SHORT_LIVED, compile_java, kafka_class_path
from spark_integration.runtime.maven import BUILD, find_program

JAVA = Path(__file__).resolve().parent / "java"

PATCHES = {
    "0.8.2": "0.8.2.2", "0.9.0": "0.9.0.1", "0.10.0": "0.10.0.1", "0.10.1": "0.10.1.1", "0.10.2": "0.10.2.2",
    "0.11.0": "0.11.0.3", "1.0": "1.0.2", "1.1": "1.1.1", "2.0": "2.0.1", "2.1": "2.1.1", "2.2": "2.2.2",
    "2.3": "2.3.1", "2.4": "2.4.1", "2.5": "2.5.1", "2.6": "2.6.3", "2.7": "2.7.2", "2.8": "2.8.2", "3.0": "3.0.2",
    "3.1": "3.1.2", "3.2": "3.2.3", "3.3": "3.3.2", "3.4": "3.4.1", "3.5": "3.5.2", "3.6": "3.6.2", "3.7": "3.7.2",
    "3.8": "3.8.1", "3.9": "3.9.1", "4.0": "4.0.1", "4.1": "4.1.1", "4.2": "4.2.0", "4.3": "4.3.1",
}  # fmt: skip
"""The patch of each release that the table is made from."""

ZOOKEEPER = ("2.8", "3.0", "3.1", "3.2")
"""The releases with two kinds of broker; the broker with ZooKeeper counts."""

# APIs for members of groups that the clients of 0.8.2 declare and its broker does not know.
NOT_IN_BROKER = {"0.8.2": (11, 12)}

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kafkacompat</groupId><artifactId>release</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies><dependency>
    <groupId>org.apache.kafka</groupId><artifactId>kafka-clients</artifactId><version>{version}</version>
  </dependency></dependencies>
</project>
"""


def list_served(release: str) -> dict[int, tuple[int, int]]:
    """Return the first and last version of each API that the broker of a release serves, by its clients' jar."""
    pom = BUILD / "releases" / f"kafka-clients-{PATCHES[release]}" / "pom.xml"
    pom.parent.mkdir(parents=True, exist_ok=True)
    pom.write_text(_POM.format(version=PATCHES[release]))
    class_path = f"{compile_java(JAVA / 'ReleasedVersions.java')}:{kafka_class_path(pom)}"
    kind = "zkBroker" if release in ZOOKEEPER else "broker"
    command = [find_program("java"), *SHORT_LIVED, "-cp", class_path, "ReleasedVersions", kind]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = (tuple(map(int, line.split())) for line in done.stdout.splitlines())
    return {key: (first, last) for key, first, last in rows if key not in NOT_IN_BROKER.get(release, ())}


def describe_changes(before: dict[int, tuple[int, int]], after: dict[int, tuple[int, int]]) -> str:
    """Return the changes of a release, as the table has them."""
    words = []
    for key in sorted(before.keys() | after.keys()):
        if key not in after:
            words.append(f"-{key}")
        elif after[key] != before.get(key):
            first, last = after[key]
            words.append(f"{key}:{first}" if first == last else f"{key}:{first}-{last}")
    return " ".join(words)


def main() -> int:
    """Print the table."""
    before: dict[int, tuple[int, int]] = {}
    for release in PATCHES:
        after = list_served(release)
        print(f'    "{release}": "{describe_changes(before, after)}",')
        before = after
    return 0


if __name__ == "__main__":
    sys.exit(main())

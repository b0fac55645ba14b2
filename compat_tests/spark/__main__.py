"""``python -m compat_tests.spark``: all tests with Spark, on any release of it, on one broker or compared on two.

Without ``--compare`` pytest runs on ``--broker``. With it, the tests that record observations run on this broker and on
Apache Kafka 4.3.1 in turn, and every observation that differs is printed; the exit code is 0 if none does. All other
options go to pytest.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from compat_tests.brokers import BROKERS, ROOT
from compat_tests.spark.observations import compare_observations, read_observations
from compat_tests.spark.releases import python_of

FOLDER = Path(__file__).resolve().parent
OTHER_RELEASES = f"--ignore={FOLDER / 'test_releases.py'}"


def main(arguments: Sequence[str]) -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m compat_tests.spark", description=__doc__)
    parser.add_argument("--broker", choices=sorted(BROKERS), default="kafkacompat", help="the broker to test")
    parser.add_argument("--compare", action="store_true", help="on both brokers, and what Spark saw compared")
    parser.add_argument("--release", default="", help="a release of pyspark; by default the one that is installed")
    given, options = parser.parse_known_args(arguments)
    python = python_of(given.release) if given.release else Path(sys.executable)
    if given.release:
        options.append(OTHER_RELEASES)
    return compare_brokers(python, options) if given.compare else run_tests(python, given.broker, options)


def run_tests(python: Path, broker: str, options: Sequence[str]) -> int:
    """Run the tests on one broker; return pytest's exit code."""
    command = [str(python), "-m", "pytest", str(FOLDER), "-m", "spark or not spark", f"--broker={broker}", *options]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def compare_brokers(python: Path, options: Sequence[str]) -> int:
    """Run the tests on each broker in turn, and compare their observations."""
    with tempfile.TemporaryDirectory() as folder:
        files = {kind: Path(folder) / kind for kind in BROKERS}
        codes = [run_tests(python, kind, [f"--observations={file}", *options]) for kind, file in files.items()]
        lines, same = compare_observations({kind: read_observations(file) for kind, file in files.items()})
    print("\n".join(lines))
    return 0 if same and not any(codes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

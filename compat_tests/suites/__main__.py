"""``python -m compat_tests.suites``: run other projects' integration tests on test brokers, and write docs/testing/suites.md."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from compat_tests.pages import render_table, replace_section
from compat_tests.suites.results import FAILED, KNOWN, PASSED, SKIPPED, Outcome, count, list_reasons, read_outcomes
from compat_tests.suites.sources import FOLDER, PACKAGES, ROOT, MissingSourceError
from compat_tests.suites.suites import SUITES, Suite

PAGE = ROOT / "docs" / "testing" / "suites.md"
BEGIN, END = "<!-- {name}: written by make suites -->\n", "<!-- end of {name} -->"
TIMEOUT_S = 1800
"""Time for one run of a suite."""


class Run(NamedTuple):
    """One run of a suite against one release, with its length in seconds."""

    release: str
    outcomes: list[Outcome]
    seconds: float


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="suites", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="SUITE", help=f"suites to run: {', '.join(SUITES)} (all)")
    parser.add_argument(
        "--release", action="append", help="release of Kafka that the broker looks like; may be repeated"
    )
    parser.add_argument("--dry", action="store_true", help="print the outcome, write nothing")
    for name in SUITES:
        parser.add_argument(f"--{name}", type=Path, metavar="CLONE", help=f"clone of the repository of {name}")
    parsed = parser.parse_args(arguments)
    for name in parsed.names:
        if name not in SUITES:
            parser.error(f"{name!r} is no suite: name one of {', '.join(SUITES)}")
    return parsed


def main(arguments: Sequence[str]) -> int:
    """Run the suites; returns 1 if a test failed for no known reason."""
    parsed = parse_arguments(arguments)
    failed = 0
    for name in parsed.names or SUITES:
        suite = SUITES[name]
        try:
            folder = suite.fetch(getattr(parsed, name.replace("-", "_")))
        except MissingSourceError as problem:
            print(f"Skipped {name}: {problem}")
            continue
        runs = [run_suite(suite, folder, release) for release in parsed.release or suite.releases]
        failed += sum(count(run.outcomes)[FAILED] for run in runs)
        if not (parsed.dry or parsed.release):
            write_page(name, suite, runs)
    return 1 if failed else 0


def run_suite(suite: Suite, folder: Path, release: str) -> Run:
    """Run a suite's tests in *folder* and print what fails. Raises RuntimeError if pytest does not run them."""
    report = FOLDER / f"{suite.package}-{release}.xml"
    report.unlink(missing_ok=True)
    left_out = [f"not {word}" for word in suite.left_out]
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", suite.plugin, "-p", "no:cacheprovider", "-p", "no:kafkacompat"),
        *("--tb=short", "--show-capture=no", f"--junitxml={report}", *suite.list_options(release)),
        *(("-k", " and ".join(left_out)) if left_out else ()),
        *suite.tests,
    ]
    path = os.pathsep.join([str(ROOT), str(PACKAGES), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, **suite.list_variables(release)}
    begun = time.monotonic()
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    (FOLDER / f"{suite.package}-{release}.log").write_text(done.stdout + done.stderr)
    if not report.exists():
        raise RuntimeError(f"pytest has not run the tests of {suite.package}:\n{done.stdout}{done.stderr}")
    run = Run(release, read_outcomes(report, suite.known), time.monotonic() - begun)
    print_run(suite, run)
    return run


def print_run(suite: Suite, run: Run) -> None:
    """Print the counts, and each test that failed for no known reason."""
    counts = count(run.outcomes)
    shown = ", ".join(f"{counts[result]} {result}" for result in (PASSED, FAILED, KNOWN, SKIPPED))
    print(f"{suite.package} {version(suite.package)} on Kafka {run.release}: {shown} ({run.seconds:.0f} s)")
    for outcome in run.outcomes:
        if outcome.result == FAILED:
            print(f"    {outcome.test}: {outcome.reason}")


def write_page(name: str, suite: Suite, runs: Sequence[Run]) -> None:
    """Write the results of a suite into the page."""
    begin, end = BEGIN.format(name=name), END.format(name=name)
    PAGE.write_text(replace_section(PAGE.read_text(), begin, end, "".join(_render(suite, runs))))


def _render(suite: Suite, runs: Sequence[Run]) -> Iterator[str]:
    yield f"\n{suite.package} {version(suite.package)}:\n\n"
    head = ("the broker looks like Kafka", PASSED, FAILED, "known", SKIPPED, "seconds")
    rows = []
    for run in runs:
        counts = count(run.outcomes)
        numbers = (counts[result] for result in (PASSED, FAILED, KNOWN, SKIPPED))
        rows.append((run.release, *map(str, numbers), f"{run.seconds:.0f}"))
    yield render_table(head, rows)
    for title, result in (("Failed", FAILED), ("Failed for a known reason", KNOWN), ("Skipped", SKIPPED)):
        reasons = [(run.release, *pair) for run in runs for pair in list_reasons(run.outcomes, result)]
        if reasons:
            yield f"\n{title}:\n\n"
            yield from (f"- Kafka {release}: {number} × {reason}\n" for release, reason, number in reasons)
    if suite.left_out:
        yield "\nLeft out:\n\n"
        yield from (f"- tests with `{word}` in their names: {reason}\n" for word, reason in suite.left_out.items())
    yield "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

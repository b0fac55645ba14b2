"""``python -m compat_tests.chaos``: run scenarios of faults on a cluster of real brokers, and check what its clients saw."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from compat_tests.chaos.isolation import run_isolated
from compat_tests.chaos.plan import SCENARIOS
from compat_tests.chaos.report import PAGE, RESULTS, ChaosFigures, add_run, write_page
from compat_tests.chaos.run import ChaosOrders, run_scenario
from compat_tests.clusters import CLUSTERS
from kafkacompat.history.broker import RunError
from kafkacompat.history.events import HistoryError

EXIT_SOUND, EXIT_FINDINGS, EXIT_NOT_CHECKED = 0, 1, 2
SHOWN = 40


def main(arguments: Sequence[str]) -> int:
    """Run the chosen scenarios one after the other; return 1 if anything is wrong, 2 if there was no verdict."""
    chosen = parse(arguments)
    codes = [_run_in_folder(scenario, chosen) for scenario in chosen.scenario or list(SCENARIOS)]
    if chosen.results == RESULTS and PAGE.exists():
        write_page()
    return max(codes)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(prog="python -m compat_tests.chaos", description=__doc__)
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, help="may be given many times (all of them)")
    parser.add_argument("--seconds", type=float, default=60.0, help="length of a scenario (60)")
    parser.add_argument("--broker", choices=sorted(CLUSTERS), default="kafkacompat", help="the brokers (kafkacompat)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="decides the plan of faults (the time)")
    parser.add_argument("--loopback", action="store_true", help="use no namespaces: kills, pauses and restarts only")
    parser.add_argument("--results", type=Path, default=RESULTS, help=f"file for the figures ({RESULTS.name} in docs)")
    parser.add_argument("--keep", action="store_true", help="keep the files of a run in which nothing was wrong, too")
    return parser.parse_args(arguments)


def _run_in_folder(scenario: str, chosen: argparse.Namespace) -> int:
    """Run a scenario in a process of its own where that is possible; keep its folder if anything is wrong."""
    print(f"{scenario} on {chosen.broker}: --seed {chosen.seed} --seconds {chosen.seconds:g}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="kafkacompat-chaos-"))
    try:
        code = _run(ChaosOrders(scenario, chosen.broker, chosen.seed, chosen.seconds, folder, not chosen.loopback))
        if (folder / FIGURES).exists():
            add_run(chosen.results, ChaosFigures(**json.loads((folder / FIGURES).read_text())))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    if code == EXIT_SOUND and not chosen.keep:
        shutil.rmtree(folder)
    else:
        print(f"Kept the files of brokers and clients in {folder}", flush=True)
    return code


FIGURES = "figures.json"


def _run(orders: ChaosOrders) -> int:
    if orders.is_isolated:
        try:
            return run_isolated(lambda: _run_here(orders))
        except OSError as problem:
            print(f"Namespaces are not permitted here ({problem.strerror}): only loopback", flush=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return _run_here(orders._replace(is_isolated=False))


def _run_here(orders: ChaosOrders) -> int:
    try:
        figures, findings = run_scenario(orders)
    except (RunError, HistoryError, OSError, AssertionError) as problem:
        print(f"No verdict: {problem}", flush=True)
        return EXIT_NOT_CHECKED
    except KeyboardInterrupt:
        print("No verdict: interrupted", flush=True)
        return EXIT_NOT_CHECKED
    (orders.folder / FIGURES).write_text(json.dumps(figures.to_json()))
    for sentence in [*figures.problems, *findings[:SHOWN]]:
        print(sentence, flush=True)
    gaps = ", ".join(f"{clients} {seconds:g} s" for clients, seconds in figures.longest_gaps_s.items())
    print(
        f"{figures.operations:,} operations, {figures.indeterminate:,} indeterminate, {sum(figures.faults.values())} faults, "
        f"{sum(figures.findings.values())} findings, longest gaps: {gaps}",
        flush=True,
    )
    return EXIT_FINDINGS if figures.findings or figures.problems else EXIT_SOUND


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

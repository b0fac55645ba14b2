"""`python -m tests.simulation`: simulates clusters, one for each seed."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from tests.simulation.drawing import draw_plan
from tests.simulation.page import record_figures
from tests.simulation.plan import Plan, PlanError
from tests.simulation.planted import PLANTS
from tests.simulation.report import print_outcome, print_tally
from tests.simulation.run import run_plan
from tests.simulation.runs import run_seeds
from tests.simulation.shortening import shorten

FIRST_SEED = 1


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, metavar="N", help="number of seeds (100)")
    parser.add_argument("--from", type=int, default=FIRST_SEED, dest="first", metavar="K", help="first seed (1)")
    parser.add_argument("--seed", type=int, metavar="N", help="run this seed only")
    parser.add_argument("--plan", type=Path, metavar="FILE", help="run the plan in a file")
    parser.add_argument(
        "--shorter", action="store_true", help="leave out what the failure of --seed or --plan does not need"
    )
    parser.add_argument("--plant", choices=PLANTS, metavar="BUG", help=f"plant a bug: {', '.join(PLANTS)}")
    parser.add_argument(
        "--load", type=float, default=1.0, metavar="SHARE", help="share of the usual 20 to 40 s of load and faults (1)"
    )
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="seeds that run at the same time (2)")
    parser.add_argument(
        "--show", action="store_true", help="show the plan of --seed or --plan, and the brokers' log lines"
    )
    parser.add_argument(
        "--record", action="store_true", help="write the figures into docs/simulation.json and docs/RELIABILITY.md"
    )
    parser.add_argument("--until-found", action="store_true", help="end at the first seed that fails")
    return parser.parse_args()


def main() -> int:
    """Run the command; returns its exit code: 0 if nothing was found, 1 if something was, 2 for a plan that cannot be run."""
    arguments = _parse()
    logging.disable(logging.NOTSET if arguments.show else logging.CRITICAL)
    if arguments.show:
        logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
    try:
        plan = _find_plan(arguments)
    except PlanError as problem:
        print(problem, file=sys.stderr)
        return 2
    if plan is None:
        seeds = range(arguments.first, arguments.first + arguments.seeds)
        tally = run_seeds(
            seeds, arguments.plant, arguments.processes, arguments.load, until_found=arguments.until_found
        )
        print_tally(tally, _describe_options(arguments))
        if arguments.record:
            record_figures(tally, seeds, arguments.plant)
        if arguments.plant is not None:
            outcome = f"found by seed {tally.failed[0].seed}" if tally.failed else "not found"
            print(f"{arguments.plant}, {PLANTS[arguments.plant].description}: {outcome}")
        return 1 if tally.failed else 0
    return _run_one(plan, arguments)


def _describe_options(arguments: argparse.Namespace) -> str:
    """Return the options that a repetition needs besides the seed."""
    load = "" if arguments.load == 1 else f" --load {arguments.load:g}"
    return load + ("" if arguments.plant is None else f" --plant {arguments.plant}")


def _find_plan(arguments: argparse.Namespace) -> Plan | None:
    if arguments.plan is not None:
        return Plan.read(arguments.plan)
    return None if arguments.seed is None else draw_plan(arguments.seed, arguments.load)


def _run_one(plan: Plan, arguments: argparse.Namespace) -> int:
    if arguments.show:
        print(plan.settings, *plan.actions, sep="\n")
    outcome = run_plan(plan, arguments.plant)
    print_outcome(outcome, _describe_options(arguments))
    if not outcome.findings:
        return 0
    if arguments.shorter:
        logging.disable(logging.CRITICAL)
        short = shorten(plan, lambda shorter: bool(run_plan(shorter, arguments.plant).findings))
        path = Path(f"simulation-{plan.seed}.json")
        short.write(path)
        print(f"{len(short.actions)} of {len(plan.actions)} actions are needed:", *short.actions, sep="\n  ")
        print(f"Repeat it: python -m tests.simulation --plan {path}")
    return 1


if __name__ == "__main__":
    sys.exit(main())

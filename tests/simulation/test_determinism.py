"""The same seed is the same run, whatever the hashes of texts are."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.simulation.support import LOAD_SHARE, run_quietly

SEED = 3


def test_a_seed_has_one_trace() -> None:
    # The hashes of this process are random, or those of another seed.
    hash_seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    assert _trace_in_process(hash_seed) == run_quietly(SEED).trace


def _trace_in_process(hash_seed: str) -> int:
    command = [sys.executable, "-m", "tests.simulation", "--seed", str(SEED), "--load", str(LOAD_SHARE)]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    return int(shown.splitlines()[0].rpartition(" ")[2], 16)

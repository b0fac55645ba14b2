"""An attack of some thousand requests; `tests.handlers.tenants.attacks` makes longer ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.handlers.tenants.attacks import Attack

REQUESTS = 1500


@pytest.mark.parametrize("seed", [1, 2])
def test_a_client_of_another_instance_reaches_and_notices_nothing(tmp_path: Path, seed: int) -> None:
    attack = Attack(tmp_path, seed)
    attack.run(REQUESTS)
    assert attack.findings == []
    assert attack.requests == REQUESTS
    attack.stop()

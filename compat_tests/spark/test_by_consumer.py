"""`useDeprecatedOffsetFetching`: the driver asks a consumer for offsets instead of an admin client.

The records must be the same, so tests of other files are repeated here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from compat_tests.spark import test_by_time, test_data_loss, test_limits, test_ranges, test_transactions
from compat_tests.spark.scene import Scene

pytestmark = pytest.mark.spark


def over_transactions(scenario: Callable[[Scene, test_transactions.Transactions], None], scene: Scene) -> None:
    scene.create(2)
    scenario(scene, test_transactions.Transactions(scene))


SCENARIOS: dict[str, Callable[[Scene], None]] = {
    "offsets": test_ranges.test_offsets_of_each_partition,
    "assign": test_ranges.test_assign,
    "subscribe": partial(test_ranges.test_several_topics, way="subscribe"),
    "subscribePattern": partial(test_ranges.test_several_topics, way="subscribePattern"),
    "empty": test_ranges.test_empty_topics_and_partitions,
    "time-for-all": test_by_time.test_one_time_for_all_partitions,
    "time-for-each": test_by_time.test_a_time_for_each_partition,
    "stream-by-time": test_by_time.test_a_stream_begins_at_a_time,
    "maxOffsetsPerTrigger": partial(test_limits.test_max_offsets_per_trigger_limits_a_batch, trigger="availableNow"),
    "once": test_limits.test_once_takes_all_at_once,
    "truncated": partial(test_data_loss.test_a_stream_resumes, kind="truncated", fail=True),
    "truncated-goes-on": partial(test_data_loss.test_a_stream_resumes, kind="truncated", fail=False),
    "recreated": partial(test_data_loss.test_a_stream_resumes, kind="recreated-shorter", fail=True),
    "recreated-goes-on": partial(test_data_loss.test_a_stream_resumes, kind="recreated-shorter", fail=False),
    "isolation": partial(over_transactions, test_transactions.test_the_committed_alone_or_all),
    "open-transaction": partial(over_transactions, test_transactions.test_an_open_transaction_ends_the_stable_offsets),
    "past-the-aborted": partial(over_transactions, test_transactions.test_a_stream_passes_aborted_records),
}


@pytest.mark.parametrize("scenario", list(SCENARIOS))
def test_by_the_drivers_consumer(scene: Scene, scenario: str) -> None:
    SCENARIOS[scenario](scene.with_conf(spark__sql__streaming__kafka__useDeprecatedOffsetFetching="true"))

"""One request's charges, and the throttle time of its client."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkacompat.metadata.client_entities import ClientConfig, make_entity
from kafkacompat.quotas.client_quotas import ClientQuotas
from kafkacompat.quotas.limits import QuotaKind
from kafkacompat.quotas.rates import QuotaWindows
from kafkacompat.quotas.request_meter import RequestMeter, begin_request
from kafkacompat.wire.errors import ErrorCode, KafkaError

PRODUCE, FETCH, METADATA, HEARTBEAT, CREATE_TOPICS, ENVELOPE = 0, 1, 3, 12, 19, 58
START_S = 1_700_000_000.0


class Client:
    """A client with quotas, and its requests."""

    def __init__(self, **quotas: float) -> None:
        self.now = START_S
        self.quotas = ClientQuotas(QuotaWindows(11, 1000), QuotaWindows(11, 1000))
        self.quotas.update({make_entity([("client-id", "c")]): ClientConfig(quotas)})

    def begin(self, api_key: int, version: int = 7) -> RequestMeter:
        meter = begin_request(self.quotas, api_key, version, "u", "c", self.now)
        assert meter is not None
        return meter

    def finish(self, meter: RequestMeter, size_bytes: int = 0, has_response: bool = True) -> int:
        return meter.finish(size_bytes, has_response, self.now)

    def produce(self, size_bytes: int, has_response: bool = True) -> int:
        return self.finish(self.begin(PRODUCE), size_bytes, has_response)

    def fetch(self, size_bytes: int) -> tuple[bool, int]:
        """Whether the response is withheld, and the throttle time."""
        meter = self.begin(FETCH)
        withheld = meter.charge_fetch(size_bytes, self.now)
        return withheld, self.finish(meter)


def test_other_clients_and_brokers_are_not_metered() -> None:
    client = Client(producer_byte_rate=1)
    assert begin_request(client.quotas, PRODUCE, 7, "u", "other", START_S) is None
    assert begin_request(client.quotas, ENVELOPE, 0, "u", "c", START_S) is None


def test_produced_bytes_are_throttled_and_counted_in_the_figures() -> None:
    client = Client(producer_byte_rate=1000)
    assert client.produce(10_000) == 0
    assert client.produce(5000) == 5000
    assert client.produce(0, has_response=False) == 5000
    figures = client.quotas.throttled[QuotaKind.PRODUCE].total
    assert (figures.count, figures.total_ms) == (2, 10_000)


def test_bytes_of_other_requests_do_not_count() -> None:
    client = Client(producer_byte_rate=1000)
    assert client.finish(client.begin(HEARTBEAT), 1_000_000) == 0
    assert client.produce(10_000) == 0


def test_a_fetch_beyond_the_quota_is_withheld_and_does_not_count() -> None:
    client = Client(consumer_byte_rate=1000)
    assert client.fetch(8000) == (False, 0)
    assert client.fetch(4000) == (True, 2000)
    assert client.fetch(4000) == (True, 2000)
    client.now += 2
    assert client.fetch(4000) == (True, 2000)  # the window of the first bytes is as long as before
    client.now += 9
    assert client.fetch(4000) == (False, 0)


def test_a_batch_larger_than_the_quota_is_sent_when_nothing_else_counts() -> None:
    client = Client(consumer_byte_rate=1000)
    assert client.fetch(1_000_000) == (False, 0)
    assert client.fetch(1000) == (True, 991_000)
    client.now += 991
    assert client.fetch(1_000_000) == (False, 0)


@pytest.mark.parametrize(("limit", "most"), [(1000, 10_000), (10**12, 2**31 - 1)])
def test_a_fetch_is_limited_to_what_is_not_throttled_for_sure(limit: float, most: int) -> None:
    assert Client(consumer_byte_rate=limit).begin(FETCH).max_fetch_bytes == most
    assert Client(producer_byte_rate=limit).begin(FETCH).max_fetch_bytes is None


def test_a_followers_fetch_is_exempt() -> None:
    client = Client(consumer_byte_rate=1, request_percentage=0.001)
    for _ in range(2):
        meter = client.begin(FETCH)
        meter.exempt()
        client.now += 1
        assert client.finish(meter) == 0
        meter.charge_rest(client.now)


def work(client: Client, seconds: float, api_key: int = HEARTBEAT, has_response: bool = True) -> int:
    meter = client.begin(api_key)
    client.now += seconds
    throttle_ms = client.finish(meter, has_response=has_response)
    meter.charge_rest(client.now)
    return throttle_ms


def test_request_time_is_a_percentage_of_the_thread() -> None:
    client = Client(request_percentage=10)
    assert work(client, 0.5) == 0  # 5 % of the last 10 s
    assert work(client, 0.5) == 0
    assert work(client, 0.1) == 400  # 1.1 s in 10.6 s, that is 10.38 %
    assert work(client, 5) == 1000  # bounded by a window
    assert client.quotas.throttled[QuotaKind.REQUEST].total.count == 2


def test_time_in_which_a_response_waits_does_not_count() -> None:
    client = Client(request_percentage=10)
    for _ in range(10):
        meter = client.begin(HEARTBEAT)
        meter.pause(client.now)
        client.now += 5
        meter.resume(client.now)
        assert client.finish(meter) == 0


def test_the_time_of_encoding_throttles_the_next_request() -> None:
    client = Client(request_percentage=1)
    meter = client.begin(HEARTBEAT)
    assert client.finish(meter) == 0
    client.now += 0.2
    meter.charge_rest(client.now)
    assert work(client, 0) == 1000


def test_the_time_of_a_request_without_a_response_throttles_the_next_one() -> None:
    client = Client(request_percentage=1)
    assert work(client, 0.2, PRODUCE, has_response=False) == 0
    assert work(client, 0) == 1000


def test_a_fetch_is_withheld_for_its_request_time_too() -> None:
    client = Client(request_percentage=1, consumer_byte_rate=1000)
    meter = client.begin(FETCH)
    client.now += 0.2
    assert meter.charge_fetch(9000, client.now)
    assert client.finish(meter) == 1000
    client.now += 12
    assert client.fetch(9000) == (False, 0)


def test_the_longest_throttle_time_counts() -> None:
    client = Client(request_percentage=1, producer_byte_rate=1000)
    meter = client.begin(PRODUCE)
    client.now += 0.2
    assert client.finish(meter, 14_000) == 4000
    counts = {kind: clients.total.count for kind, clients in client.quotas.throttled.items()}
    assert {kind: count for kind, count in counts.items() if count} == {QuotaKind.PRODUCE: 1}


def admit(client: Client, meter: RequestMeter) -> Callable[[str, int], None]:
    return lambda topic, partitions: meter.admit_mutation(topic, partitions, client.now)


def test_a_mutation_after_the_end_of_the_quota_is_rejected() -> None:
    client = Client(controller_mutation_rate=2)
    meter = client.begin(CREATE_TOPICS, 6)
    admit(client, meter)("a", 22)
    admit(client, meter)("b", 3)  # the last one may overdraw
    with pytest.raises(KafkaError) as caught:
        admit(client, meter)("c", 1)
    assert caught.value.code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    client.now += 0.25
    assert client.finish(meter) == 1250
    client.now += 1.25
    meter = client.begin(CREATE_TOPICS, 6)
    admit(client, meter)("c", 1)
    assert client.finish(meter) == 0


def test_a_mutation_that_is_planned_again_counts_once() -> None:
    client = Client(controller_mutation_rate=1)
    meter = client.begin(CREATE_TOPICS, 7)
    for _ in range(5):
        admit(client, meter)("a", 11)
    assert client.finish(meter) == 0


def test_older_versions_are_throttled_and_not_rejected() -> None:
    client = Client(controller_mutation_rate=1)
    meter = client.begin(CREATE_TOPICS, 5)
    admit(client, meter)("a", 21)
    admit(client, meter)("b", 10)
    assert client.finish(meter) == 20_000
    assert client.quotas.throttled[QuotaKind.MUTATION].total.total_ms == 20_000


def test_metadata_creates_no_topics_beyond_the_quota_and_is_not_throttled() -> None:
    client = Client(controller_mutation_rate=1)
    meter = client.begin(METADATA)
    admit(client, meter)("a", 12)
    with pytest.raises(KafkaError):
        admit(client, meter)("b", 1)
    assert client.finish(meter) == 0

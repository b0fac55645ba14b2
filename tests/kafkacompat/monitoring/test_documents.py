"""docs/METRICS.md and the dashboard say what the table says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from compat_tests.metrics_page import PAGE, write_tables
from kafkacompat.config import PROPERTIES
from kafkacompat.monitoring import table
from kafkacompat.monitoring.table import ROWS

DASHBOARD = Path(table.__file__).parent / "dashboard.json"
NAME = re.compile(r"\b(?:kafka|kafkacompat|process|python)_[a-z0-9_]+\b")
PARTS = {
    "counter": ("_total",),
    "gauge": ("",),
    "summary": ("", "_count", "_sum"),
    "histogram": ("_bucket", "_count", "_sum"),
}
SAMPLES = {row.name + part: row for row in ROWS.values() for part in PARTS[row.kind]}
SELECTOR = re.compile(r"([a-z_0-9]+)\{([^}]*)\}")
LABEL = re.compile(r"([a-zA-Z]+)\s*(?:=~|!=|!~|=)")
ADDED_BY_PROMETHEUS = {"instance", "job"}
NAMES_OF_DASHBOARDS = """
kafka_controller_controllerstats_uncleanleaderelections_total
kafka_controller_kafkacontroller_activecontrollercount kafka_controller_kafkacontroller_offlinepartitionscount
kafka_cluster_partition_atminisr kafka_cluster_partition_underminisr kafka_log_log_size
kafka_log_log_logstartoffset kafka_log_log_logendoffset kafka_network_requestmetrics_requests_total
kafka_network_requestmetrics_totaltimems kafka_network_socketserver_networkprocessoravgidle_percent
kafka_server_brokertopicmetrics_bytesin_total kafka_server_brokertopicmetrics_bytesout_total
kafka_server_brokertopicmetrics_failedfetchrequests_total
kafka_server_brokertopicmetrics_failedproducerequests_total kafka_server_brokertopicmetrics_messagesin_total
kafka_server_brokertopicmetrics_totalfetchrequests_total
kafka_server_brokertopicmetrics_totalproducerequests_total
kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent
kafka_server_replicamanager_isrexpands_total kafka_server_replicamanager_isrshrinks_total
kafka_server_replicamanager_leadercount kafka_server_replicamanager_partitioncount
kafka_server_replicamanager_underreplicatedpartitions kafka_server_socket_server_metrics_connection_count
kafka_consumergroup_current_offset kafka_consumergroup_lag kafka_consumergroup_members process_open_fds
"""


def load_panels() -> list[dict[str, Any]]:
    panels: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return panels


def list_expressions() -> list[str]:
    return [target["expr"] for panel in load_panels() for target in panel.get("targets", ())]


def test_the_page_has_the_table() -> None:
    """If this fails, run `python -m compat_tests.metrics_page`."""
    page = PAGE.read_text()
    assert write_tables(page) == page


def test_the_page_names_only_existing_metrics_and_properties() -> None:
    head = PAGE.read_text().partition("## All metrics")[0]
    names = {name for name in NAME.findall(head) if not name.endswith("_")}
    unknown = {name for name in names if name not in SAMPLES and not name.startswith("kafkacompat_client_")}
    assert unknown == {"kafkacompat_request_duration_seconds"}, "a histogram is named without a suffix"
    properties = set(re.findall(r"`(kafkacompat\.[a-z.]+|telemetry\.[a-z.]+)", head))
    assert {name.partition("=")[0] for name in properties} <= set(PROPERTIES)


def test_the_dashboard_shows_only_existing_metrics() -> None:
    expressions = list_expressions()
    assert len(expressions) > 50
    names = {name for expression in expressions for name in NAME.findall(expression)}
    assert names - set(SAMPLES) == set()
    assert len(names) > 50


def test_the_dashboard_selects_by_labels_that_the_metrics_have() -> None:
    for expression in list_expressions():
        for name, selector in SELECTOR.findall(expression):
            labels = set(LABEL.findall(selector)) - ADDED_BY_PROMETHEUS
            assert labels <= set(SAMPLES[name].labels), expression
        shown = set(re.findall(r"by \(([^)]*)\)", expression))
        known = {label for name in NAME.findall(expression) for label in SAMPLES[name].labels}
        for labels_by in shown:
            assert set(re.split(r",\s*", labels_by)) <= known | ADDED_BY_PROMETHEUS, expression


def test_the_panels_have_places_and_ids_of_their_own() -> None:
    panels = load_panels()
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells


def test_names_are_those_of_kafkas_rules() -> None:
    """Dashboards for Kafka, made with the rules of the JMX exporter and of Strimzi, use these names."""
    assert set(NAMES_OF_DASHBOARDS.split()) <= set(SAMPLES)

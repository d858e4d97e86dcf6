"""The table of metrics, its documentation and the alert rules agree; histograms and process metrics are correct."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.errors import ErrorCode
from signet_actors.gateway.status.metrics import METRICS
from signet_actors.gateway.status.request_metrics import OTHER_METHOD, UNROUTED, RequestMetrics
from signet_actors.runtime.histogram import BOUNDS_S, Histogram
from signet_actors.runtime.messaging.envelope import COUNTER_NAMES, new_counters
from signet_actors.runtime.processes.process_metrics import process_metrics

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"\| `(signet_\w+)` \| (\w+) \| ([^|]*) \| (\w*) ?\| (.+) \|")


def documented() -> list[tuple[str, str, tuple[str, ...], str, str]]:
    """Name, type, labels, unit and meaning of each row of the reference tables."""
    rows = ROW.findall((ROOT / "docs" / "metrics.md").read_text())
    return [(name, kind, tuple(re.findall(r"`(\w+)`", labels)), unit, told) for name, kind, labels, unit, told in rows]


def alerts() -> list[dict[str, Any]]:
    rules = yaml.safe_load((ROOT / "ops" / "alerts.yml").read_text())
    return [rule for group in rules["groups"] for rule in group["rules"]]


def test_the_reference_table_and_the_collector_agree() -> None:
    assert [row[:3] + row[4:] for row in documented()] == [
        (metric.name, metric.kind, metric.labels, metric.meaning) for metric in METRICS
    ]


def test_a_metric_of_bytes_or_seconds_has_its_unit_in_its_name() -> None:
    for name, _, _, unit, _ in documented():
        stem = name.removesuffix("_total")
        assert unit == next((word for word in ("seconds", "bytes") if stem.endswith(f"_{word}")), "")


def test_no_metric_is_described_twice() -> None:
    names = [metric.name for metric in METRICS]
    assert len(names) == len(set(names))


def test_every_way_to_lose_a_message_has_a_metric() -> None:
    from signet_actors.gateway.status.metrics import HEARTBEAT

    assert set(COUNTER_NAMES) | set(process_metrics()) <= set(HEARTBEAT)
    assert set(new_counters()) == set(COUNTER_NAMES)


def test_alert_rules_use_only_existing_metrics_and_labels() -> None:
    known = {metric.name: metric for metric in METRICS}
    for rule in alerts():
        for name, matcher in re.findall(r"\b(signet_\w+)(?:\{(\w+)=)?", rule["expr"]):
            assert name in known, f"{rule['alert']} asks for {name}"
            assert not matcher or matcher in known[name].labels
        for label in re.findall(r"\$labels\.(\w+)", str(rule["annotations"])):
            assert label in known[re.findall(r"signet_\w+", rule["expr"])[0]].labels


def test_every_alert_has_a_meaning_and_a_remedy() -> None:
    assert len({rule["alert"] for rule in alerts()}) == len(alerts())
    for rule in alerts():
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["action"]
        assert rule["labels"]["severity"] in {"warning", "critical"}


def test_every_alert_has_a_section_in_the_runbook_and_every_such_section_an_alert() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "docs" / "runbook.md").read_text(), re.MULTILINE)
    explained = [name for heading in headings for name in heading.split(", ") if name.startswith("Signet")]
    assert explained == [rule["alert"] for rule in alerts()]


@given(st.lists(st.integers(0, 20_000_000_000), max_size=50))
def test_a_histogram_counts_each_duration_once_below_its_bound(durations_ns: list[int]) -> None:
    histogram = Histogram()
    for duration in durations_ns:
        histogram.observe(duration)
    assert sum(histogram.counts) == len(durations_ns)
    assert histogram.sum_ns == sum(durations_ns)
    for number, bound in enumerate(BOUNDS_S):
        within = sum(duration <= int(bound * 1e9) for duration in durations_ns)
        assert sum(histogram.counts[: number + 1]) == within


@pytest.mark.parametrize("bound", BOUNDS_S)
def test_a_duration_equal_to_a_bound_is_within_it(bound: float) -> None:
    histogram = Histogram()
    histogram.observe(int(bound * 1e9))
    assert histogram.counts[BOUNDS_S.index(bound)] == 1


def test_requests_without_a_route_and_unknown_methods_share_one_label_each() -> None:
    figures = RequestMetrics()
    for method in ("GET", "PROPFIND", "SEARCH"):
        figures.observe(None, method, 404, 1, ErrorCode.NOT_FOUND)
    assert {labels: count for labels, (count, _) in figures.responses.items()} == {
        (UNROUTED, "GET", 4): 1,
        (UNROUTED, OTHER_METHOD, 4): 2,
    }
    assert list(figures.durations) == [UNROUTED]
    assert figures.errors == {ErrorCode.NOT_FOUND: 3}


def test_a_process_measures_its_resources() -> None:
    figures = process_metrics()
    assert figures["cpu_seconds"] > 0
    assert figures["rss_peak_bytes"] > 1_000_000
    assert figures.get("rss_bytes", 1_000_001) > 1_000_000

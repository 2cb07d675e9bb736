"""Dashboard and alert rules: well formed, about metrics that exist, each with its place in the runbook."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import promql_parser
import pytest
import yaml

from tests.unit.test_docs import OPERATIONS, ROOT, headings

FOLDER = ROOT / "docs/monitoring"
DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text("utf-8"))
RULES = yaml.safe_load((FOLDER / "alerts.yml").read_text("utf-8"))["groups"][0]["rules"]
EXPRESSIONS = [rule["expr"] for rule in RULES] + [
    target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]
]


def documented() -> dict[str, tuple[str, list[str]]]:
    """Metric → (type, labels), as the page says."""
    rows = re.findall(
        r"^\| `(export_\w+)` \| (\w+) \| ([^|]*)\|", (FOLDER / "README.md").read_text("utf-8"), re.MULTILINE
    )
    return {name: (kind, re.findall(r"`(\w+)`", labels)) for name, kind, labels in rows}


def selectors(node: Any) -> Iterator[Any]:
    """The vector selectors below an expression."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node
    inner = ("vector_selector", "expr", "lhs", "rhs", "args")
    for part in (getattr(node, name, None) for name in inner):
        for one in part if isinstance(part, list) else [part] if part is not None else []:
            yield from selectors(one)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_expression_parses_and_asks_for_metrics_that_exist(expression: str) -> None:
    known = documented()
    found = list(selectors(promql_parser.parse(expression)))
    assert found
    for selector in found:
        name = re.sub(r"_bucket$", "", selector.name)
        labels = {matcher.name for matcher in selector.matchers.matchers} - {"__name__"}
        assert name == "up" or labels <= set(known[name][1]), expression
        assert name == "up" or (selector.name != name) == (known[name][0] == "histogram"), expression


def sums(node: Any) -> Iterator[Any]:
    """What the sums of an expression add up."""
    if isinstance(node, promql_parser.AggregateExpr) and str(node.op) == "sum":
        yield node.expr
    for part in (getattr(node, name, None) for name in ("expr", "lhs", "rhs", "args")):
        for one in part if isinstance(part, list) else [part] if part is not None else []:
            yield from sums(one)


def sums_processes(expression: str) -> bool:
    """Whether it adds up what each web process shows alike."""
    summed = sums(promql_parser.parse(expression))
    return not all(isinstance(found, promql_parser.AggregateExpr) and str(found.op) == "max" for found in summed)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_no_expression_adds_up_what_every_web_process_shows_alike(expression: str) -> None:
    assert not sums_processes(expression)
    assert sums_processes("sum(increase(export_task_total[5m])) > 5")
    assert not sums_processes("sum(max by (state) (increase(export_task_total[5m]))) > 5")


def test_every_metric_is_on_the_dashboard() -> None:
    shown = " ".join(target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"])
    assert [name for name in documented() if name not in shown] == []


def test_the_dashboard_is_one_that_grafana_takes() -> None:
    assert DASHBOARD["schemaVersion"] >= 36 and DASHBOARD["uid"] == "order-exports"
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken and at["x"] + at["w"] <= 24, panel["title"]
        assert panel["datasource"]["uid"] == "${source}"
        taken |= cells


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_an_alert_says_what_is_wrong_and_leads_to_its_place_in_the_runbook(rule: Any) -> None:
    assert rule["labels"]["severity"] in ("page", "ticket")
    assert rule["annotations"]["summary"]
    page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    assert page.endswith("/docs/operations.md")
    assert anchor in headings(ROOT / "docs/operations.md")
    assert f"`{rule['alert']}`" in OPERATIONS


def test_the_rules_pass_promtool() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool (Debian: prometheus) is not here; a parser has looked at every expression")
    ran = subprocess.run(
        [promtool, "check", "rules", FOLDER / "alerts.yml"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr

"""From records to tables: the arithmetic, what is marked, and how it is written."""

from __future__ import annotations

import re
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpinn.study import Plan, Source, parse_plan
from unpinn.study._render import escape, latex, markdown, number
from unpinn.study._tables import Sheet, sheets_of

PLAN = """
title = "Mine"
[[table]]
name = "errors"
title = "Errors of {a}_100 % & more"
problems = ["poisson", "heat"]
methods = ["pinn", "ppinn", "oracle"]
seeds = [42, 43, 44]
quantities = ["l2re", "detection_auc"]
printed = { l2re = "L2RE" }
[[note]]
text = "this is a remark"
problems = ["poisson"]
methods = ["P-PINN"]
quantities = ["l2re"]
"""
COLUMNS = {"pinn": "PINN", "ppinn": "P-PINN", "oracle": "oracle"}


def plan(text: str = PLAN) -> Plan:
    return parse_plan(Source("mine.toml", text))


def record(problem: str, method: str, seed: int, **changes: Any) -> dict[str, Any]:
    return {
        "study": "mine", "table": "errors", "problem": problem, "column": COLUMNS[method],
        "variant": "", "method": method, "seed": seed, "address": f"{problem}-{method}-{seed}",
        "status": "finished", "l2re": 0.5, "detection_auc": None, **changes,
    }  # fmt: skip


def errors(**values: list[float]) -> list[dict[str, Any]]:
    """Records of poisson, with these errors of each method, seed by seed."""
    return [
        record("poisson", method, 42 + k, l2re=value)
        for method, row in values.items()
        for k, value in enumerate(row)
    ]


def sheet(records: list[dict[str, Any]], quantity: str = "l2re") -> Sheet:
    (found,) = [s for s in sheets_of(plan(), plan().tables[0], records) if s.quantity == quantity]
    return found


def cell(records: list[dict[str, Any]], method: str, quantity: str = "l2re"):
    found = sheet(records, quantity)
    column = [c.label for c in found.columns].index(COLUMNS[method])
    return found.values[[p.label for p in found.problems].index("poisson")][column]


finite = st.floats(1e-6, 1e6)


@given(values=st.lists(finite, min_size=1, max_size=3))
def test_a_cell_is_the_mean_and_the_deviation_over_seeds(values):
    value = cell(errors(pinn=values), "pinn")
    assert value.mean == pytest.approx(statistics.fmean(values))
    if len(values) == 1:
        assert value.deviation is None
    else:
        assert value.deviation == pytest.approx(statistics.stdev(values), abs=1e-9)
    assert value.printed == (0.259, 0.0134)
    assert value.ratio == pytest.approx(value.mean / 0.259)
    assert value.remark == ("" if len(values) == 3 else f"{len(values)} of 3 seeds")


def test_the_best_is_marked_but_never_one_that_was_told_the_truth_or_diverged():
    records = errors(pinn=[0.3], ppinn=[0.2], oracle=[0.1])
    assert [cell(records, m).best for m in COLUMNS] == [False, True, False]
    assert [cell(records, m).limit for m in COLUMNS] == [False, False, True]
    records[1]["status"] = "diverged"
    # One that is left competes with nobody.
    assert not any(cell(records, m).best for m in COLUMNS)
    assert cell(records, "ppinn").remark == "1 of 1 diverged, 1 of 3 seeds"


def test_more_is_better_where_bad_readings_are_told_apart():
    records = [
        record("poisson", method, 42, detection_auc=value)
        for method, value in (("pinn", 0.7), ("ppinn", 0.9))
    ]
    assert cell(records, "ppinn", "detection_auc").best
    assert not cell(records, "pinn", "detection_auc").best


def test_failures_and_missing_runs_are_told_and_not_averaged():
    records = errors(pinn=[0.2, 0.4, 9.0])
    records[2] |= {"status": "failed", "l2re": None}
    value = cell(records, "pinn")
    assert (value.mean, value.failed, value.remark) == (pytest.approx(0.3), 1, "1 failed")
    records[1] |= {"status": "missing", "l2re": None}
    assert cell(records, "pinn").remark == "1 failed, 1 of 3 seeds"
    assert "failed" in markdown(sheet([records[2]]))


def test_numbers_that_are_not_finite_are_in_no_mean():
    assert cell(errors(pinn=[0.2, float("nan"), float("inf")]), "pinn").mean == 0.2


def test_rows_and_columns_without_such_a_number_are_left_out_once_their_runs_have_ended():
    records = errors(pinn=[0.2], ppinn=[0.3])
    records += [record("heat", "pinn", 42, l2re=None), record("poisson", "oracle", 42, l2re=None)]
    found = sheet(records)
    assert [p.label for p in found.problems] == ["poisson"]
    assert [c.label for c in found.columns] == ["PINN", "P-PINN"]
    # What has not ended yet keeps its place.
    records[-1]["status"] = "missing"
    assert [c.label for c in sheet(records).columns] == ["PINN", "P-PINN", "oracle"]
    assert sheet([record("heat", "pinn", 42, l2re=None)]).empty


def test_notes_stand_where_they_belong_and_are_written_once():
    found = sheet(errors(pinn=[0.2], ppinn=[0.3]))
    assert found.notes == ("this is a remark",)
    assert [v.notes for v in found.values[0]] == [(), (1,), ()]
    assert "1. this is a remark." in markdown(found)
    assert "$^{1}$ this is a remark" in latex(found)


def test_variants_that_change_nothing_for_a_method_are_one_column():
    text = PLAN.replace(
        "quantities", 'variants = [{ label = "a" }, { label = "b", unlearning = { share = 0.2 } }]'
        "\nquantities", 1,
    )  # fmt: skip
    records = [
        record("poisson", "pinn", 42, variant="a"), record("poisson", "pinn", 42, variant="b"),
        record("poisson", "ppinn", 42, variant="a", address="x"),
        record("poisson", "ppinn", 42, variant="b", address="y", l2re=0.1),
    ]  # fmt: skip
    first = sheets_of(plan(text), plan(text).tables[0], records)[0]
    assert [c.label for c in first.columns][:3] == ["PINN", "P-PINN, a", "P-PINN, b"]
    assert [v.mean for v in first.values[0]][:3] == [0.5, 0.5, 0.1]
    assert first.values[0][0].asked == 3


# -- written -------------------------------------------------------------------------------


def test_markdown_has_every_cell_with_the_papers_number_beside_it():
    text = markdown(sheet(errors(pinn=[0.2, 0.3], ppinn=[0.1, 0.1], oracle=[0.05])))
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in rows}) == 1
    assert "| problem | PINN | P-PINN | oracle |" in text
    assert "0.250 ± 0.071<br>2 of 3 seeds<br>paper 0.259 ± 0.013 (×0.97)" in text
    assert "**0.100 ± 0**" in text and "*0.0500*" in text


def test_latex_is_balanced_and_escapes_what_it_would_take_for_commands():
    text = latex(sheet(errors(pinn=[0.2, 0.3], ppinn=[0.1, 0.1], oracle=[0.05])))
    bare = re.sub(r"\\[{}]", "", text)
    assert bare.count("{") == bare.count("}")
    assert re.findall(r"\\begin\{(\w+)\}", text) == re.findall(r"\\end\{(\w+)\}", text)[::-1]
    assert r"\caption{Errors of \{a\}\_100 \% \& more: relative L$^2$ error}" in text
    body = text[text.index(r"\toprule") : text.index(r"\bottomrule")]
    rows = [line for line in body.splitlines() if line.endswith(r"\\")]
    assert {len(re.findall(r"(?<!\\)&", line)) for line in rows} == {3}
    assert r"\textbf{0.100 $\pm$ 0}" in text and r"\emph{0.0500}" in text
    assert r"\quad\emph{paper} & 0.259 $\pm$ 0.013 ($\times$0.97)" in text


@given(st.text())
def test_no_text_leaves_a_bare_command_character_in_latex(text):
    written = escape(text)
    for known in ("textbackslash{}", "textasciitilde{}", "textasciicircum{}"):
        written = written.replace(f"\\{known}", "")
    written = written.replace("$^2$", "").replace("$^1$", "")
    assert not re.search(r"(?<!\\)[&%$#_{}~^]", written)


@given(st.floats(1e-12, 1e12))
def test_numbers_are_written_in_three_digits(value):
    assert float(number(value)) == pytest.approx(value, rel=5.1e-3)
    assert float(number(-value)) == -float(number(value))


def test_with_many_methods_these_become_the_rows():
    text = PLAN.replace(
        '["pinn", "ppinn", "oracle"]',
        '["pinn", "ppinn", "oracle", "ft", "rt", "lad", "huber", "mad", "student"]',
    )
    found = sheets_of(plan(text), plan(text).tables[0], errors(pinn=[0.2], ppinn=[0.1]))[0]
    lines = markdown(found).splitlines()
    assert lines[2] == "| method | poisson | heat |"
    assert sum(line.startswith("| P-PINN |") for line in lines) == 1

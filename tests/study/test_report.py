"""A study's report: complete, self-contained, honest about what is missing, safe to write."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import json
import re
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.study.conftest import PLAN, decay_in
from tests.study.test_execute import CONTRACT

from unpinn import UserError
from unpinn.report._study_report import check_study_report, write_study_report
from unpinn.study import Graph, Store

HOSTILE = "</style><script>document.title='hacked'</script><img src=x onerror=alert(1)>&"
CURVES = 'figure = "curves"\naxis = "which"\nmain = true'


class Reported(NamedTuple):
    """A study of hostile words and its report."""

    graph: Graph
    store: Store
    directory: Path

    @property
    def page(self) -> str:
        return (self.directory / "index.html").read_text()


@pytest.fixture(scope="session")
def reported(studied, tmp_path_factory) -> Reported:
    """One run has failed, and one was never begun."""
    folder = tmp_path_factory.mktemp("reported")
    text = PLAN.replace('"Decay"', json.dumps(f"Decay {HOSTILE}")).replace("main = true", CURVES)
    graph = decay_in(folder, text.replace('"few"', json.dumps(HOSTILE)))
    assert [*graph.nodes] == [*studied.graph.nodes]
    shutil.copytree(studied.store.path, folder / "store")
    store = Store(folder / "store")
    failed, missing = [*graph.nodes][-2:]
    for address in (failed, missing):
        shutil.rmtree(store.place(address).path)
    store.publish_failure(failed, f"it broke {HOSTILE}")
    write_study_report(graph, store, folder / "report", budget="quick", command="unpinn study it")
    return Reported(graph, store, folder / "report")


class Page(html.parser.HTMLParser):
    """What a page consists of."""

    def __init__(self, text: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, Any]]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        assert not self._open, self._open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "br", "link"):
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if not self._open or self._open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def test_a_report_has_every_file_that_it_names_and_no_other(reported):
    told = json.loads((reported.directory / "provenance.json").read_text())
    there = {p.relative_to(reported.directory).as_posix() for p in reported.directory.rglob("*.*")}
    assert {*told["files"]} == there
    assert there >= {
        "index.html", "README.md", "main.json", "records.parquet", "provenance.json",
        "tables/rates-unknowns-rate.tex", "tables/rates-misfit.tex", "figures/rates-curves.png",
    }  # fmt: skip


def test_the_page_fetches_nothing_and_runs_nothing(reported):
    page = Page(reported.page)
    assert not [tag for tag, _ in page.elements if tag in ("script", "link", "iframe", "object")]
    for tag, attributes in page.elements:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in ("src", "href"):
                assert value.startswith(("data:image/png;base64,", "#")), (tag, value[:40])
    (style,) = re.findall(r"<style>(.*?)</style>", reported.page, re.S)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    (policy,) = [a["content"] for _, a in page.elements if a.get("http-equiv")]
    assert f"style-src 'sha256-{digest}'" in policy and "default-src 'none'" in policy
    assert "url(" not in style and "@import" not in style


def test_words_of_plans_and_reasons_are_shown_and_never_obeyed(reported):
    page = Page(reported.page)
    assert page.text.count(" ".join(HOSTILE.split())) >= 3
    assert "<script>document" not in (reported.directory / "index.html").read_text()


def test_every_link_leads_somewhere_and_every_picture_is_described(reported):
    page = Page(reported.page)
    names = [a["id"] for _, a in page.elements if "id" in a]
    assert len({*names}) == len(names)
    links = [a["href"] for tag, a in page.elements if tag == "a"]
    assert links and {link.removeprefix("#") for link in links} <= {*names}
    pictures = [a for tag, a in page.elements if tag == "img"]
    assert pictures and all(a["alt"] for a in pictures)
    assert "lang" in dict(page.elements)["html"]


def test_the_page_says_what_was_run_how_and_where_and_what_is_missing(reported):
    text = Page(reported.page).text
    assert "unpinn study it" in text
    assert "quick: 2 % of every training's epochs" in text
    assert "they are not results" in text
    assert "1 of 6 runs are missing" in text and "1 runs failed" in text
    assert "it broke" in text and "1 failed" in text
    record = next(r for a in reported.graph.nodes if (r := reported.store.record(a)) is not None)
    for word in (record["environment"]["machine"], record["environment"]["sources"], "seeds 1, 2"):
        assert " ".join(str(word).split()) in text


def test_programs_find_the_promised_keys(reported):
    records = json.loads((reported.directory / "main.json").read_text())
    assert len(records) == 5 and all(record.keys() >= CONTRACT for record in records)
    assert sorted(r["status"] for r in records) == ["failed", *["finished"] * 4]


def test_the_readme_has_the_tables_and_the_pictures(reported):
    text = (reported.directory / "README.md").read_text()
    for name in re.findall(r"\]\((.*?\.png)\)", text):
        assert (reported.directory / name).exists()
    assert "![" in text and "## Failures" in text and "they are not results" in text


def test_a_report_of_the_same_store_is_the_same_but_for_its_time(reported, tmp_path):
    settings = {"budget": "quick", "command": "unpinn study it"}
    write_study_report(reported.graph, reported.store, tmp_path / "again", **settings)
    for file in reported.directory.rglob("*.*"):
        name = file.relative_to(reported.directory)
        if name.name in ("index.html", "README.md", "provenance.json"):
            texts = [(d / name).read_text() for d in (reported.directory, tmp_path / "again")]
            one, other = (re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "", text) for text in texts)
            assert one == other, name
        else:
            assert file.read_bytes() == (tmp_path / "again" / name).read_bytes(), name


def test_a_new_report_replaces_the_files_of_the_last_and_no_others(reported, tmp_path):
    directory = tmp_path / "report"
    write_study_report(reported.graph, reported.store, directory, budget="quick")
    mine = directory / "tables" / "mine.tex"
    mine.write_text("mine")
    smaller = decay_in(tmp_path, PLAN.replace('"misfit", ', ""))
    write_study_report(smaller, reported.store, directory, budget="quick")
    names = {path.name for path in (directory / "tables").iterdir()}
    assert "rates-misfit.tex" not in names and "rates-unknowns-rate.tex" in names
    assert mine.read_text() == "mine"


def test_a_directory_of_other_files_is_refused_before_anything_is_run(reported, tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(UserError, match="holds other files"):
        check_study_report(reported.graph, tmp_path)
    with pytest.raises(UserError, match="is a file"):
        check_study_report(reported.graph, tmp_path / "thesis.tex")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_list_of_files_that_was_tampered_with_deletes_nothing_outside(reported, tmp_path):
    write_study_report(reported.graph, reported.store, tmp_path / "report", budget="quick")
    precious = tmp_path / "precious.txt"
    precious.write_text("")
    mark = tmp_path / "report" / "provenance.json"
    told = json.loads(mark.read_text())
    told["files"] += ["../precious.txt", str(precious), "tables/../../precious.txt"]
    mark.write_text(json.dumps(told))
    write_study_report(reported.graph, reported.store, tmp_path / "report", budget="quick")
    assert precious.exists()


def test_two_studies_with_a_table_of_the_same_name_need_two_reports(tmp_path):
    from unpinn.study import Choice, Source, graph_of, parse_plan

    text = 'title = "t"\n[[table]]\nname = "same"\nproblems = ["heat"]\nmethods = ["pinn"]\n'
    plans = [parse_plan(Source(f"{name}.toml", text)) for name in ("one", "other")]
    graph = graph_of(plans, Choice("quick"))
    with pytest.raises(UserError, match="one and other both have a table 'same'"):
        check_study_report(graph, tmp_path / "report")

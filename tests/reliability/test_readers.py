"""Files from strangers are read or refused in a sentence; they run no code and end no page."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import os
import pickle
import resource
import shutil
import signal
import string
import subprocess
import sys
import tracemalloc
import zipfile
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import fuzz
import numpy as np
import pytest
import readers
import victim
from hypothesis import given, settings
from hypothesis import strategies as st

from unpinn import UserError
from unpinn._files import read_arrays, read_json
from unpinn.readings import parse_unit, read_observations, read_with_report
from unpinn.runs import Configuration, parse_options
from unpinn.study import Source, Store, parse_plan

BY_NAME = {reader.name: reader for reader in readers.READERS}
# Those whose inputs cost little; the others are tried in the slow set with all the rest.
QUICK = ("csv", "parquet", "npz", "netcdf", "configuration", "store", "plan", "wake", "checkpoint")
FORMULA = '=HYPERLINK("http://example.org","free")'


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("valid")


@contextlib.contextmanager
def hurried(seconds: int = 20):
    """Whatever takes longer fails, instead of hanging."""

    def late(*_):
        raise TimeoutError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# -- damaged files ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", QUICK)
def test_damaged_files_are_read_or_refused_in_a_sentence(name, root, tmp_path):
    reader, outcomes = BY_NAME[name], set()
    for number in range(40):
        kind, damaged, content = fuzz.damaged(reader, number, 17, root)
        folder = tmp_path / str(number) / kind.name
        shutil.copytree(kind, folder)
        (folder / damaged).write_bytes(content)
        with hurried():
            outcome = readers.tried(reader, folder)
        assert outcome in ("read", "refused"), f"input {number}: {outcome}"
        outcomes.add(outcome)
    # The damage neither always spoils a file nor always spares it.
    assert outcomes == {"read", "refused"}


@pytest.mark.slow
def test_a_hundred_thousand_damaged_files_do_no_harm(tmp_path):
    told = tmp_path / "fuzz.json"
    program = Path(fuzz.__file__)
    subprocess.run([sys.executable, program, "--inputs", "100000", "--out", told])
    found = json.loads(told.read_text())
    assert found["inputs"] == 100_000 and len(found["readers"]) == len(readers.READERS)
    assert found["failures"] == 0, {n: t["failures"] for n, t in found["readers"].items()}


def test_what_should_not_come_out_of_a_reader_is_noticed(tmp_path):
    def reading(work):
        return replace(BY_NAME["csv"], read=lambda folder: work())

    def refuse() -> None:
        raise UserError("two\nlines")

    def hang() -> None:
        while True:
            pass

    assert readers.tried(reading(lambda: 1 / 0), tmp_path).startswith("ZeroDivisionError: ")
    assert readers.tried(reading(refuse), tmp_path).startswith("not one sentence")
    with hurried(1):
        assert readers.tried(reading(hang), tmp_path).startswith("TimeoutError")


# -- invented files ---------------------------------------------------------------------------

_CELLS = st.one_of(
    st.floats().map(str), st.integers().map(str), st.text(max_size=8), st.just(FORMULA),
    st.sampled_from(["", "nan", "1,5", "2024-05-01", '"', "'", "#", "\x00", "1e400", "x [mm]"]),
)  # fmt: skip
_TABLES = st.builds(
    lambda head, rows, mark, end, code: end.join(
        [mark.join(head), *(mark.join(row) for row in rows)]
    ).encode(code, "replace"),
    st.permutations(["x", "t", "u"]).map(list) | st.lists(_CELLS, max_size=5),
    st.lists(st.lists(_CELLS, min_size=2, max_size=4), max_size=6),
    st.sampled_from(",;\t| "), st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["utf-8", "latin-1", "utf-16", "utf-8-sig"]),
)  # fmt: skip
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=8,
)
_NAMES = [*Configuration("heat").to_dict(), "format", "kind"]


def refused_at_most(work, *arguments) -> None:
    with contextlib.suppress(UserError):
        work(*arguments)


@given(content=_TABLES | st.binary(max_size=200))
@settings(max_examples=40)
def test_invented_tables_are_read_or_refused(content, root):
    path = root / "invented.csv"
    path.write_bytes(content)
    refused_at_most(read_with_report, path, readers.HEAT)


@given(content=st.dictionaries(st.sampled_from(_NAMES), _JSON) | _JSON)
@settings(max_examples=50)
def test_invented_configurations_are_read_or_refused(content, root):
    folder = root / "invented"
    folder.mkdir(exist_ok=True)
    text = {"format": 1, **content} if isinstance(content, dict) else content
    (folder / "configuration.json").write_text(json.dumps(text))
    refused_at_most(readers._read_configuration, folder)


@given(content=st.binary(max_size=300))
@settings(max_examples=60)
def test_bytes_are_no_json_and_no_arrays(content, root):
    path = root / "bytes"
    path.write_bytes(content)
    refused_at_most(read_json, path)
    refused_at_most(read_arrays, path)


_SIGNS = string.ascii_letters + "0123456789^*/().- ²³µ°"


@given(text=st.text(max_size=40) | st.text(_SIGNS, max_size=20))
@settings(max_examples=200)
def test_invented_units_are_read_or_refused(text):
    refused_at_most(parse_unit, text)


@given(settings_=st.lists(st.text("ab=,[]{}\"'\\:0159.eE+-", max_size=12), max_size=3))
@settings(max_examples=100)
def test_invented_settings_are_read_or_refused(settings_):
    refused_at_most(parse_options, settings_)


@given(
    lines=st.lists(
        st.sampled_from(readers.PLAN.splitlines())
        | st.builds("{} = {}".format, st.sampled_from(["name", "seeds", "x", "noise"]),
                    _JSON.map(json.dumps)),
        max_size=20,
    )
)  # fmt: skip
@settings(max_examples=60)
def test_shuffled_study_files_are_read_or_refused(lines):
    refused_at_most(parse_plan, Source("shuffled.toml", "\n".join(lines)))


# -- extremes ---------------------------------------------------------------------------------

HEAD = b"x,t,u\n0.5,1,20\n0.6,2,21\n"


@contextlib.contextmanager
def frugal(megabytes: float):
    """Whatever takes more memory of Python's and NumPy's fails."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < megabytes * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("start", [b"", HEAD, b"x,t,u,"], ids=["first", "later", "header"])
def test_a_line_of_a_gigabyte_is_refused_after_its_first_megabytes(start, tmp_path):
    path = tmp_path / "long.csv"
    with open(path, "wb") as file:
        file.write(start + b"1" * (3 << 20))
        # The rest takes no room on the disk, but is there to be read.
        file.truncate(1 << 30)
    with (
        frugal(40),
        hurried(),
        pytest.raises(UserError, match=r"more than a megabyte|not text"),
    ):
        read_observations(path, readers.HEAT)


def test_a_gigabyte_that_is_packed_into_a_megabyte_is_refused_too(tmp_path):
    path = tmp_path / "packed.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(HEAD)
        for _ in range(64):
            file.write(b"1" * (1 << 20))
    with frugal(40), hurried(), pytest.raises(UserError, match="line of more than a megabyte"):
        read_observations(path, readers.HEAT)


@pytest.mark.parametrize("name", ["c{}", ""])
def test_a_million_columns_are_refused(name, tmp_path):
    path = tmp_path / "wide.csv"
    columns = ",".join(name.format(k) for k in range(10**6))
    path.write_text(f"x,t,u,{columns}\n1,2,3\n")
    with frugal(300), hurried(), pytest.raises(
        UserError, match=r"1000003 columns; at most 10000 are read|line of more than a megabyte"
    ):  # fmt: skip
        read_observations(path, readers.HEAT)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("x,t,Größe\n1,2,3\n".encode("latin-1"), "has no column for any of u, flux; .*Größe"),
        (b"x,t,u\n1,2,\xff\xfe\xfd\n", r"line 2, column 'u': '.*' is not a number"),
        ("x,t,u\n1,2,3\n".encode("utf-32"), "is not text|no column"),
        (b"\xff\xfex", "not a regular|mixes encodings|no column|is empty"),
        (b"x,t,u\n" + b"1,2,3\n" * 200_000 + b"1,2,\xff\n", "mixes encodings|is not a number"),
        (b"\x1f\x8b\x08rubbish", "is not text|no header|no column"),
        (f"x,t,u\n1,2,{FORMULA.replace(',', ' ')}\n".encode(), "column 'u': '=HYPERLINK.* is not"),
    ],
)  # fmt: skip
def test_what_is_written_otherwise_than_expected_is_told(content, sentence, tmp_path):
    path = tmp_path / "odd.csv"
    path.write_bytes(content)
    with hurried(), pytest.raises(UserError, match=sentence) as caught:
        read_observations(path, readers.HEAT)
    assert "\n" not in str(caught.value)


def test_arrays_that_claim_to_be_huge_take_no_memory(tmp_path):
    from unpinn.benchmarks import load_wake

    header = np.lib.format.header_data_from_array_1_0(np.ones(1))
    path = tmp_path / "huge.npz"
    with zipfile.ZipFile(path, "w") as archive:
        out = io.BytesIO()
        np.lib.format.write_array_header_1_0(out, {**header, "shape": (10**11,)})
        for name in ("x.npy", "t.npy", "u.npy", "y.npy", "period.npy", "harmonics.npy"):
            archive.writestr(name, out.getvalue())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with hurried():
        for read in (lambda: read_observations(path, readers.HEAT), lambda: load_wake(path)):
            with pytest.raises(UserError):
                read()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10


# -- no code ----------------------------------------------------------------------------------


class _Bomb:
    """Pickled, it makes a folder when it is loaded."""

    def __init__(self, place: Path):
        self.place = place

    def __reduce__(self):
        return os.mkdir, (str(self.place),)


def test_pickles_in_files_are_never_loaded(tmp_path):
    from unpinn.benchmarks import load_wake

    exploded = tmp_path / "exploded"
    bomb = np.array([_Bomb(exploded)], object)
    np.savez(tmp_path / "a.npz", x=bomb, t=bomb, u=bomb, y=bomb, period=bomb, harmonics=bomb)
    (tmp_path / "a.csv").write_bytes(pickle.dumps(_Bomb(exploded)))
    (tmp_path / "a.safetensors").write_bytes(pickle.dumps(_Bomb(exploded)))
    for read in (
        lambda: read_observations(tmp_path / "a.npz", readers.HEAT),
        lambda: read_observations(tmp_path / "a.csv", readers.HEAT),
        lambda: load_wake(tmp_path / "a.npz"),
        lambda: read_arrays(tmp_path / "a.safetensors"),
    ):
        with pytest.raises(UserError):
            read()
    assert not exploded.exists()
    pickle.loads(pickle.dumps(_Bomb(exploded)))
    assert exploded.exists()


def test_a_matlab_file_is_read_as_scipy_reads_it(tmp_path):
    from scipy.io import loadmat, savemat

    from unpinn.benchmarks._matlab import variables

    draw = np.random.default_rng(0)
    arrays = {
        "a": draw.standard_normal((3, 4)), "b": draw.standard_normal((2, 3, 5)),
        "c": np.arange(6, dtype=np.int16).reshape(2, 3), "d": np.float32([[1.5]]),
        "a_name_longer_than_four": np.uint8([[1, 2, 255]]), "whole": np.array([[1.0, 2.0]]),
        "empty": np.zeros((0, 3)),
    }  # fmt: skip
    for packed in (False, True):
        path = tmp_path / f"{packed}.mat"
        savemat(path, {**arrays, "text": "abc", "complex": np.array([1j])}, do_compression=packed)
        found = {each.name: each for each in variables(path.read_bytes())}
        expected = loadmat(path)
        for name in arrays:
            np.testing.assert_array_equal(found[name].read(), expected[name])
            assert found[name].shape == expected[name].shape
        assert not found["text"].numeric and not found["complex"].numeric


# -- pages ------------------------------------------------------------------------------------

EVIL = (
    "</script></title><script>alert(1)</script>"
    """<img src=x onerror='a("b")'>&lt;{{ 7*7 }}{% x %}"""
)


class _Skeleton(HTMLParser):
    """The elements of a page with the names of their attributes, whatever the texts are."""

    def __init__(self, page: str):
        super().__init__(convert_charrefs=True)
        self.found: list[tuple] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, *(name for name, _ in attributes)))

    def handle_endtag(self, tag):
        self.found.append((f"/{tag}",))

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def fit():
    """A fit with a baseline, a partition and named sensors."""
    from unpinn.problem import observe
    from unpinn.training import Adam, Protocol, train
    from unpinn.unlearning import ByMixture, Recipe, Schedule, unlearn

    problem, observations = victim.decay()
    sensors = np.array(["north", "south"] * 10)
    values = observations.values[:, 0].copy()
    values[::5] += 0.8
    named = observe(problem, observations.points, values, sensor=sensors)
    stages = (Adam(epochs=20, rate=1e-2),)
    base = train(problem, named, Protocol(stages, architecture=victim.TINY))
    recipe = Recipe("tiny", ByMixture(), Schedule(steps=1, fraction=0.1), stages)
    return unlearn(base, recipe)


def named_throughout(fit, text: str):
    """The fit with a text wherever data or configuration can put one."""
    source = {"summary": text, "file": text, "units": {"u": text, "k": text, "t": text}}
    observations = replace(
        fit.observations, sensor=np.array([f"{text} {k % 2}" for k in range(len(fit.observations))])
    )
    problem = replace(fit.problem, name=text, source=source)
    return replace(
        fit, problem=problem, observations=observations, method=text, recipe=text,
        status=replace(fit.status, reason=text), protocol=replace(fit.protocol, name=text),
        partition=replace(fit.partition, rule=text), pruning=replace(fit.pruning, note=text),
        versions=replace(fit.versions, machine=text), before=None, details={},
    )  # fmt: skip


def test_a_page_has_the_same_elements_whatever_the_texts_in_it_are(fit):
    from unpinn.report._page import page_text

    harmless, harmful = (page_text(named_throughout(fit, t)) for t in ("north wind", EVIL))
    assert _Skeleton(harmful).found == _Skeleton(harmless).found
    assert "<script>alert" not in harmful and "<img src=x" not in harmful
    # It is all there to be read, as text.
    assert any(EVIL in text for text in _Skeleton(harmful).text)
    assert "49" not in harmful.partition("</title>")[0]


def test_a_notebook_has_the_same_elements_whatever_the_texts_in_it_are(fit):
    for show in (
        lambda told: told._repr_html_(),
        lambda told: told.partition._repr_html_(),
        lambda told: told.observations._repr_html_(),
    ):
        harmless, harmful = (
            _Skeleton(show(named_throughout(fit, text))) for text in ("north wind", EVIL)
        )
        assert harmful.found == harmless.found


def test_a_study_page_has_the_same_elements_whatever_the_texts_in_it_are(tmp_path):
    from unpinn.report._study_page import Part, Picture, StudyPage, study_page
    from unpinn.study._collect import collect
    from unpinn.study._tables import sheets_of

    graph = readers._graph()
    (plan, table), *_ = graph.tables

    def page(text: str) -> str:
        entry = replace(table.problems[0], label=text)
        named = replace(table, title=text, about=text, problems=(entry,))
        store = Store(tmp_path)
        store.publish_failure(readers.ADDRESS, text)
        records = [{**r, "problem": text} for r in collect(graph, store, "quick")]
        sheets = tuple(sheets_of(plan, named, records))
        parts = [Part(text, text, text, sheets, (Picture(text, text, b"PNG"),))]
        return study_page(
            StudyPage(text, text, "quick", 0.02, {"finished": 1, "failed": 1}, [(text, text)],
                      [text], parts, [(text, text)])
        )  # fmt: skip

    harmless, harmful = _Skeleton(page("north wind")), _Skeleton(page(EVIL))
    assert harmful.found == harmless.found
    assert any(EVIL in text for text in harmful.text)


def test_formulas_in_names_are_disarmed_in_tables(fit, tmp_path):
    from unpinn.report import write_suspects
    from unpinn.report._suspects import write_sensors

    named = named_throughout(fit, FORMULA)
    for write in (write_suspects, write_sensors):
        text = write(named, tmp_path / f"{write.__name__}.csv").read_text()
        cells = [cell for row in rows_of(text) for cell in row]
        assert any(cell.startswith("'=HYPERLINK") for cell in cells)
        assert not any(cell.startswith(("=", "@", "\t", "\r")) for cell in cells)


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))

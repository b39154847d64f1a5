"""What a notebook shows of fits, partitions and readings: numbers, pictures, and no markup."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from unpinn.report._facts import number

VOID = {"img", "br", "rect"}


class Elements(HTMLParser):
    """Collects elements and texts, and checks that every element is closed in order."""

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture
def shown(reported, hostile):
    """What a notebook shows of the fit, of its partition and of its readings."""
    fit = reported.fit
    worst = fit.observations.take(np.flatnonzero(fit.observations.sensor == hostile))
    return {
        name: Elements(value._repr_html_())
        for name, value in (("fit", fit), ("partition", fit.partition),
                            ("observations", fit.observations), ("worst", worst))
    }  # fmt: skip


def test_a_fit_shows_unknowns_before_and_after_suspects_and_pictures(shown, reported):
    text = " ".join(shown["fit"].texts)
    assert number(reported.fit.unknowns["speed"]) in text
    assert number(reported.fit.before.unknowns["speed"]) in text
    count = int(reported.fit.partition.suspect.sum())
    assert f"{count} of 120 readings suspect" in text
    pictures = [about for tag, about in shown["fit"].found if tag == "img"]
    assert pictures and all(p["alt"] for p in pictures)
    for picture in pictures:
        kind, _, content = picture["src"].partition(",")
        assert kind == "data:image/png;base64"
        assert base64.b64decode(content).startswith(b"\x89PNG")


def test_a_partition_shows_its_rule_and_all_scores(shown, reported):
    partition = reported.fit.partition
    assert partition.rule in " ".join(shown["partition"].texts)
    bars = [about for tag, about in shown["partition"].found if tag == "rect"]
    total = sum(float(bar["height"]) for bar in bars)
    # Every reading is in one bar, and the highest bar is 60 high.
    top = max(
        float(a["height"]) + float(b["height"]) for a, b in zip(bars[::2], bars[1::2], strict=True)
    )
    assert top == pytest.approx(60, abs=0.2)
    assert total * 1.0 >= 60 and len(bars) == 80


def test_readings_show_what_is_there_and_what_is_missing(shown, reported):
    texts = shown["observations"].texts
    assert "120 readings from 5 sensors" in texts
    observations = reported.fit.observations
    missing = int(np.isnan(observations.values[:, 1]).sum())
    assert str(missing) in texts and str(120 - missing) in texts


@pytest.mark.parametrize("what", ["fit", "partition", "observations", "worst"])
def test_hostile_texts_stay_texts(what, shown):
    tags = {tag for tag, _ in shown[what].found}
    assert "script" not in tags
    for tag, about in shown[what].found:
        assert not [name for name in about if name.startswith("on")], (tag, about)
        assert about.get("id") != "hit"
    if what in ("fit", "worst"):
        assert re.search("</script><script>", " ".join(shown[what].texts))

"""The page in a real browser: all of it there, alive, escaped, small, and fetching nothing."""

from __future__ import annotations

import re

import pytest

DESK, PHONE = (1280, 900), (390, 844)
SECTIONS = ["unknowns", "know", "fields", "readings", "how", "asked", "provenance"]
COLUMNS = [
    "reading", "sensor", "x (m)", "t (s)", "u", "u predicted", "slope", "slope predicted", "misfit",
    "score", "probably bad", "verdict",
]  # fmt: skip


class Opened:
    """A page, with everything that the browser said and asked for."""

    def __init__(self, page, path):
        self.page, self.said, self.asked = page, [], []
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))
        # Seconds of the page's own thread: the clock would tell of the machine's other work.
        measures = page.context.new_cdp_session(page)
        measures.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready=yes]")
        found = measures.send("Performance.getMetrics")["metrics"]
        self.seconds = {entry["name"]: entry["value"] for entry in found}["TaskDuration"]
        self.address = path.as_uri()

    def texts(self, selector: str) -> list[str]:
        """What elements say."""
        return [text.strip() for text in self.page.locator(selector).all_inner_texts()]

    def column(self, number: int) -> list[str]:
        """What a column of the table of readings says."""
        return self.texts(f"#suspects tbody td:nth-child({number + 1})")

    def sort(self, number: int) -> str | None:
        """Click a column's head; gives the direction that the head then tells."""
        self.page.locator("#suspects thead button").nth(number).click()
        return self.page.locator("#suspects thead th").nth(number).get_attribute("aria-sort")


@pytest.fixture
def opened(browser, reported):
    """Open the report's page at a size of the window."""
    pages = []

    def opening(size=DESK, path=reported.page, **options) -> Opened:
        width, height = size
        page = browser.new_page(viewport={"width": width, "height": height}, **options)
        pages.append(page)
        return Opened(page, path)

    yield opening
    for page in pages:
        page.close()


# -- what is there -------------------------------------------------------------------------


def test_every_section_is_there_with_its_heading_and_its_link(opened):
    page = opened()
    for name in SECTIONS:
        assert page.page.locator(f"section#{name} h2").inner_text()
        assert page.page.locator(f"nav a[href='#{name}']").count() == 1
    assert page.texts("#suspects thead th") == COLUMNS
    assert page.page.locator("#unknown-plots canvas").count() == 1
    told = page.page.locator("#unknowns").inner_text()
    assert "speed" in told and "m/s" in told and "before unlearning" in told


def test_numbers_are_the_fits_own(opened, reported):
    from unpinn.report import intervals_of
    from unpinn.report._facts import number

    page, fit = opened(), reported.fit
    big = page.page.locator("#unknowns .big").inner_text()
    shown, unit = big.split()
    assert unit == "m/s"
    assert number(fit.before.unknowns["speed"]) in page.page.locator(".figure").inner_text()
    low, high = intervals_of(fit)[0]["speed"]
    told = page.page.locator("#unknowns .range").inner_text().split(" (")[0]
    # As many digits as tell the value from the ends of its interval.
    assert as_number(shown) == pytest.approx(fit.unknowns["speed"], abs=0.02 * (high - low))
    ends = [float(text.replace("−", "-")) for text in told.split(" to ")]
    assert ends == pytest.approx([low, high], abs=0.02 * (high - low))
    count = int(fit.partition.suspect.sum())
    assert f"of which {count} ({count / 120:.0%}) are suspect" in page.page.inner_text(".lead")


def test_nothing_is_fetched_and_nothing_goes_wrong(opened):
    page = opened()
    for button in page.page.locator("button:visible").all():
        button.click()
    assert page.said == []
    assert [url for url in page.asked if not url.startswith("data:")] == [page.address]
    policy = page.page.locator("meta[http-equiv]").get_attribute("content")
    assert policy is not None and policy.startswith("default-src 'none'; img-src data:;")


def test_the_page_is_small_and_opens_at_once(opened, reported):
    assert reported.page.stat().st_size < 5e6
    assert 0 < opened().seconds < 2.0


# -- what is alive -------------------------------------------------------------------------


def test_the_table_sorts_by_every_column_both_ways(opened):
    page = opened()
    assert set(page.column(COLUMNS.index("verdict"))) == {"suspect"}
    page.page.locator("#only-suspects").uncheck()
    page.page.locator("#table-more").click()
    assert page.page.inner_text("#table-count") == "120 of 120 shown"
    for number, name in enumerate(COLUMNS):
        directions = {page.sort(number): page.column(number) for _ in range(2)}
        assert set(directions) == {"ascending", "descending"}, name
        if name in ("sensor", "verdict"):
            continue
        for direction, texts in directions.items():
            shown = [text for text in texts if text != "–"]
            # What is missing comes last, whichever way.
            assert texts[: len(shown)] == shown
            values = [as_number(text) for text in shown]
            values = [abs(value) for value in values] if name == "misfit" else values
            assert values == sorted(values, reverse=direction == "descending"), name


def as_number(text: str) -> float:
    """What the page wrote as a number for people."""
    plain = text.removesuffix(" %").replace("−", "-")
    mantissa, _, power = plain.partition("×10")
    raised = power.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-"))
    return float(f"{mantissa}e{raised or 0}")


def test_sensors_sort_as_people_count(opened, hostile):
    page = opened()
    page.page.locator("#only-suspects").uncheck()
    page.page.locator("#table-more").click()
    assert page.sort(1) == "ascending"
    seen = list(dict.fromkeys(page.column(1)))
    assert seen.index("B 9") < seen.index("B 10") and set(seen) >= {"=A1", "Zürich", hostile}


def test_the_table_is_searched_by_sensor_and_row(opened):
    page = opened()
    page.page.locator("#only-suspects").uncheck()
    page.page.locator("#table-find").fill("zür")
    assert page.page.inner_text("#table-count") == "24 of 24 shown"
    assert set(page.column(1)) == {"Zürich"}
    page.page.locator("#table-find").fill("7")
    assert page.column(0) == ["7"]


def test_pointing_at_a_reading_tells_it(opened, reported):
    page = opened()
    canvas = page.page.locator("#map-plot canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    tip = page.page.locator("#map-tip")
    assert tip.is_hidden()
    seen = set()
    for across in range(2, 20):
        for up in range(2, 16):
            page.page.mouse.move(
                box["x"] + box["width"] * across / 20, box["y"] + box["height"] * up / 18
            )
            if tip.is_visible():
                seen.add(tip.inner_text())
    assert len(seen) > 20
    observations = reported.fit.observations
    for text in seen:
        row = int(re.match(r"reading (\d+), ", text)[1])
        assert f"reading {row}, {observations.sensor[row]}" in text
        verdict = "suspect" if reported.fit.partition.suspect[row] else "retained"
        assert verdict in text and "u predicted" in text
    page.page.mouse.move(1, 1)
    assert tip.is_hidden()


def test_pointing_at_a_field_reads_its_value(opened, reported):
    page = opened()
    canvas = page.page.locator("#field-plot canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    told = page.page.inner_text("#field-readout")
    number = r"([−×⁰-⁹⁻\d.]+)"
    found = re.match(rf"u = {number} +at (\w) = {number}, (\w) = {number}", told)
    assert found is not None, told
    place = {found[2]: as_number(found[3]), found[4]: as_number(found[5])}
    value = reported.fit.predict({name: [at] for name, at in place.items()}, "u")[0]
    assert as_number(found[1]) == pytest.approx(value, abs=0.05)


def test_versions_of_a_field_are_chosen_by_buttons(opened):
    page = opened()
    picture = lambda: page.page.evaluate(  # noqa: E731
        "document.querySelector('#field-plot canvas').toDataURL()"
    )
    seen = set()
    for name in ("after unlearning", "before", "change"):
        button = page.page.get_by_role("button", name=name, exact=True)
        button.click()
        assert button.get_attribute("aria-pressed") == "true"
        seen.add(picture())
    assert len(seen) == 3


# -- every kind of reader ------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_it_without_scrolling_sideways(opened, scheme):
    page = opened(PHONE, color_scheme=scheme)
    wide = page.page.evaluate("document.documentElement.scrollWidth")
    assert wide == PHONE[0]
    # What is wider than the window scrolls in a region of its own, which the keyboard reaches.
    for region in page.page.locator(".scroll").all():
        assert region.get_attribute("tabindex") == "0" and region.get_attribute("aria-label")
    for canvas in page.page.locator("canvas:visible").all():
        assert canvas.bounding_box()["width"] <= PHONE[0]
        assert canvas.get_attribute("aria-label")


def test_without_scripts_pictures_and_rows_are_there(opened, browser, reported):
    page = browser.new_page(java_script_enabled=False)
    page.goto(reported.page.as_uri())
    try:
        assert page.locator("noscript img").count() or page.locator(".stills img").count()
        assert page.locator("#suspects tbody tr").count() == min(
            25, int(reported.fit.partition.suspect.sum())
        )
    finally:
        page.close()


# -- texts stay texts ----------------------------------------------------------------------


def test_hostile_texts_stay_texts(opened, hostile):
    page = opened()
    page.page.locator("#only-suspects").uncheck()
    assert page.page.title() != "hacked"
    assert page.page.locator("#hit, img[src=x]").count() == 0
    assert page.page.locator("script").count() == 2
    sensors = page.texts("#sensors tbody th")
    assert sensors[0] == hostile and "=A1" in sensors
    options = page.page.locator("#map-sensor option").all_inner_texts()
    assert hostile in [text.strip() for text in options]
    for place in ("h1", ".summary", "#asked", "#readings details summary"):
        assert "</script><script>" in page.page.locator(place).first.inner_text()
    assert '# a comment: <b id="hit">bold</b>' in page.page.inner_text("#asked pre >> nth=0")


def test_the_pages_source_holds_no_hostile_markup(reported):
    text = reported.page.read_text()
    assert "<script>document.title" not in text and "<img src=x" not in text
    assert "<b id=" not in text
    assert text.count("</script>") == 2
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", text)

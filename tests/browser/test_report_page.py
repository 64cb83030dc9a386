"""report.html in a browser without a network: it draws, sorts, filters, and fits a desk and a phone."""

from __future__ import annotations

import json

import pytest
from tests.report.factory import HOSTILE

pytestmark = [pytest.mark.browser, pytest.mark.slow]

N_ROWS = 32
BATCH_1_CHARTS = ("time", "speedup", "memory", "tflops", "bytes", "error")


def opened(browser, page, width=1280, height=900, scheme="light"):
    """Open the page at a width and wait until every chart is drawn."""
    from selenium.webdriver.support.ui import WebDriverWait

    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    feature = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": feature})
    browser.get(page.as_uri())
    WebDriverWait(browser, 60).until(
        lambda b: b.execute_script("return document.body.dataset.ready") == "yes"
    )
    return browser


def column(browser, heading):
    """The shown cells of a column."""
    return browser.execute_script(
        """const i = [...document.querySelectorAll('#table th')].findIndex((th) => th.innerText === arguments[0]);
        return [...document.querySelectorAll('#table tbody tr')].map((tr) => tr.cells[i].innerText);""",
        heading,
    )


def press(browser, heading):
    """Sort by a column as a keyboard user does."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    (button,) = [b for b in browser.find_elements(By.CSS_SELECTOR, "#table th button") if b.text == heading]
    button.send_keys(Keys.ENTER)


def choose(browser, element_id, text):
    """Choose an option of a selector."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import Select

    Select(browser.find_element(By.ID, element_id)).select_by_visible_text(text)


def test_it_loads_offline_without_a_message_and_draws_every_chart(browser, report_page):
    browser.get_log("browser")
    browser.get_log("performance")
    opened(browser, report_page)
    messages = [entry for entry in browser.get_log("browser") if entry["level"] != "INFO"]
    assert messages == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert [url for url in urls if not url.startswith(("file:", "data:", "blob:"))] == []
    drawn = browser.execute_script(
        """return Object.fromEntries([...document.querySelectorAll('figure')].map((f) =>
            [f.dataset.chart, f.querySelectorAll('svg .mark-symbol path, svg .mark-rect path').length]))"""
    )
    for name in BATCH_1_CHARTS:
        assert drawn[name] >= 8, name
    assert drawn["best"] >= 8
    assert drawn["roofline"] == 0


def test_a_chart_that_is_missing_says_why(browser, report_page):
    opened(browser, report_page)
    text = browser.execute_script("return document.querySelector('[data-chart=roofline]').innerText")
    assert "n/a: no ceilings in" in text
    assert "attnprof ceilings" in text


def test_the_answer_comes_first_and_names_damage(browser, report_page):
    opened(browser, report_page)
    text = browser.execute_script("return document.querySelector('main').firstElementChild.innerText")
    assert "N = 512 to 2048: sdpa_flash, 6.67 times naive at best" in text
    assert "run.jsonl line 9: torn" in text


def test_hostile_names_run_nothing(browser, report_page):
    opened(browser, report_page)
    assert browser.title == HOSTILE
    assert (
        browser.execute_script("return document.querySelectorAll('main b, td script, h1 script').length") == 0
    )
    assert HOSTILE in column(browser, "variant")
    legend = browser.execute_script("return document.querySelector('[data-chart=time] svg').textContent")
    assert HOSTILE in legend


def test_columns_sort_both_ways_with_missing_numbers_last(browser, report_page):
    opened(browser, report_page)
    press(browser, "median µs")
    up = column(browser, "median µs")
    press(browser, "median µs")
    down = column(browser, "median µs")
    numbers = [float(text.replace(",", "")) for text in up if text != "n/a"]
    assert numbers == sorted(numbers)
    assert up[-4:] == down[-4:] == ["n/a"] * 4
    assert [float(text.replace(",", "")) for text in down[:-4]] == numbers[::-1]
    state = browser.execute_script(
        "return [...document.querySelectorAll('#table th')].map((h) => h.ariaSort)"
    )
    assert state.count("descending") == 1
    press(browser, "variant")
    assert column(browser, "variant") == sorted(column(browser, "variant"))


def test_search_and_selectors_filter(browser, report_page):
    from selenium.webdriver.common.by import By

    opened(browser, report_page)
    choose(browser, "by-variant", "naive")
    assert set(column(browser, "variant")) == {"naive"}
    choose(browser, "by-length", "512")
    assert column(browser, "kv_len") == ["512", "512"]
    assert "2 of 32 rows" in browser.find_element(By.ID, "count").text
    choose(browser, "by-variant", "all")
    choose(browser, "by-length", "all")
    choose(browser, "by-outcome", "unsupported")
    assert set(column(browser, "variant")) == {"flex"}
    choose(browser, "by-outcome", "all")
    browser.find_element(By.ID, "search").send_keys("WRONG_result script")
    assert set(column(browser, "variant")) == {HOSTILE}
    assert "4 of 32 rows" in browser.find_element(By.ID, "count").text


def test_notes_open_and_constant_columns_are_said_once(browser, report_page):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    opened(browser, report_page)
    headings = browser.execute_script(
        "return [...document.querySelectorAll('#table th')].map((h) => h.innerText)"
    )
    assert "dtype" not in headings
    assert "dtype float32" in browser.find_element(By.ID, "same").text
    choose(browser, "by-variant", "flex")
    summary = browser.find_element(By.CSS_SELECTOR, "#table details summary")
    text = browser.find_element(By.CSS_SELECTOR, "#table details p")
    assert not text.is_displayed()
    summary.send_keys(Keys.ENTER)
    assert text.text == "needs a GPU <b>now</b>"


def test_another_series_redraws_the_charts(browser, report_page):
    from selenium.webdriver.support.ui import WebDriverWait

    opened(browser, report_page)
    before = browser.execute_script("return document.body.dataset.drawn")
    label = browser.execute_script("return document.querySelector('#series').options[1].text")
    choose(browser, "series", label)
    WebDriverWait(browser, 30).until(
        lambda b: b.execute_script("return document.body.dataset.drawn") != before
    )
    legend = browser.execute_script("return document.querySelector('[data-chart=time] svg').textContent")
    assert label.startswith("batch 2")
    assert "sdpa_math" not in legend


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_sticks_out_of_the_window(browser, report_page, width):
    opened(browser, report_page, width)
    wide = browser.execute_script(
        """const limit = document.documentElement.clientWidth;
        return [...document.querySelectorAll('body *:not(.scroll *):not(.skip)')]
            .filter((e) => e.getBoundingClientRect().right > limit + 1 && !e.closest('svg')?.closest('defs'))
            .map((e) => e.tagName + '.' + e.className?.baseVal);"""
    )
    assert browser.execute_script("return innerWidth") == width
    assert wide == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def test_dark_mode_turns_page_and_axes(browser, report_page):
    opened(browser, report_page, scheme="dark")
    paper, label = browser.execute_script(
        """return [getComputedStyle(document.body).backgroundColor,
            document.querySelector('[data-chart=time] .role-axis-label text').getAttribute('fill')]"""
    )
    assert paper == "rgb(21, 23, 26)"
    assert label == "#e8e8e8"


def test_every_control_can_be_reached_by_keyboard(browser, report_page):
    opened(browser, report_page)
    unreachable = browser.execute_script(
        """return [...document.querySelectorAll('a, button, select, input, .scroll')]
            .filter((e) => e.tabIndex < 0).length"""
    )
    unnamed = browser.execute_script(
        """return [...document.querySelectorAll('select, input')].filter((e) => !e.labels.length).length"""
    )
    assert (unreachable, unnamed) == (0, 0)

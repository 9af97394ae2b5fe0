"""The HTML report in a real browser. Skipped where there is neither chromium nor a driver."""

from __future__ import annotations

import base64
import importlib.util
import re
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
from fake_reports import SAMPLES, cluster, data_bound
from profiles import GOOD, finding, judge, runs_of, sample

from advisor.compare import compare
from advisor.model import WhatIf
from advisor.render import render

webdriver = pytest.importorskip("selenium.webdriver")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="no chromium with a driver"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


PAGES = [*SAMPLES, "repaired", "comparison", "gate-pass", "gate-fail"]


def _axe():
    spec = importlib.util.find_spec("axe_core_python")
    path = Path(spec.origin).parent / "axe.min.js" if spec and spec.origin else None
    return path.read_text(encoding="utf-8") if path and path.is_file() else ""


AXE = _axe()
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage"
)


def _start(folder, script=True):
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS.split(), f"--user-data-dir={folder}"):
        options.add_argument(flag)
    if not script:
        options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service(DRIVER))


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The sample reports as files: name -> address."""
    folder = tmp_path_factory.mktemp("pages")
    addresses = {}
    for name, make in SAMPLES.items():
        path = folder / f"{name}.html"
        path.write_text(render(make(), "html"), encoding="utf-8")
        addresses[name] = path.as_uri()
    told = {"": 200_000.0, "F1": 140_000.0, "F2": 180_000.0, "F1,F2": 100_000.0}
    path = folder / "repaired.html"
    path.write_text(render(replace(cluster(), whatif=WhatIf(("F1", "F2"), told)), "html"), encoding="utf-8")
    addresses["repaired"] = path.as_uri()
    before, after = SAMPLES["data_bound"](), SAMPLES["cluster"]()
    path = folder / "comparison.html"
    path.write_text(render(compare(before, after), "html", sides=(before, after)), encoding="utf-8")
    addresses["comparison"] = path.as_uri()
    for name, step_ms in (("gate-pass", 100.3), ("gate-fail", 130.0)):
        late = [] if name == "gate-pass" else [finding()]
        runs = [sample(step_ms + i / 10, findings=late, name=f"run{i}") for i in range(3)]
        path = folder / f"{name}.html"
        path.write_text(render(judge(runs, runs_of(*GOOD, name="base")), "html"), encoding="utf-8")
        addresses[name] = path.as_uri()
    return addresses


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    driver = _start(tmp_path_factory.mktemp("chromium"))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def bare_browser(tmp_path_factory):
    """A browser with JavaScript off."""
    driver = _start(tmp_path_factory.mktemp("chromium"), script=False)
    yield driver
    driver.quit()


def _find(browser, selector):
    return browser.find_element("css selector", selector)


def _all(browser, selector):
    return browser.find_elements("css selector", selector)


def _wait(condition, seconds=5.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    assert condition()


@pytest.mark.parametrize("name", PAGES)
def test_opens_without_console_errors_and_every_picture_has_a_size(browser, pages, name):
    """A blocked style or a drawing that collapsed shows in the console or in its height."""
    browser.get(pages[name])
    assert browser.get_log("browser") == []
    for drawing in _all(browser, "figure svg.picture, figure svg.graph"):
        assert drawing.size["height"] > 40 and drawing.size["width"] > 200


@pytest.mark.skipif(not AXE, reason="no axe-core (pip install axe-core-python)")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_stands_in_the_way_of_anybody(browser, pages, name, theme):
    """Names, contrasts, roles, order: what axe-core can find by itself."""
    browser.get(pages[name])
    _find(browser, f"label[for=theme-{theme}]").click()
    assert _violations(browser) == []


def _violations(browser):
    browser.execute_script(AXE)
    found = browser.execute_async_script("axe.run().then(arguments[0], (error) => arguments[0](String(error)))")
    return [(each["id"], [node["html"][:200] for node in each["nodes"][:2]]) for each in found["violations"]]


def test_hostile_names_are_inert(browser, pages):
    """No name of an operator runs, fetches, or turns the page around."""
    browser.get(pages["hostile"])
    assert browser.execute_script("return typeof window.hacked") == "undefined"
    assert not _all(browser, "img, iframe, object, main script, main form")
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    width = browser.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert width <= 0


@pytest.mark.parametrize("which", ["browser", "bare_browser"])
def test_the_language_switch(request, pages, which):
    """English and Chinese in one page, with and without JavaScript."""
    browser = request.getfixturevalue(which)
    browser.get(pages["data_bound"])
    for code, shown, hidden in (("zh", "Map(2)太慢", "too slow"), ("en", "too slow", "Map(2)太慢")):
        _find(browser, f"label[for=lang-{code}]").click()
        text = _find(browser, "h1").text
        assert shown in text and hidden not in text


def test_the_theme_switch(browser, pages):
    """Pictures follow the page's colours."""
    browser.get(pages["cluster"])
    colors = []
    for theme in ("dark", "light"):
        _find(browser, f"label[for=theme-{theme}]").click()
        colors.append(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))
    assert colors[0] != colors[1]
    assert browser.get_log("browser") == []


def test_folding_and_links_to_folded_findings(browser, pages):
    """A link from the chain opens the symptom it names."""
    browser.get(pages["data_bound"])
    symptom = _find(browser, "details.symptom")
    assert not symptom.get_property("open")
    symptom.find_element("css selector", "summary").click()
    assert symptom.get_property("open")
    symptom.find_element("css selector", "summary").click()
    _find(browser, ".chain a").click()
    _wait(lambda: symptom.get_property("open"))


def test_copying_a_snippet(browser, pages):
    """The snippet lands in the clipboard as it stands."""
    browser.get(pages["data_bound"])
    browser.execute_cdp_cmd(
        "Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    )
    button = _find(browser, "article [data-copy]")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
    button.click()
    _wait(lambda: button.get_attribute("data-copied") == "yes")
    assert button.text == "Copied"
    text = browser.execute_async_script(
        "navigator.clipboard.readText().then(arguments[0], (error) => arguments[0](String(error)))"
    )
    assert text == data_bound().findings[0].remedies[0].snippet


def test_tables_are_sorted_searched_and_saved(browser, pages):
    """The numbers behind a picture are there to work with."""
    browser.get(pages["cluster"])
    figure = _find(browser, "#figure-links-0")
    figure.find_element("css selector", "summary").click()
    heads = figure.find_elements("css selector", "th button")
    rows = lambda: [r.text for r in figure.find_elements("css selector", "tbody tr") if r.is_displayed()]  # noqa: E731
    heads[1].click()
    assert figure.find_elements("css selector", "th")[1].get_attribute("aria-sort") == "descending"
    assert rows()[-1].startswith("1 → 2")
    figure.find_element("css selector", "[data-search]").send_keys("1 → 2")
    assert all("1 → 2" in row for row in rows()) and rows()
    kept = "window.saved = []; URL.createObjectURL = (blob) => { window.saved.push(blob); return '#'; };"
    browser.execute_script(kept)
    figure.find_element("css selector", "[data-csv]").click()
    text = browser.execute_async_script("window.saved[0].text().then(arguments[0])")
    assert text.splitlines()[0].lstrip("\ufeff").startswith("link,Bandwidth") and "1 → 2,4.1 GB/s" in text


def test_ticking_causes_shrinks_the_step(browser, pages):
    """The bar and the time are those of the step replayed without the ticked causes together."""
    browser.get(pages["repaired"])
    bar, said = _find(browser, "[data-whatif] rect.left"), _find(browser, "[data-whatif] output")
    first, second = _all(browser, "[data-whatif] input")
    seen = [(said.text, float(bar.get_attribute("width")))]
    for tick in (first, second, first):
        tick.click()
        seen.append((said.text, float(bar.get_attribute("width"))))
    assert [round(width) for _, width in seen] == [1000, 700, 500, 900]
    assert len({text for text, _ in seen}) == 4 and seen[2][0].startswith("100")


def test_the_place_is_copied_in_the_page_s_language(browser, pages):
    """Who reads Chinese pastes Chinese into the viewer's notes."""
    browser.get(pages["cluster"])
    browser.execute_cdp_cmd(
        "Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    )
    for code, part in (("zh", "距step起点"), ("en", "from the start of the step")):
        _find(browser, f"label[for=lang-{code}]").click()
        button = _find(browser, "[data-copy-zh]")
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
        button.click()
        _wait(lambda: button.get_attribute("data-copied") == "yes")  # noqa: B023
        text = browser.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
        assert part in text and "50" in text
        _wait(lambda: not button.get_attribute("data-copied"))  # noqa: B023


def test_the_keyboard_reaches_everything(browser, pages):
    """No mouse needed: skip link first, then the switches."""
    from selenium.webdriver.common.keys import Keys

    browser.get(pages["data_bound"])
    seen = []
    for _ in range(6):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        seen.append(browser.execute_script("return document.activeElement.className || document.activeElement.name"))
    assert seen[0] == "skip" and "lang" in seen and "theme" in seen


def test_without_javascript_findings_are_readable(bare_browser, pages):
    """Mail programs and strict browsers run no scripts."""
    bare_browser.get(pages["cluster"])
    text = _find(bare_browser, "main").text
    assert "Rank 3 computes 142 ms a step" in text and "npu-smi info" in text
    assert all(drawing.size["height"] > 40 for drawing in _all(bare_browser, "figure svg.picture"))
    assert not any(button.is_displayed() for button in _all(bare_browser, "[data-copy]"))
    _find(bare_browser, "#figure-links-0 summary").click()
    assert "1 → 2" in _find(bare_browser, "#figure-links-0 table").text


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_two_findings_print_on_two_pages(browser, pages, lang):
    """A report is taken into a meeting on a sheet of paper, nothing cut off at its right edge."""
    browser.get(pages["data_bound"])
    _find(browser, f"label[for=lang-{lang}]").click()
    assert len(SAMPLES["data_bound"]().findings) >= 2
    paper = {"paperWidth": 8.27, "paperHeight": 11.69, "printBackground": False}
    sheets = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", paper)["data"])
    assert len(re.findall(rb"/Type\s*/Page\b", sheets)) <= 2
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    metrics = {"width": 717, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        wide = (
            "return [...document.querySelectorAll('main *')].filter(e => e.scrollWidth > e.clientWidth + 1 &&"
            " getComputedStyle(e).overflowX === 'auto').length"
        )
        assert browser.execute_script(wide) == 0
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


@pytest.mark.parametrize("width", [360, 1280])
def test_no_page_is_wider_than_its_window(browser, pages, width):
    """On a phone nothing is cut off and nothing scrolls sideways."""
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        for name in pages:
            browser.get(pages[name])
            assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_pages_of_the_server(browser, tmp_path):
    """List, trend and comparison work in a browser: no console errors, the form leads to the comparison."""
    pytest.importorskip("starlette")
    pytest.importorskip("uvicorn")
    from serving import serving

    from advisor.serve.app import build_application

    for name, make in SAMPLES.items():
        (tmp_path / f"{name}.json").write_text(render(make(), "json"), encoding="utf-8")
    (tmp_path / "later.json").write_text(render(SAMPLES["cluster"](), "json"), encoding="utf-8")
    with serving(build_application(tmp_path)) as (host, port):
        root = f"http://{host}:{port}"
        browser.get(root)
        assert len(_all(browser, "table.runs tbody tr")) == len(SAMPLES) + 1
        assert not AXE or _violations(browser) == []
        browser.execute_script("arguments[0].click()", _find(browser, "form[action='/compare'] button"))
        _wait(lambda: "/compare?" in browser.current_url and _all(browser, "h1"))
        assert not AXE or _violations(browser) == []
        browser.get(f"{root}/trend?metric=step.time_us")
        assert not AXE or _violations(browser) == []
        assert _find(browser, "svg.picture").size["height"] > 40
        assert [entry for entry in browser.get_log("browser") if "favicon" not in entry["message"]] == []
        assert browser.execute_script("return typeof window.hacked") == "undefined"

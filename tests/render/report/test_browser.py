"""The HTML report in a real browser. Skipped where there is neither chromium nor a driver."""

from __future__ import annotations

import shutil
import time

import pytest
from fake_reports import SAMPLES, data_bound

from advisor.compare import compare
from advisor.render import render

webdriver = pytest.importorskip("selenium.webdriver")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="no chromium with a driver"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
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
    before, after = SAMPLES["data_bound"](), SAMPLES["cluster"]()
    path = folder / "comparison.html"
    path.write_text(render(compare(before, after), "html", sides=(before, after)), encoding="utf-8")
    addresses["comparison"] = path.as_uri()
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


@pytest.mark.parametrize("name", [*SAMPLES, "comparison"])
def test_opens_without_console_errors_and_draws_every_picture(browser, pages, name):
    """A blocked script or a failed picture shows in the console first."""
    browser.get(pages[name])
    canvases = _all(browser, "canvas[data-figure]")
    _wait(lambda: all(canvas.get_attribute("data-drawn") for canvas in canvases))
    assert browser.get_log("browser") == []
    painted = (
        "const c = arguments[0]; return c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(v => v > 0)"
    )
    assert all(browser.execute_script(painted, canvas) for canvas in canvases)


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


def test_the_theme_switch_redraws(browser, pages):
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


def test_hovering_shows_the_numbers(browser, pages):
    """The tooltip answers what a bar stands for."""
    from selenium.webdriver import ActionChains

    browser.get(pages["cluster"])
    canvas = _find(browser, "#figure-breakdown-ranks canvas")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    ActionChains(browser).move_to_element(canvas).perform()
    shown = (
        "return Chart.getChart(arguments[0]).tooltip.opacity > 0 && Chart.getChart(arguments[0]).tooltip.body.length"
    )
    _wait(lambda: browser.execute_script(shown, canvas) == 3)


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
    assert "Rank 3 computes 142 ms a step" in text and "npu-smi info" in text and "needs JavaScript" in text
    assert not any(button.is_displayed() for button in _all(bare_browser, "[data-copy]"))
    _find(bare_browser, "#figure-links summary").click()
    assert "1 → 2" in _find(bare_browser, "#figure-links table").text


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
    import threading

    pytest.importorskip("starlette")
    uvicorn = pytest.importorskip("uvicorn")
    from advisor.serve.app import build_application

    for name, make in SAMPLES.items():
        (tmp_path / f"{name}.json").write_text(render(make(), "json"), encoding="utf-8")
    config = uvicorn.Config(build_application(tmp_path), host="127.0.0.1", port=0, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        _wait(lambda: server.started, 10)
        root = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        browser.get(root)
        assert len(_all(browser, "table.runs tbody tr")) == len(SAMPLES)
        browser.execute_script("arguments[0].click()", _find(browser, "form[action='/compare'] button"))
        _wait(lambda: "/compare?" in browser.current_url and _all(browser, "h1"))
        browser.get(f"{root}/trend?metric=step.time_us")
        _wait(lambda: _find(browser, "canvas").get_attribute("data-drawn") == "yes")
        assert [entry for entry in browser.get_log("browser") if "favicon" not in entry["message"]] == []
        assert browser.execute_script("return typeof window.hacked") == "undefined"
    finally:
        server.should_exit = True
        thread.join(5)

"""The page in a browser: Chromium, driven by Selenium, where both are installed."""

import json
import re
import shutil

import pytest

from nplm import MixtureLM, TextLM, Tokenizer, UniformLM, Vocabulary
from tests.helpers import paper_lm

by = pytest.importorskip(
    "selenium.webdriver.common.by",
    reason="the page is tested in a browser: pip install selenium",
).By
from selenium import webdriver  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (BROWSER and DRIVER),
        reason="the page is tested in a browser: install chromium and chromedriver",
    ),
]
SETTINGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for setting in SETTINGS:
        options.add_argument(setting)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('browser')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield browser
    browser.quit()


class Page:
    """The page, as somebody uses it."""

    def __init__(self, browser, url):
        self.browser = browser
        browser.get(url)
        self.until(lambda: browser.execute_script("return document.body.dataset.ready"))

    def until(self, condition):
        WebDriverWait(self.browser, 30, poll_frequency=0.05).until(
            lambda _: condition()
        )

    def all(self, selector):
        return self.browser.find_elements(by.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.browser.find_element(by.CSS_SELECTOR, selector)

    def texts(self, selector):
        # In one step: the page may put others in their place meanwhile.
        return self.browser.execute_script(
            "return [...document.querySelectorAll(arguments[0])]"
            ".map((element) => "
            "(element.innerText ?? element.textContent).trim().replace(/\\s/g, ' '))",
            selector,
        )

    def type(self, text):
        """Replace the text, and wait for its words."""
        area, before = self.one("#text"), self.all(".token")
        area.send_keys(Keys.CONTROL, "a")
        area.send_keys(text)
        words = [
            word for line in text.split("\n") if line for word in [*line.split(), "↵"]
        ]
        self.until(
            lambda: self.texts(".token .word") == words and self.all(".token") != before
        )


@pytest.fixture
def page(browser, client):
    page = Page(browser, client.url)
    yield page
    complaints = [entry["message"] for entry in browser.get_log("browser")]
    # A word that is not in the vocabulary is a 404 that the page expects.
    assert [text for text in complaints if "/nearest" not in text] == []


def spelt(words):
    """Return words as the page shows them."""
    return [{"</s>": "end", "<unk>": "unknown word"}.get(word, word) for word in words]


def scores(client, text, model):
    lines = client.post("/score", {"text": text, "model": model}).json["lines"]
    return [token for line in lines for token in line["tokens"]]


def test_each_word_has_its_surprisal_by_each_model(page, client):
    page.type("the zebra sat\na dog")
    shown = [re.split(r"\s+", text) for text in page.texts(".token")]
    by_model = [
        scores(client, "the zebra sat\na dog", m) for m in ("n-grams", "mixture")
    ]
    assert len(shown) == len(by_model[0]) == 7
    for (_, *numbers), *tokens in zip(shown, *by_model):
        assert numbers == [f"{token['bits']:.1f}" for token in tokens]
    # The number is told too, and the colour follows it.
    tokens = page.all(".token")
    label = tokens[1].get_attribute("aria-label")
    assert label.startswith("zebra: n-grams ") and "not in the vocabulary" in label
    assert "bits" in label and "mixture" in label
    heats = page.browser.execute_script(
        "return [...document.querySelectorAll('.token .word')]"
        ".map((word) => Number(word.style.getPropertyValue('--heat')))"
    )
    expected = [min(token["bits"] / 16, 1) for token in by_model[0]]
    assert heats == pytest.approx(expected)
    assert page.one("#unknown").is_displayed()
    assert page.texts("#totals tbody th") == ["n-grams", "mixture"]


def test_the_n_gram_that_was_found_is_shown(page, client):
    page.type("the dog saw")
    found = page.one("#shown input[value=order]")
    found.click()
    assert found.find_element(by.XPATH, "..").text == "found"
    shown = [text.split()[1:] for text in page.texts(".token")]
    kn = scores(client, "the dog saw", "n-grams")
    mixture = scores(client, "the dog saw", "mixture")
    assert shown == [
        [str(one["order"]), str(two["members"][0]["order"])]
        for one, two in zip(kn, mixture)
    ]
    said = page.all(".token")[1].get_attribute("aria-label")
    assert f" bits, {kn[1]['order']} found;" in said


def test_next_words_have_the_parts_of_each_member(page, client):
    page.type("the dog")
    page.one("#model option:nth-child(2)").click()
    found = client.post("/next", {"text": "the dog", "model": "mixture"}).json
    words = [word["word"] for word in found["words"]]
    page.until(lambda: page.texts("#expected thead th")[-1:] == ["net \u00d7 0.75"])
    assert page.texts("#expected tbody th") == spelt(words)
    row = page.texts("#expected tbody tr")[0].split()
    most = found["words"][0]
    numbers = [most["probability"], *(m["probability"] for m in most["members"])]
    shown = [float(text.rstrip("%")) / 100 for text in row if text.endswith("%")]
    assert shown == pytest.approx(numbers, rel=0.1)
    assert len(page.all("#expected tbody tr:first-child .bar i")) == 2


def test_a_chosen_word_shows_what_was_expected_in_its_place(page, client):
    page.type("the dog saw a cat")
    page.all(".token")[2].click()
    page.until(lambda: "“saw”" in page.one("#chosen caption").text)
    question = {"text": "the dog saw a cat", "position": 2}
    words = [w["word"] for w in client.post("/next", question).json["words"]]
    page.until(lambda: page.texts("#expected tbody th") == spelt(words))
    assert page.texts("#expected tr.typed th") == ["saw"]
    assert page.one("#context").text == "the dog saw"
    assert page.texts("#chosen tbody th") == ["n-grams", "mixture", "kn", "net"]
    # Chosen again, it is no longer chosen.
    page.all(".token")[2].click()
    page.until(lambda: page.one("#context").text.endswith("?"))
    assert not page.one("#chosen").is_displayed()


def test_words_of_the_context_are_coloured_by_what_they_add(page, client):
    page.type("the dog saw a cat")
    page.one("#model option:nth-child(2)").click()
    page.all(".token")[2].click()
    question = {"text": "the dog saw a cat", "position": 2, "model": "mixture"}
    effects = client.post("/next", question | {"effects": True}).json["effects"]
    page.until(lambda: page.texts("#context span") == ["the", "dog"])
    page.until(lambda: "“saw”" in page.one("#effects").text)
    titles = [word.get_attribute("title") for word in page.all("#context span")]
    assert titles == [f"{bits:.1f} bits" for bits in effects]
    kinds = [word.get_attribute("class") for word in page.all("#context span")]
    assert kinds == ["less" if bits < 0 else "more" for bits in effects]
    # n-grams say which n-gram was found instead.
    page.one("#model option:nth-child(1)").click()
    page.until(lambda: not page.one("#effects").is_displayed())


def test_labels_of_the_map_do_not_overlap(page, browser):
    boxes = browser.execute_script(
        "const texts = document.querySelectorAll('#map g:not(.bare) text');"
        "return [...texts].map((text) => {"
        "  const {left, right, top, bottom} = text.getBoundingClientRect();"
        "  return [left, top, right, bottom]; })"
    )
    assert len(boxes) > 3
    for i, (left, top, right, bottom) in enumerate(boxes):
        for other in boxes[i + 1 :]:
            assert (
                right <= other[0]
                or other[2] <= left
                or (bottom - 3 <= other[1] or other[3] - 3 <= top)
            )


def test_words_are_reached_by_keys_alone(page):
    page.type("the dog saw")
    page.one("#shown input:checked").send_keys(Keys.TAB)
    active = page.browser.switch_to.active_element
    assert active.text.startswith("the")
    active.send_keys(Keys.ARROW_RIGHT)
    active = page.browser.switch_to.active_element
    assert active.text.startswith("dog")
    active.send_keys(Keys.ENTER)
    assert active.get_attribute("aria-pressed") == "true"
    page.until(lambda: "“dog”" in page.one("#chosen caption").text)


def test_a_word_is_found_with_its_neighbours_and_on_the_map(page, client):
    search = page.one("#word")
    search.clear()
    search.send_keys("cat")
    question = {"word": "cat", "model": "mixture"}
    words = [w["word"] for w in client.post("/nearest", question).json["words"]]
    page.until(lambda: page.texts("#nearest .word") == spelt(words))
    assert page.texts("#map g.chosen") == ["cat"]
    page.all("#nearest button")[0].click()
    page.until(lambda: page.texts("#map g.chosen") == [words[0]])
    search.clear()
    search.send_keys("zebra")
    page.until(lambda: "'zebra' is not in the vocabulary" in page.one("#found").text)
    search.clear()
    search.send_keys("sa")
    page.until(lambda: len(page.all("#map g.match")) == 2)  # sat, saw
    for button in reversed(page.all(".zoom button")):
        button.click()


@pytest.mark.parametrize("width", [360, 1200])
def test_the_page_fits_its_width(page, browser, width):
    size = {
        "width": width,
        "height": 740,
        "deviceScaleFactor": 1,
        "mobile": width < 500,
    }
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        page.type("the dog saw a cat that no model knows")
        root = "document.documentElement"
        assert browser.execute_script(f"return {root}.scrollWidth") <= width
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_every_control_has_a_name(page):
    page.type("the dog")
    for control in page.all("input, select, textarea, button, svg[role]"):
        assert control.accessible_name, control.get_attribute("outerHTML")


def test_light_and_dark_have_contrast(page, browser):
    page.type("zebra zebra zebra the the")
    for scheme in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        colours = browser.execute_script("""
          const canvas = document.createElement("canvas").getContext(
            "2d", {willReadFrequently: true});
          const strongest =
            "color-mix(in oklab, var(--accent) var(--most), transparent)";
          const probe = document.body.appendChild(document.createElement("p"));
          const colour = (value) => {
            probe.style.color = value;
            return getComputedStyle(probe).color;
          };
          const painted = (...layers) => {
            canvas.fillStyle = "black";
            canvas.clearRect(0, 0, 1, 1);
            for (const layer of layers) {
              canvas.fillStyle = colour(layer);
              canvas.fillRect(0, 0, 1, 1);
            }
            return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
          };
          const found = {
            paper: painted("var(--paper)"), ink: painted("var(--ink)"),
            soft: painted("var(--soft)"), strongest: painted("var(--paper)", strongest),
          };
          probe.remove();
          return found;
        """)
        colours = {name: luminance(colour) for name, colour in colours.items()}
        assert (colours["paper"] > 0.5) == (scheme == "light")
        for one, two in (("ink", "paper"), ("ink", "strongest"), ("soft", "paper")):
            high, low = sorted((colours[one], colours[two]), reverse=True)
            assert (high + 0.05) / (low + 0.05) >= 4.5, (scheme, one, two)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def luminance(colour):
    """Return the relative luminance of the Web Content Accessibility Guidelines."""
    parts = [c / 255 for c in colour]
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def test_an_error_is_told(page, client):
    page.browser.execute_script(
        "window.fetch = async () => new Response(arguments[0], {status: 422})",
        json.dumps({"error": "too much."}),
    )
    page.one("#text").send_keys("x")
    page.until(lambda: page.one("#failure").text == "too much.")
    assert page.one("#failure").get_attribute("role") == "alert"


HOSTILE = [
    "<script>window.harmed=1</script>", "<img/src=x/onerror=window.harmed=1>",
    "<svg/onload=window.harmed=1>", "\"onfocus=window.harmed=1", "'\"><b>",
    "</textarea>", "&lt;i&gt;", "&amp;", "${harmed=1}", "{{1}}", "-->",
    "javascript:window.harmed=1", "__proto__", "constructor", "hasOwnProperty", "null",
    "\u202eabc", "e\u0301", "\U0001f469\u200d\U0001f4bb", "\u0000", "\ufeff", "\u2028",
    "\ufffe", "w" * 900,
]  # fmt: skip


def test_words_are_text_whatever_they_spell(browser, serving):
    network = paper_lm(n_hidden=4, embedding_dim=3, max_iter=2, random_state=0)
    mixture = MixtureLM([(HOSTILE[0], network), (HOSTILE[1], UniformLM())], [0.5, 0.5])
    lm = TextLM(mixture, 2, tokenizer=Tokenizer("[^ ]+")).fit([" ".join(HOSTILE)] * 9)
    names = [HOSTILE[1], "__proto__"]
    with serving(dict.fromkeys(names, lm), text=" ".join(HOSTILE)) as client:
        page = Page(browser, client.url)

        def shown(selector):
            return page.browser.execute_script(
                "return [...document.querySelectorAll(arguments[0])]"
                ".map((element) => element.textContent)",
                selector,
            )

        assert shown(".token .word") == [*HOSTILE, "\u21b5"]
        assert page.one("#text").get_property("value") == " ".join(HOSTILE)
        assert shown("#model option") == names
        assert shown("#totals tbody th") == names
        found = client.post("/next", {"text": " ".join(HOSTILE)}).json
        words = [word["word"] for word in found["words"]]
        assert shown("#expected tbody th") == spelt(words)
        assert all(name in shown("#expected thead th span") for name in HOSTILE[:2])
        assert sorted(shown("#map text")) == sorted(spelt({*HOSTILE, "</s>", "<unk>"}))
        for i, word in enumerate(HOSTILE[:-1]):
            page.browser.execute_script(
                "document.querySelectorAll('.token')[arguments[0]].click()", i
            )
            page.until(lambda word=word: shown("#context mark") == [word])
            label = page.all(".token")[i].get_attribute("aria-label")
            assert label.startswith(f"{word}: ")
            if word.isprintable():
                search = {"word": word, "model": names[0]}
                nearest = client.post("/nearest", search).json["words"]
                page.browser.execute_script(
                    "const input = document.querySelector('#word');"
                    "input.value = arguments[0];"
                    "input.dispatchEvent(new Event('input'))",
                    word,
                )
                page.until(
                    lambda nearest=nearest: (
                        shown("#nearest .word")
                        == spelt(neighbour["word"] for neighbour in nearest)
                    )
                )
        # The page's own script and text alone.
        assert len(shown("script, img, textarea, b")) == 2
        assert page.browser.execute_script("return window.harmed") is None
        assert not page.one("#failure").is_displayed()
        assert [entry["message"] for entry in browser.get_log("browser")] == []


def test_models_that_split_a_text_differently_are_shown_apart(browser, serving, served):
    upper = TextLM(
        UniformLM(), 1, tokenizer=Tokenizer(r"\w"), vocabulary=Vocabulary()
    ).fit(["the dog saw a cat"])
    with serving({"n-grams": served["n-grams"], "letters": upper}) as client:
        page = Page(browser, client.url)
        page.one("#text").send_keys("a dog")
        words = ["a", "dog", "\u21b5", "a", "d", "o", "g", "\u21b5"]
        page.until(lambda: page.texts(".token .word") == words)
        assert page.one("#differ").is_displayed()
        assert not page.one("#words").is_displayed()  # no model has features
        # A word is expected by a model that has it.
        page.all(".token")[4].click()
        page.until(lambda: page.texts("#chosen tbody th") == ["letters"])
        assert page.one("#model").get_property("value") == "letters"
        page.one("#model option:nth-child(1)").click()
        page.until(lambda: not page.one("#chosen").is_displayed())
        assert page.all(".token[aria-pressed=true]") == []

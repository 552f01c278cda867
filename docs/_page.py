"""Pictures of the page of ``nplm serve``: ``python docs/_page.py``.

Trains two models on the embedded corpus, which takes a minute, serves them, and opens
the page in Chromium by Selenium (``apt install chromium chromium-driver`` and ``python
-m pip install selenium``). The pictures are in ``_static``: make them again when the
page changes.
"""

import base64
import io
import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

from nplm import KneserNeyLM, MixtureLM, NeuralLM, TextLM, Tokenizer, Vocabulary, save
from nplm.datasets import load_python_docs

FOLDER = Path(__file__).with_name("_static")
TEXT = """\
Return the indices of the maximum values.
Return the reasons of the maximum values."""
CHOSEN = 11  # "reasons", among the words of the text
WIDTH, SCALE, COLOURS = 1200, 1.25, 64
SETTINGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars",
]  # fmt: skip


def train(folder):
    """Train n-grams, and a mixture of a network and n-grams; return their files."""
    corpus = load_python_docs()
    train, valid = (
        [" ".join(words) for words in corpus.documents(part)]
        for part in ("train", "valid")
    )
    # The corpus marks unknown words, which the tokenizer must leave whole.
    text = dict(
        tokenizer=Tokenizer(r"<unk>|\w+|[^\w\s]"),
        vocabulary=Vocabulary.from_words(corpus.words.tolist()),
    )
    network = NeuralLM(n_hidden=128, embedding_dim=64, max_iter=3, random_state=0)
    mixture = MixtureLM([("n-grams", KneserNeyLM()), ("network", network)])
    save(TextLM(KneserNeyLM(), **text).fit(train), folder / "n-grams")
    save(TextLM(mixture, **text).fit(train, X_val=valid[:1000]), folder / "mixture")
    return [folder / "n-grams", folder / "mixture"]


@contextmanager
def served(files):
    """Serve models, and give the address of the page."""
    command = [sys.executable, "-m", "nplm", "serve", *files, "--port", "0"]
    server = subprocess.Popen(
        [*command, "--text", TEXT], stdout=subprocess.PIPE, text=True
    )
    try:
        yield re.search(r"http://\S+", server.stdout.readline())[0]
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()


def pictures(browser, url, scheme):
    """Give two pictures, by name: of the text, and of similar words."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": WIDTH, "height": 800, "deviceScaleFactor": SCALE, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(url)
    wait = WebDriverWait(browser, 60)
    wait.until(lambda b: b.execute_script("return document.body.dataset.ready"))
    browser.execute_script(
        """
        const model = document.querySelector("#model");
        model.value = "mixture";
        model.dispatchEvent(new Event("change"));
        document.querySelectorAll(".token")[arguments[0]].click();
        """,
        CHOSEN,
    )
    shown = "return document.querySelectorAll('#expected .part-1').length > 1"
    wait.until(lambda b: b.execute_script(shown))
    top, bottom = browser.execute_script(
        """
        const {top, bottom} = document.querySelector("#words").getBoundingClientRect();
        return [top - 24, bottom + 24];
        """
    )
    yield "page", part(browser, 0, top)
    yield "similar", part(browser, top, bottom)


def part(browser, top, bottom):
    """Take a picture of the page between two heights."""
    clip = {"x": 0, "y": top, "width": WIDTH, "height": bottom - top, "scale": 1}
    taken = browser.execute_cdp_cmd(
        "Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip}
    )
    image = Image.open(io.BytesIO(base64.b64decode(taken["data"]))).convert("RGB")
    return image.quantize(COLOURS)


def main():
    """Make the pictures."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    with TemporaryDirectory() as folder, served(train(Path(folder))) as url:
        for setting in [*SETTINGS, f"--user-data-dir={folder}/browser"]:
            options.add_argument(setting)
        service = Service(shutil.which("chromedriver"))
        with webdriver.Chrome(options=options, service=service) as browser:
            for scheme in ("light", "dark"):
                for name, image in pictures(browser, url, scheme):
                    path = FOLDER / f"{name}-{scheme}.png"
                    image.save(path, optimize=True)
                    print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

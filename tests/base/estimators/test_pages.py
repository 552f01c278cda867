"""The HTML representation of estimators links to their pages."""

import pytest
from sklearn.pipeline import Pipeline

from nplm import (
    KneserNeyLM,
    MixtureLM,
    NeuralLM,
    TextLM,
    Tokenizer,
    UniformLM,
    Vocabulary,
    WordClasses,
)
from nplm.base.estimators.bases import BUILT

ESTIMATORS = [
    KneserNeyLM(),
    MixtureLM([("one", UniformLM())]),
    NeuralLM(),
    TextLM(NeuralLM()),
    Tokenizer(),
    Vocabulary(),
    WordClasses(),
]


def page(name, address):
    return f"{address}/api/generated/nplm.{name}.html"


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_estimator_links_to_its_page(estimator, monkeypatch):
    monkeypatch.setenv("NPLM_DOCS", "http://localhost:8000/")
    link = page(type(estimator).__name__, "http://localhost:8000")
    assert f'href="{link}"' in estimator._repr_html_()


def test_estimator_links_to_pages_built_in_the_checkout(monkeypatch, tmp_path):
    monkeypatch.delenv("NPLM_DOCS", raising=False)
    monkeypatch.setattr("nplm.base.estimators.bases.BUILT", tmp_path)
    assert 'href="' not in UniformLM()._repr_html_()
    (tmp_path / "index.html").touch()
    assert f'href="{page("UniformLM", tmp_path.as_uri())}"' in UniformLM()._repr_html_()
    assert BUILT.parts[-3:] == ("docs", "_build", "html")


def test_members_are_shown_inside_their_meta_estimator(monkeypatch):
    monkeypatch.setenv("NPLM_DOCS", "http://docs")
    mixture = MixtureLM([("counts", KneserNeyLM()), ("none", UniformLM())])
    shown = Pipeline([("ids", Vocabulary()), ("lm", TextLM(mixture))])._repr_html_()
    for name in ("Vocabulary", "TextLM", "KneserNeyLM", "UniformLM"):
        assert page(name, "http://docs") in shown
    assert "estimator: MixtureLM" in shown
    assert "counts" in shown


def test_class_of_another_package_has_no_page(monkeypatch):
    monkeypatch.setenv("NPLM_DOCS", "http://docs")

    class Own(UniformLM):
        """A user's subclass."""

    assert Own()._get_doc_link() == ""

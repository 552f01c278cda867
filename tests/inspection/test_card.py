"""A model card tells what the model and the arguments tell, and nothing else."""

import re

import numpy as np
import pytest

import nplm
from nplm import (
    AutoLM,
    AutoRecipe,
    InterpolatedTrigram,
    KneserNeyLM,
    MixtureLM,
    TextLM,
    Tokenizer,
    Vocabulary,
)
from nplm.inspection import model_card
from tests.helpers import neural_lm

TEXTS = ["a rose is a rose", "is a rose a rose", "a lily | a rose"] * 9
KNESER_NEY = KneserNeyLM(3, discount_fallback=0.5)
NETWORK = neural_lm(n_hidden=4, embedding_dim=3, max_iter=2, random_state=0)
MODELS = {
    "n-gram": KNESER_NEY,
    "neural": NETWORK,
    "mixture": MixtureLM([("kn", KNESER_NEY), ("network", NETWORK)]),
}


def fitted(estimator, **options):
    return TextLM(estimator, 2, **options).fit(TEXTS)


def metadata(card):
    yaml = pytest.importorskip("yaml", reason="reads the card's metadata")
    front = re.match(r"---\n(.*?)\n---\n", card, re.DOTALL)
    return yaml.safe_load(front[1])


def rows(card):
    """Return the cells of the rows of all tables."""
    lines = [line for line in card.splitlines() if line.startswith("| ")]
    return [re.split(r" (?<!\\)\| ", f" {line[2:-2]}") for line in lines]


@pytest.mark.parametrize("kind", MODELS)
def test_card_has_the_figures_of_the_model(kind):
    lm = fitted(MODELS[kind], vocabulary=Vocabulary(min_count=10))
    texts = {"test | of mine.txt": ["a lily is", "a rose"], "other": TEXTS}
    card = model_card(
        lm, "roses", trained_on="A poem.", licence="cc0-1.0", language="en", texts=texts
    )
    found = {row[0].strip(): row[1:] for row in rows(card)}
    estimator = lm.estimator_
    assert found["kind"] == [type(estimator).__name__]
    assert found["parameters"] == [f"{estimator.n_parameters_:,}"]
    assert found["vocabulary"] == [f"{lm.n_words_} words, with `</s>` and `<unk>`"]
    assert found["words of context"] == ["2"]
    if kind == "n-gram":
        shown = [int(n) for n in re.findall(r"(\d+) of order", found["n-grams"][0])]
        assert shown == estimator.n_ngrams_.tolist()
    if kind == "neural":
        assert "The arithmetic of the training was in float32." in card
        assert found["epochs"] == ["2"]
        assert found["examples seen in training"] == [f"{estimator.n_seen_:,}"]
    if kind == "mixture":
        members = [row[1] for row in rows(card) if row[0].strip() == "member"]
        for member, weight, shown in zip(
            estimator.estimators_, estimator.weights_, members, strict=True
        ):
            assert f"{type(member).__name__}, weight {weight:.3f}" in shown
    for name, documents in texts.items():
        n, n_unknown, perplexity, without = found[name.replace("|", "\\|")]
        unknown = np.concatenate([s.unknown for s in lm.token_scores(documents)])
        assert (int(n), int(n_unknown)) == (len(unknown), unknown.sum())
        assert perplexity == f"{lm.perplexity(documents):.2f}"
        assert without == f"{lm.perplexity(documents, skip='<unk>'):.2f}"
    assert "## Training\n\nA poem." in card
    assert "## Licence\n\ncc0-1.0" in card
    given = metadata(card)
    assert (given["license"], given["language"]) == ("cc0-1.0", "en")
    assert given["tags"][:2] == ["nplm", "language-model"]
    assert kind in given["tags"]
    [model] = given["model-index"]
    assert model["name"] == "roses"
    assert [r["dataset"]["name"] for r in model["results"]] == list(texts)
    for result, documents in zip(model["results"], texts.values()):
        [metric] = result["metrics"]
        assert metric["type"] == "perplexity"
        assert metric["value"] == pytest.approx(lm.perplexity(documents), abs=1e-4)


def test_card_says_what_is_not_known():
    card = model_card(fitted(InterpolatedTrigram()), "roses")
    assert "What it was trained on is not said in the file." in card
    assert "None was measured for this page." in card
    assert "No licence is given." in card
    assert metadata(card).keys() == {"library_name", "tags", "pipeline_tag"}


def test_metadata_of_any_text_is_yaml():
    lm = fitted(InterpolatedTrigram())
    licence = "other: \"mine\" # [no] {yaml}\n---\n'é'"
    given = metadata(model_card(lm, "a: b", licence=licence, texts={"- x: y": TEXTS}))
    assert given["license"] == licence
    assert given["model-index"][0]["name"] == "a: b"
    assert given["model-index"][0]["results"][0]["dataset"]["name"] == "- x: y"


def test_code_on_the_card_loads_the_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    nplm.save(fitted(InterpolatedTrigram()), 'my "roses"')
    card = model_card(nplm.load('my "roses"'), 'my "roses"')
    code = re.search(r"```python\n(.*?)```", card, re.DOTALL)[1]
    names = {}
    exec(code, names)
    assert isinstance(names["lm"], TextLM)
    assert "nplm query 'my \"roses\"' text.txt" in card


def test_models_of_tokens_and_ids_are_described():
    events = [text.split() for text in TEXTS]
    card = model_card(fitted(InterpolatedTrigram()), "text")
    of_tokens = model_card(TextLM(InterpolatedTrigram()).fit(events), "tokens")
    of_ids = model_card(TextLM(InterpolatedTrigram()).fit([[1, 2, 3]] * 9), "ids")
    assert "nplm query text" in card
    assert "nplm query" not in of_tokens + of_ids
    assert "| vocabulary | 4 ids |" in of_ids
    without_ends = TextLM(InterpolatedTrigram(), predict_boundary=False).fit(TEXTS)
    card = model_card(without_ends, "text", texts={"t": TEXTS})
    assert "does not count as a token" in card
    assert "Ends of documents do not count." in card


def test_card_of_auto_lm_has_its_recipe_and_members():
    settings = {"members": ["ngrams", "classes"], "n_classes": 2}
    recipe = AutoRecipe(1.0, held_out=500, weights=(0.25, 0.75), **settings)
    lm = AutoLM(recipe=recipe).fit(TEXTS * 30)
    card = model_card(lm, "roses")
    [shown] = re.findall(r"```\n(AutoRecipe\(.*?\))\n```", card, re.DOTALL)
    assert eval(shown, {"AutoRecipe": AutoRecipe}) == lm.recipe_
    assert metadata(card)["tags"][2:] == ["mixture", "class-based", "n-gram"]
    members = [row[1] for row in rows(card) if row[0].strip() == "member"]
    assert members[0].startswith("KneserNeyLM, weight 0.250, ")
    assert f"ngrams {lm.scores_['ngrams']:.2f}, classes " in card


def test_what_is_no_text_model_is_refused():
    with pytest.raises(TypeError, match="model must be a TextLM, got Tokenizer"):
        model_card(Tokenizer(), "tokens")

"""ShallowFusion: log-probabilities of contexts, added to a generator's scores."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from nplm import (
    InterpolatedTrigram,
    KneserNeyLM,
    MixtureLM,
    NeuralLM,
    ShallowFusion,
    TextLM,
)
from tests.helpers import paper_lm, small_text

pytestmark = small_text

CYCLE = [[1, 2, 3, 4, 1, 2, 3, 4], [2, 3, 4, 1], [3, 4, 1, 2]] * 20


class Array(np.ndarray):
    """An array with the one method of a tensor that is used."""

    def new_tensor(self, values):
        return np.asarray(values)


def tensor(values):
    return np.asarray(values).view(Array)


def models():
    network = paper_lm(n_hidden=8, embedding_dim=4, max_iter=5, random_state=0)
    trigram = InterpolatedTrigram()
    mixture = MixtureLM([("a", trigram), ("b", network)], "uniform")
    return [trigram, network, mixture, KneserNeyLM()]


@pytest.mark.parametrize("model", models(), ids=lambda m: type(m).__name__)
def test_weighted_log_probabilities_are_added(model):
    lm = TextLM(model, 2, boundary=0).fit(CYCLE)
    scores = np.random.default_rng(0).normal(size=(3, 7)).astype(np.float32)
    input_ids = [[6, 1, 2], [6, 3, 4], [6, 1, 2]]
    fusion = ShallowFusion(lm, 0.5, eos_token_id=6)
    fused = fusion(tensor(input_ids), tensor(scores))
    expected = lm.estimator_.predict_log_proba([row[1:] for row in input_ids])
    # The boundary is no token but the last one, and there are five words.
    order = [6, 1, 2, 3, 4]
    assert_allclose(fused[:, order], scores[:, order] + 0.5 * expected, rtol=1e-5)
    assert np.isneginf(fused[:, [0, 5]]).all()


def test_beams_go_on_with_the_state_of_a_network_that_reads_texts():
    network = NeuralLM(
        2, n_memory=3, n_hidden=8, embedding_dim=4, max_iter=5, random_state=0
    )
    lm, order = TextLM(network, boundary=0).fit(CYCLE), [6, 1, 2, 3, 4]
    fusion, scorer = ShallowFusion(lm, 1.0, eos_token_id=6), lm.scorer()
    # Beams that go on, by one word and by two.
    for beams in ([[1], [2]], [[1, 2], [2, 3]], [[1, 2, 3, 4], [2, 3, 1, 2]]):
        fused = fusion(tensor([[9, *beam] for beam in beams]), tensor(np.zeros((2, 7))))
        for row, beam in zip(fused, beams):
            state = scorer.begin()
            for word in beam:
                _, state = scorer.step(state, word)
            expected = [scorer.end(state), *scorer.candidates(state, order[1:])]
            assert_allclose(row[order], expected, rtol=1e-5)


def test_tokens_of_probability_0_have_it_at_every_weight_but_0():
    lm = TextLM(InterpolatedTrigram(), 2, boundary=0).fit(CYCLE)
    scores = tensor(np.arange(7, dtype=np.float32)[None])
    row = lm.estimator_.predict_log_proba([[1, 2]])
    order = [6, 1, 2, 3, 4]
    for weight in (-0.5, 1.0):
        fused = ShallowFusion(lm, weight, eos_token_id=6)(tensor([[9, 1, 2]]), scores)
        assert_allclose(fused[:, order], scores[:, order] + weight * row, rtol=1e-5)
        assert np.isneginf(fused[:, [0, 5]]).all()
    fused = ShallowFusion(lm, 0.0, eos_token_id=6)(tensor([[9, 1, 2]]), scores)
    assert_allclose(fused, scores, rtol=0)
    for weight in (np.nan, np.inf):
        with pytest.raises(ValueError, match="weight must be a finite number, got"):
            ShallowFusion(lm, weight)


def test_end_of_text_has_the_probability_of_the_boundary():
    lm = TextLM(InterpolatedTrigram(), 2, boundary=0).fit(CYCLE)
    for width in (5, 7):
        fusion = ShallowFusion(lm, 1.0, eos_token_id=4)
        fused = fusion(tensor([[9, 1, 2]]), tensor(np.zeros((1, width))))
        assert_allclose(fused[0, 4], lm.estimator_.predict_log_proba([[1, 2]])[0, 0])
    # The padding of a generator may hold the token that ends a text.
    fused = ShallowFusion(lm, 1.0, eos_token_id=6)(
        tensor([[9, 1, 2]]), tensor(np.zeros((1, 7)))
    )
    assert_allclose(fused[0, 6], lm.estimator_.predict_log_proba([[1, 2]])[0, 0])
    assert np.isneginf(fused[0, 5])


def test_prompt_is_not_a_context():
    lm = TextLM(InterpolatedTrigram(), 2, boundary=0).fit(CYCLE)
    fusion = ShallowFusion(lm, 1.0, n_prompt=2)
    fused = fusion(tensor([[9, 9, 1], [1, 2, 1]]), tensor(np.zeros((2, 5))))
    expected = lm.estimator_.predict_log_proba([[0, 1]])
    assert_allclose(fused, np.repeat(expected, 2, axis=0), rtol=1e-6)
    fused = fusion(tensor([[9, 9]]), tensor(np.zeros((1, 5))))
    assert_allclose(fused, lm.estimator_.predict_log_proba([[0, 0]]), rtol=1e-6)


def test_tokens_map_ids_to_words():
    lm = TextLM(InterpolatedTrigram(), 2).fit([list("abcd"), list("bcda")] * 20)
    ids = lm.vocabulary_.ids_
    tokens = ["<s>", "d", "c", "b", "a"]
    fusion = ShallowFusion(lm, 1.0, tokens=tokens)
    [fused] = fusion(tensor([[0, 4, 3]]), tensor(np.zeros((1, 5))))
    row = lm.estimator_.predict_log_proba([[ids["a"], ids["b"]]])[0]
    assert_allclose(fused, [row[ids.get(t, ids["<unk>"])] for t in tokens], rtol=1e-6)
    with pytest.raises(TypeError, match="pass tokens"):
        ShallowFusion(lm)
    with pytest.raises(TypeError, match="needs a TextLM"):
        ShallowFusion(lm.estimator_)
    for wrong in ({"n_prompt": -1}, {"n_prompt": "a"}, {"eos_token_id": [2]}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be a whole"):
            ShallowFusion(lm, tokens=tokens, **wrong)


def test_generator_of_transformers_follows_the_language_model():
    """A generator without knowledge, and models that know what it should write."""
    torch = pytest.importorskip("torch", reason="needs torch")
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=8, n_positions=32, n_embd=8, n_layer=1, n_head=1,
        bos_token_id=7, eos_token_id=6, pad_token_id=5,
    )  # fmt: skip
    generator = transformers.GPT2LMHeadModel(config).eval()
    prompt = torch.tensor([[7, 1], [7, 3]])
    settings = dict(max_new_tokens=6, do_sample=False, num_beams=2)
    settings["attention_mask"] = torch.ones_like(prompt)
    alone = generator.generate(prompt, **settings)[:, 1:].tolist()
    network = paper_lm(n_hidden=8, embedding_dim=4, max_iter=30, random_state=0)
    for model in (InterpolatedTrigram(), network):
        lm = TextLM(model, 2, boundary=0, predict_boundary=False).fit(CYCLE)
        fusion = ShallowFusion(lm, 5.0)
        found = generator.generate(
            prompt,
            logits_processor=transformers.LogitsProcessorList([fusion]),
            **settings,
        )[:, 1:].tolist()
        assert found == [[1, 2, 3, 4, 1, 2, 3], [3, 4, 1, 2, 3, 4, 1]] != alone

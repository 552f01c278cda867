from nplm import KneserNeyLM, MixtureLM, NeuralLM, TextLM
from nplm.datasets import load_python_docs

corpus = load_python_docs()  # English that every Python brings along
network = NeuralLM(
    loss="importance", learning_rate_init=0.02, max_iter=5, random_state=0
)
mixture = MixtureLM([("network", network), ("n-grams", KneserNeyLM())])
lm = TextLM(mixture).fit(corpus.documents("train"))

print("perplexity of new text:", round(lm.perplexity(corpus.documents("test")), 1))
print("return a list of ...  ", *lm.next_words(["return", "a", "list", "of"])[0])
print("words like 'list':    ", *lm.nearest("list", k=5)[0])
drawn = lm.generate(["If", "the"], top_p=0.5, exclude=["<unk>"], random_state=0)
print("If the", *drawn)

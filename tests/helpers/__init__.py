"""What several test files share; no test imports another test file.

The names of most tests are here, the others in the modules of their subject.
"""

from tests.helpers.cases import (
    FULL_PRECISIONS,
    PRECISIONS,
    bfloat16_is_here,
    pairwise,
    peak_of,
    small_text,
)
from tests.helpers.models import (
    assert_same_weights,
    changed,
    check_shared,
    energy_lm,
    neural_lm,
    paper_lm,
    small_models,
)
from tests.helpers.texts import (
    code_of,
    corpus_of,
    markov_stream,
    published_corpus,
    text,
)

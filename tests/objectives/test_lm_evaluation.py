"""Arguments and tables of the evaluation of language models."""

import pytest

from tfnlp.objectives.lm_evaluation import check_evaluation, figures_table
from tfnlp.utils.errors import InputError


def test_unsuitable_options_are_refused():
    with pytest.raises(InputError, match="has the head None, of which there is no perplexity"):
        check_evaluation(None)
    with pytest.raises(InputError, match="stride=3 has no effect on a masked language model"):
        check_evaluation("masked_lm", stride=3)
    with pytest.raises(InputError, match="memory_lengths='x' must be whole numbers of at least 0"):
        check_evaluation("causal_lm", ["4", "x"])


def test_a_table_has_a_line_for_each_memory():
    rows = [{"memory_length": m, "perplexity": 3 / (m + 1)} for m in (0, 16)]
    assert figures_table(rows) == (
        "memory_length  perplexity\n            0      3.0000\n           16      0.1765"
    )

"""Special tokens of the families, and the ends of a translator's texts."""

import pytest

from tests.text.family_tokenizers import FAMILIES, tokenizer_of
from tfnlp.text.tokenizers.special_tokens import SPECIAL_TOKENS, end_token_id, with_target
from tfnlp.utils.errors import InputError

ENDS = {"bert": "[SEP]", "gpt2": "<|endoftext|>", "roberta": "</s>", "deberta": "[SEP]"}
ENDS |= {"albert": "[SEP]", "xlnet": "</s>", "deberta-v2": "[SEP]", "xlm-roberta": "</s>"}
ENDS |= {"modernbert": "[SEP]"}


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_has_an_end_token(family):
    tokenizer = tokenizer_of(family)
    assert tokenizer.token(end_token_id(tokenizer)) == ENDS[family]
    special = {tokenizer.token(i) for i in tokenizer.special_token_ids}
    assert special == {*SPECIAL_TOKENS[family].tokens.values()}


class Endless:
    def token_id(self, token):
        return None


def test_sources_end_with_the_models_token_or_their_tokenizers():
    one, two = tokenizer_of("roberta"), tokenizer_of("bert")
    assert with_target(one, None, 7) == with_target(one, one, 7) == (one, 7)
    assert with_target(one, two, 7) == (two, one.token_id("</s>"))
    with pytest.raises(InputError, match=r"sources lacks an end token \(<eod>, "):
        with_target(Endless(), two, 7)

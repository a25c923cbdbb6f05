"""Heads that a family can have."""

import re

import pytest

from tfnlp.configs import (
    BertConfig,
    GptConfig,
    RecurrentConfig,
    RobertaConfig,
    TransformerConfig,
    check_head,
)
from tfnlp.utils.errors import InputError


@pytest.mark.parametrize(
    ("config", "head", "message"),
    [
        (BertConfig(), "parser", "head='parser' is unknown; use None or one of ['classifier', "),
        (GptConfig(), "masked_lm", "head='masked_lm' does not fit the family 'gpt'"),
        (RecurrentConfig(), "discriminator", "does not fit the family 'recurrent'"),
        (TransformerConfig(), "tagger", "head='tagger' does not fit the family 'transformer'"),
        (RobertaConfig(), "pretraining", "'roberta', which is not pretrained on pairs of texts"),
        (BertConfig(), "tagger", "num_classes=None must be at least 1 for head='tagger'"),
    ],
)
def test_heads_that_a_family_cannot_have_are_refused(config, head, message):
    with pytest.raises(InputError, match=re.escape(message)):
        check_head(config, head)

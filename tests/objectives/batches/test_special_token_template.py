"""Templates of special tokens are those that tokenizers apply."""

import numpy as np
import pytest

from tfnlp.objectives import SpecialTokenTemplate
from tfnlp.text import UnigramTokenizer
from tfnlp.text.tokenizers.tokenizer_loading import kind_for, train_tokenizer

TEXTS = ["a cat sat on the mat", "the dog ran to a cat", "이 영화 정말 재미있다", "a b c d e"] * 20


@pytest.mark.parametrize("family", ["bert", "roberta", "xlnet", "albert", "deberta-v2", "gpt2"])
def test_a_template_is_what_the_tokenizer_adds_to_texts(family):
    kind = kind_for(family)
    tokenizer, _ = train_tokenizer(TEXTS, kind, 300, None if kind == "wordpiece" else family)
    template = SpecialTokenTemplate.from_tokenizer(tokenizer)
    framing = {*tokenizer.special_token_ids} - {tokenizer.unknown_token_id}
    for text, pair in (("the cat sat", "a dog"), ("a", "이 영화")):
        plain = []
        for one in (text, pair):
            ids = tokenizer.encode([one])[0].token_ids
            plain.append(np.array([i for i in ids if i not in framing], "int32"))
        for texts, given in (([text], plain[:1]), ([text, pair], plain)):
            whole = tokenizer.encode(*([t] for t in texts))[0]
            ids, segments = template.around(*given)
            assert ids.dtype == segments.dtype == "int32"
            assert ids.tolist() == list(whole.token_ids)
            assert segments.tolist() == list(whole.segment_ids)
        assert template.single_size == len(template.around(plain[0])[0]) - len(plain[0])
        assert template.pair_size == len(ids) - sum(map(len, plain))


def test_a_template_holds_no_unknown_token():
    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    pieces = [(piece, -1.0) for piece in (*special, "▁", "이", "다")]
    template = SpecialTokenTemplate.from_tokenizer(
        UnigramTokenizer(pieces, "deberta-v2")
    )  # "a" is "▁[UNK]"
    assert template.single == (((2, 0),), ((3, 0),))
    assert template.pair == (((2, 0),), ((3, 0),), ((3, 1),))

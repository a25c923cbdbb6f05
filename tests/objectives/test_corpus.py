import numpy as np
import pytest

from tfnlp.objectives import Corpus, SpecialTokenTemplate
from tfnlp.text import UnigramTokenizer
from tfnlp.text.tokenizer_loading import kind_for, train_tokenizer
from tfnlp.utils.errors import InputError

TEXTS = ["a cat sat on the mat", "the dog ran to a cat", "이 영화 정말 재미있다", "a b c d e"] * 20


def test_documents_and_their_sentences_come_back():
    documents = [[[5, 6], [7]], [[8, 9, 10]], [[11], [], [12, 13]]]
    corpus = Corpus.from_documents(documents)
    assert len(corpus) == 3
    assert corpus.token_counts.tolist() == [3, 3, 3]
    assert corpus.sentence_counts.tolist() == [2, 1, 3]
    for i, document in enumerate(documents):
        assert [s.tolist() for s in corpus.sentences(i)] == document
        assert corpus.sentence_lengths(i).tolist() == [len(ids) for ids in document]
        assert corpus.part(i, 1, 3).tolist() == corpus.document(i).tolist()[1:3]
        assert corpus.document(i).tolist() == [i for ids in document for i in ids]
    assert Corpus.from_documents(documents).fingerprint() == corpus.fingerprint()
    # The same tokens in other sentences, or in other documents, are another corpus.
    assert (
        Corpus.from_documents([[[5, 6, 7]], *documents[1:]]).fingerprint() != corpus.fingerprint()
    )
    with pytest.raises(InputError, match="holds no token"):
        Corpus.from_documents([[[]]])


@pytest.mark.parametrize("family", ["bert", "roberta", "xlnet", "albert", "deberta-v2", "gpt2"])
def test_a_frame_is_what_the_tokenizer_puts_around_texts(family):
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


def test_a_frame_holds_no_unknown_token_where_the_pieces_lack_a_letter():
    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    pieces = [(piece, -1.0) for piece in (*special, "▁", "이", "다")]
    template = SpecialTokenTemplate.from_tokenizer(
        UnigramTokenizer(pieces, "deberta-v2")
    )  # "a" is "▁[UNK]"
    assert template.single == (((2, 0),), ((3, 0),))
    assert template.pair == (((2, 0),), ((3, 0),), ((3, 1),))

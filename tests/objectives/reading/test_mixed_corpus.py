"""Several corpora as one, in shares of tokens by weight."""

import numpy as np
import pytest

from tfnlp.objectives import Corpus, MixedCorpus
from tfnlp.utils.errors import InputError


def make_corpus(count, size, first):
    """`count` documents of two sentences, of `size` tokens in all."""
    documents = [[[first + i] * (size - 1), [first + i]] for i in range(count)]
    return Corpus.from_documents(documents)


def test_documents_come_in_shares_by_weight(caplog):
    corpora = [make_corpus(100, 10, 0), make_corpus(40, 5, 1000)]
    plain = MixedCorpus(corpora)
    assert len(plain) == 140 and plain.token_counts.tolist() == [10] * 100 + [5] * 40
    # 1000 tokens are three quarters: the other corpus gives 333 of its 200, 26.7 documents more.
    mixed = MixedCorpus(corpora, [3, 1])
    assert len(mixed) == 100 + 67
    assert [mixed.document(i)[0] for i in range(100)] == list(range(100))
    firsts, counts = np.unique([mixed.document(i)[0] for i in range(100, 167)], return_counts=True)
    assert firsts.tolist() == list(range(1000, 1040)) and set(counts) == {1, 2}
    assert mixed.token_counts.tolist() == [10] * 100 + [5] * 67
    assert mixed.sentence_counts.tolist() == [2] * 167
    for i in (3, 140):
        assert mixed.part(i, 1, 3).tolist() == mixed.document(i)[1:3].tolist()
        assert [s.tolist() for s in mixed.sentences(i)][1] == [mixed.document(i)[0]]
        assert mixed.sentence_lengths(i).tolist() == [mixed.token_counts[i] - 1, 1]
    with pytest.raises(IndexError, match="document 167 of 167"):
        mixed.document(167)
    # A third of the weight is four times as much of the small corpus as of the large one's pass.
    assert len(MixedCorpus(corpora, [1, 2])) == 100 + 400
    # A tiny weight makes a long pass of the rest: 1,000 tokens once, 200 tokens 5,000 times.
    caplog.clear()
    assert len(MixedCorpus(corpora, [1, 1000])) == 100 + 40 * 5000
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    message = record.getMessage()
    assert "are read 1, 5e+03 times in a pass, which so has 834 times their tokens" in message
    with pytest.raises(InputError, match=r"corpus_weights=1,1e\+30, .* 8\.33e\+29 times"):
        MixedCorpus(corpora, [1, 1e30])


def test_a_part_of_a_repetition_is_cut_by_tokens(caplog):
    caplog.set_level("INFO", "absl")
    sizes = np.random.default_rng(0).lognormal(3, 1, 60).astype(int) + 1
    unequal = Corpus.from_documents([[[i] * size] for i, size in enumerate(sizes)])
    total = sizes.sum()
    for seed in range(3):
        mixed = MixedCorpus([unequal, make_corpus(1, 2 * total, 1000)], [3, 4], seed)
        # 1.5 times the tokens, to within half of the longest document.
        assert abs(mixed.token_counts[:-1].sum() - 1.5 * total) <= sizes.max() / 2
    mixed = MixedCorpus([make_corpus(3, 4, 1000), unequal])
    assert mixed.token_counts.tolist() == [len(mixed.document(i)) for i in range(63)]
    # Documents stay whole, and the log says how much is read.
    caplog.clear()
    mixed = MixedCorpus([make_corpus(1, 1000, 0), make_corpus(1, 1000, 1)], [3, 2])
    assert mixed.token_counts.tolist() == [1000, 1000]
    assert "are read 1, 1 times in a pass" in caplog.text


def test_weights_are_part_of_the_fingerprint():
    corpora = [make_corpus(9, 4, 0), make_corpus(9, 4, 10)]
    prints = {MixedCorpus(corpora, w).fingerprint() for w in ([1, 1], [2, 1], [1, 2], None)}
    assert len(prints) == 3  # equal weights of equal corpora are each document once
    assert MixedCorpus(corpora, [1, 2]).fingerprint() in prints

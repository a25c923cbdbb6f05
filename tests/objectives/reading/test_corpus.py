"""A corpus in memory: documents and their sentences."""

import pytest

from tfnlp.objectives import Corpus
from tfnlp.utils.errors import InputError


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

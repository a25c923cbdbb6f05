import numpy as np
import pytest

from tests.kills import Killed, progress_of
from tfnlp.baselines import (
    Glove,
    GloveSettings,
    Word2Vec,
    Word2VecSettings,
    count_pairs,
    read_word_corpus,
    word_vector_model,
)
from tfnlp.training import RunFolder
from tfnlp.utils.errors import InputError

TEXTS = ["the cat sat on the mat", "the dog sat on the log", "a cat and a dog"] * 4


def make_word2vec(corpus):
    return Word2Vec(corpus, Word2VecSettings(dim=4, window=2, epochs=3, batch_words=5))


def make_glove(corpus):
    settings = GloveSettings(dim=4, epochs=3, batch_pairs=7)
    return Glove(corpus.words, count_pairs(corpus, 2), settings)


@pytest.mark.parametrize("make", [make_word2vec, make_glove])
def test_a_killed_training_ends_with_the_very_same_vectors(make, tmp_path, monkeypatch):
    monkeypatch.setattr(word_vector_model, "PART", 20)
    monkeypatch.setattr(word_vector_model, "SAVE_SECONDS", 0)
    corpus = read_word_corpus(TEXTS, min_count=1)
    fingerprints = {"input": corpus.fingerprint()}
    expected = make(corpus).train()

    def train(model):
        run = RunFolder(tmp_path, {"epochs": 3})
        with run.alone():
            return run, model.train(run, fingerprints)

    for parts in (1, 3):
        model = make(corpus)
        left, train_part = iter(range(parts)), model.train_part

        def killed(*place, left=left, train_part=train_part):
            if next(left, None) is None:
                raise Killed
            train_part(*place)

        model.train_part = killed
        with pytest.raises(Killed):
            train(model)
    run, vectors = train(make(corpus))
    np.testing.assert_array_equal(vectors.vectors, expected.vectors)
    assert progress_of(run)["epoch"] == 3
    with pytest.raises(InputError, match="on other content of input"):
        fingerprints["input"] = read_word_corpus(TEXTS[1:], min_count=1).fingerprint()
        train(make(corpus))


def test_vectors_that_are_not_finite():
    model = make_word2vec(read_word_corpus(TEXTS, min_count=1))
    model.outputs.assign(np.full(model.outputs.shape, np.nan))
    with pytest.raises(InputError, match=r"not finite after 1 epochs; .* learning_rate=0.025"):
        model.train()

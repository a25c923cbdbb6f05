"""Masked language modelling: masked tokens, batches and scores."""

import dataclasses

import numpy as np
import pytest

from tfnlp.models import BertConfig, Gpt2Config, build_model
from tfnlp.objectives import Corpus, MaskedLM, Masking, NextSentence
from tfnlp.text import WordPieceTokenizer
from tfnlp.utils.errors import InputError

MASK = 4


def test_bad_arguments_are_refused():
    bare = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"])
    MaskedLM().check(BertConfig(), NUMBERED)
    for call, word in (
        (lambda: Masking.from_tokenizer(bare), "MASK"),
        (lambda: Masking(MASK, np.arange(5, 9), share=0, replaced=0.3), "replaced=0.3"),
        (lambda: MaskedLM("letters"), "masked_units=letters"),
        (lambda: MaskedLM("spans", longest_span=0).masking(NUMBERED), "longest_span=0"),
        (lambda: MaskedLM().check(BertConfig(), bare), "MASK"),
        (lambda: MaskedLM().check(Gpt2Config(), NUMBERED), "'gpt2'"),
    ):
        with pytest.raises(InputError, match=word):
            call()


NUMBERED = WordPieceTokenizer(
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghij", *(f"w{i}" for i in range(400))]
)


OBJECTIVES = [MaskedLM("spans"), NextSentence()]


@pytest.mark.parametrize("objective", OBJECTIVES, ids=repr)
def test_a_prediction_does_not_see_its_masked_token(objective, tiny_config):
    sizes = np.random.default_rng(0).integers(1, 9, (12, 6))
    ids = iter(range(10, 400))
    documents = [[[next(ids) for _ in range(n)] for n in document] for document in sizes]
    config = dataclasses.replace(tiny_config, vocabulary_size=NUMBERED.vocabulary_size)
    trained = objective.trained(build_model(config, objective.head))

    def predicted(corpus):
        batches = objective.batches(corpus, NUMBERED, 4, 24, seed=2)
        inputs, labels = next(batches.epoch(7))
        labels = labels if isinstance(labels, np.ndarray) else labels["tokens"]
        return inputs, labels, trained(inputs)["logits"].numpy()

    inputs, labels, logits = predicted(Corpus.from_documents(documents))
    read = np.take_along_axis(inputs["token_ids"], inputs["masked_positions"], 1)
    seen = 0
    for row, place in np.argwhere((labels != -100) & (read == MASK))[::2]:
        token = labels[row, place]
        changed = [[[5 if i == token else i for i in s] for s in d] for d in documents]
        _, other_labels, other_logits = predicted(Corpus.from_documents(changed))
        assert other_labels[row, place] == 5
        np.testing.assert_array_equal(other_logits[row, place], logits[row, place])
        seen += 1
    assert seen > 2


def test_masked_lm_counts_correct_predictions():
    labels = np.array([[7, 3], [2, -100]])
    logits = np.zeros((2, 2, 9), "float32")
    logits[0, 0, 7], logits[0, 1, 4], logits[1, 0, 2] = 2, 1, 3
    hits, count = MaskedLM().scores(labels, {"logits": logits})["masked_accuracy"]
    assert (float(hits), float(count)) == (2, 3)
    # -log softmax of 2, 0 and 3 among eight zeros and of 0 beside a 1.
    expected = (np.log(np.exp(2) + 8) - 2 + np.log(np.exp(1) + 8) + np.log(np.exp(3) + 8) - 3) / 3
    found = MaskedLM().losses(labels, {"logits": logits})
    assert list(found) == ["masked_lm_loss"]
    assert float(found["masked_lm_loss"]) == pytest.approx(expected, rel=1e-6)
    # Texts weigh as they are told to: the second alone.
    found = MaskedLM().losses(labels, {"logits": logits}, np.array([0.0, 1.0]))
    assert float(found["masked_lm_loss"]) == pytest.approx(np.log(np.exp(3) + 8) - 3, rel=1e-6)


def test_masked_lm_of_a_corpus_reads_each_token_once():
    corpus = Corpus.from_documents(
        [[[*range(10, 13)], [*range(13, 20)]], [[*range(20, 55)]], [[60]]]
    )
    batches = MaskedLM().batches(corpus, NUMBERED, 2, 12, seed=1)
    assert sorted(batches.lengths.tolist()) == [3, 7, 12, 12, 12, 12]
    for epoch in range(2):
        found = []
        for inputs, labels in batches.epoch(epoch):
            ids, real = inputs["token_ids"].copy(), labels != -100
            ids[np.nonzero(real)[0], inputs["masked_positions"][real]] = labels[real]
            found += ids[ids > MASK].tolist()
        assert sorted(found) == [*range(10, 55), 60]
    lines = MaskedLM(packing="sentences").batches(corpus, NUMBERED, 2, 12)
    assert sorted(lines.lengths.tolist()) == [3, 5, 7, 9, 12, 12, 12]

"""Masked language modelling: masked tokens, batches and scores."""

import dataclasses

import numpy as np
import pytest

from tfnlp.models import BertConfig, Gpt2Config, build_model
from tfnlp.objectives import (
    Corpus,
    MaskedBatches,
    MaskedLM,
    Masking,
    NextSentence,
    SentenceOrder,
)
from tfnlp.text import LengthBatches, WordPieceTokenizer
from tfnlp.text.tokenizer import Encoding
from tfnlp.utils.errors import InputError

SPECIAL, MASK, IGNORED = range(5), 4, -100


TEXTS = ["a fine film", "the plot is dull .", "unbelievable !", "", "not a dull film , is x"]


def drawn_texts(rows=2000, seed=0):
    """Texts of 3 to 30 ordinary tokens between special ones: ids, padding mask, lengths."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(3, 31, rows)
    ids, mask = np.zeros((2, rows, 32), "int32")
    for row, n in enumerate(lengths):
        ids[row, 1 : n + 1] = rng.integers(5, 60, n)
        ids[row, 0], ids[row, n + 1] = 2, 3
        mask[row, : n + 2] = 1
    return ids, mask, lengths


def test_tokens_are_masked_and_replaced_as_in_the_paper():
    ids, mask, lengths = drawn_texts()
    masking = Masking(MASK, np.arange(5, 60))
    read, positions, labels = masking.mask(ids, mask, np.random.default_rng(1))
    real = labels != IGNORED
    # So many of each text, as BERT's own code counts them.
    expected = [max(1, round(0.15 * int(n))) for n in lengths]
    np.testing.assert_array_equal(real.sum(1), expected)
    assert positions.shape == (2000, max(expected)) and not positions[~real].any()
    chosen = np.zeros(ids.shape, bool)
    for row in range(2000):
        places = positions[row, real[row]]
        assert (np.diff(places) > 0).all()  # each once, in order
        chosen[row, places] = True
        np.testing.assert_array_equal(labels[row, real[row]], ids[row, places])
    assert not np.isin(ids[chosen], SPECIAL).any()
    np.testing.assert_array_equal(read[~chosen], ids[~chosen])
    # All places alike: the share of each among the texts that have one there.
    long = lengths == 30
    at = chosen[long][:, 1:31].mean(0)
    assert abs(at - 4 / 30).max() < 5 * np.sqrt(4 / 30 / long.sum())

    masked, kept = read[chosen] == MASK, read[chosen] == ids[chosen]
    others = read[chosen][~masked & ~kept]
    count = chosen.sum()
    # One in 55 of those that are drawn anew is what stood there.
    shares = {"masked": 0.8, "kept": 0.1 + 0.1 / 55, "others": 0.1 - 0.1 / 55}
    for name, number in (("masked", masked.sum()), ("kept", kept.sum()), ("others", len(others))):
        share = shares[name]
        assert abs(number / count - share) < 4 * np.sqrt(share * (1 - share) / count), name
    assert not np.isin(others, SPECIAL).any()
    assert set(others) == set(range(5, 60))


def test_texts_without_ordinary_tokens_have_nothing_to_predict():
    masking = Masking(MASK, np.arange(5, 60))
    ids = np.array([[2, 3, 0], [2, 1, 3]])
    read, positions, labels = masking.mask(ids, ids > 0, np.random.default_rng(0))
    np.testing.assert_array_equal(read, ids)
    assert positions.tolist() == [[0], [0]] and (labels == IGNORED).all()
    assert float(MaskedLM().loss(labels, {"logits": np.zeros((2, 1, 60), "float32")})) == 0


def test_whole_words_are_masked_together(tokenizer):
    texts = ["unbelievable dull films a finely film", "films 지루하다 unbelievable"] * 200
    encodings = tokenizer.encode(texts)
    masking = Masking.from_tokenizer(tokenizer, share=0.3, whole_words=True)
    batch = encodings.padded(range(len(texts)), tokenizer.pad_token_id)
    ids = batch["token_ids"]
    _, positions, labels = masking.mask(ids, batch["padding_mask"], np.random.default_rng(0))
    words = [[[1, 2, 3], [4], [5, 6], [7], [8, 9], [10]], [[1, 2], [3, 4], [5, 6, 7]]]
    tokens = [tokenizer.tokens(text) for text in texts[:2]]
    assert [len(t) for t in tokens] == [10, 7]
    hidden = 0
    for row, text in enumerate(words * 200):
        found = set(positions[row, labels[row] != IGNORED])
        chosen = [word for word in text if found & {*word}]
        assert found == {i for word in chosen for i in word}
        assert len(chosen) == round(0.3 * len(text))
        hidden += found >= {5, 6, 7}
    assert 0 < hidden < 400


def test_batches_of_one_length_have_few_numbers_of_positions():
    rng = np.random.default_rng(0)
    texts = [rng.integers(5, 30, rng.integers(3, 40)).tolist() for _ in range(40)]
    encodings = [Encoding(ids, [0] * len(ids), truncated=False) for ids in texts]
    masking = Masking(MASK, np.arange(5, 30), share=0.4)
    varied, fixed = (
        MaskedBatches(encodings, 8, masking, shuffle=True, fixed_length=length)
        for length in (None, 40)
    )
    shapes = [{labels.shape for _, labels in b.epoch()} for b in (varied, fixed)]
    assert len(shapes[0]) > 2 and shapes[1] == {(8, 16)}
    for inputs, labels in fixed.epoch():
        assert inputs["token_ids"].shape == (8, 40)
        real = labels != -100
        assert (inputs["masked_positions"][~real] == 0).all() and real.any(1).all()


def test_batches_of_an_epoch_depend_on_seed_and_epoch_alone(tokenizer):
    encodings = tokenizer.encode(TEXTS * 4)
    masking = Masking.from_tokenizer(tokenizer)
    options = {"shuffle": True, "seed": 3, "pad_token_id": tokenizer.pad_token_id}

    def batches(masking=masking, **other):
        return MaskedBatches(encodings, 4, masking, **options | other)

    first = list(batches().epoch(1))
    assert [len(labels) for _, labels in first] == [4] * 5
    for number, (inputs, labels) in enumerate(batches().dataset(lambda: 1, skip=2)):
        for key, value in inputs.items():
            np.testing.assert_array_equal(value, first[number + 2][0][key])
        np.testing.assert_array_equal(labels, first[number + 2][1])
    assert number == 2
    plain = LengthBatches(encodings, 4, **options)
    for (inputs, labels), indices in zip(first, plain.batch_indices(1), strict=True):
        (whole,) = plain.batch(indices)
        there = np.take_along_axis(whole["token_ids"], inputs["masked_positions"], 1)
        np.testing.assert_array_equal(labels[labels != -100], there[labels != -100])
    other = list(batches().epoch(2))
    assert any(a[1].tolist() != b[1].tolist() for a, b in zip(first, other, strict=True))
    prints = {
        given.fingerprint()
        for given in (
            *(batches(), plain, batches(seed=4), batches(dataclasses.replace(masking, share=0.2))),
            batches(Masking.from_tokenizer(tokenizer, whole_words=True)),
        )
    }
    assert len(prints) == 5 and batches().fingerprint() in prints


def test_bad_arguments_are_refused():
    bare = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"])
    with pytest.raises(InputError, match=r"The tokenizer has no \[MASK\] \(nor <mask>\), so"):
        Masking.from_tokenizer(bare)
    with pytest.raises(InputError, match=r"share=0, masked=0\.8 and replaced=0\.3 must be shares"):
        Masking(MASK, np.arange(5, 9), share=0, replaced=0.3)
    with pytest.raises(InputError, match="hide=letters is unknown; use one of tokens, words"):
        MaskedLM("letters")
    with pytest.raises(InputError, match="longest_span=0 must be at least 1"):
        MaskedLM("spans", longest_span=0).masking(NUMBERED)
    MaskedLM().check(BertConfig(), NUMBERED)
    with pytest.raises(InputError, match=r"The tokenizer has no \[MASK\]"):
        MaskedLM().check(BertConfig(), bare)
    with pytest.raises(InputError, match="head='masked_lm' does not fit the family 'gpt2'"):
        MaskedLM().check(Gpt2Config(), NUMBERED)


NUMBERED = WordPieceTokenizer(
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghij", *(f"w{i}" for i in range(400))]
)


OBJECTIVES = [
    *(MaskedLM(hide) for hide in ("tokens", "words", "spans")),
    NextSentence(),
    SentenceOrder(),
]


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
    lines = MaskedLM(packed=False).batches(corpus, NUMBERED, 2, 12)
    assert sorted(lines.lengths.tolist()) == [3, 5, 7, 9, 12, 12, 12]

import numpy as np

from tfnlp.text import LengthBatches, WordPieceTokenizer, read_examples
from tfnlp.text.tokenizers.tokenizer import Encoding


def encodings(lengths):
    return [Encoding(list(range(1, n + 1)), [0] * n, truncated=False) for n in lengths]


def test_a_batch_is_padded_to_its_longest():
    batches = LengthBatches(encodings([2, 4]), 2, labels=[1, 0], pad_token_id=9)
    inputs, labels = batches.batch(np.array([1, 0]))
    np.testing.assert_array_equal(inputs["token_ids"], [[1, 2, 3, 4], [1, 2, 9, 9]])
    np.testing.assert_array_equal(inputs["padding_mask"], [[1, 1, 1, 1], [1, 1, 0, 0]])
    np.testing.assert_array_equal(inputs["segment_ids"], np.zeros((2, 4)))  # not pads' id
    np.testing.assert_array_equal(labels, [0, 1])
    batches.fixed_length = 6
    inputs, _ = batches.batch(np.array([1, 0]))
    np.testing.assert_array_equal(inputs["token_ids"][0], [1, 2, 3, 4, 9, 9])
    assert batches.padding_share() == 0.5
    assert (
        batches.fingerprint()
        != LengthBatches(encodings([2, 4]), 2, [1, 0], pad_token_id=9).fingerprint()
    )


def test_batches_are_shown_without_what_they_hold():
    assert len(repr(LengthBatches(encodings([1] * 100), 2))) < 100


def test_every_example_comes_once_and_each_epoch_has_its_own_order():
    batches = LengthBatches(encodings(np.arange(103) % 13 + 1), 8, shuffle=True, seed=3)
    orders = [np.concatenate(batches.batch_indices(epoch)) for epoch in (0, 1, 0)]
    for order in orders:
        np.testing.assert_array_equal(np.sort(order), np.arange(103))
    assert len(batches) == len(batches.batch_indices()) == 13
    assert (orders[0] != orders[1]).any()
    np.testing.assert_array_equal(orders[0], orders[2])


def test_dataset_skips_and_follows_the_epoch():
    batches = LengthBatches(encodings([1, 2, 3, 4, 5]), 2, labels=range(5), shuffle=True)
    found = [y.numpy().tolist() for _, y in batches.dataset(lambda: 4, skip=1)]
    assert found == [batches.labels[b].tolist() for b in batches.batch_indices(4)[1:]]
    # Else the end of an epoch waits now and then for a thread that sleeps, up to a minute.
    assert batches.dataset().options().autotune.enabled is False


def test_sst2_has_less_than_a_tenth_padding(data_dir, minilm):
    texts = read_examples(data_dir / "sst2/train.tsv").texts
    encoded = WordPieceTokenizer.from_folder(minilm).encode(texts, max_length=128)
    for seed in range(3):
        batches = LengthBatches(encoded, 32, shuffle=True, seed=seed)
        assert batches.padding_share(epoch=seed) < 0.1

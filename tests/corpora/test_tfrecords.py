"""TFRecord files without TensorFlow, held against TensorFlow's own."""

import numpy as np
import pytest
import tensorflow as tf

from tfnlp.corpora.tfrecords import (
    FRAME,
    document_from_bytes,
    document_to_bytes,
    frame,
    unframe,
)


def test_records_are_those_that_tensorflow_writes(tmp_path):
    documents = [([5, 300, 70000], [1, 2]), ([], []), (list(range(3000)), [1000, 2000])]
    with tf.io.TFRecordWriter(str(tmp_path / "theirs")) as writer:
        for document in documents:
            features = {
                name: tf.train.Feature(int64_list=tf.train.Int64List(value=values))
                for name, values in zip(("token_ids", "sentence_lengths"), document, strict=True)
            }
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString(deterministic=True))
    ours = b"".join(frame(document_to_bytes(*document)) for document in documents)
    assert (tmp_path / "theirs").read_bytes() == ours


def test_a_record_gives_its_document_or_is_refused():
    data = document_to_bytes(np.array([7, 8, 9], "int32"), np.array([1, 2]))
    record = frame(data)
    assert len(record) == len(data) + FRAME and unframe(record) == data
    ids, lengths = document_from_bytes(data)
    assert ids.tolist() == [7, 8, 9] and ids.dtype == "int32"
    assert lengths.tolist() == [1, 2] and lengths.dtype == "int64"
    for place in range(len(record)):
        for bit in range(8):
            broken = bytearray(record)
            broken[place] ^= 1 << bit
            with pytest.raises(ValueError, match="its length or checksum differs"):
                unframe(bytes(broken))
    for size in range(len(record)):
        with pytest.raises(ValueError, match="its length or checksum differs"):
            unframe(record[:size])
    with pytest.raises(ValueError):
        document_from_bytes(b"\xff\xff\xff")

"""Tokenised documents as TFRecord records, without TensorFlow.

A file is a sequence of records in TensorFlow's framing (tensorflow/core/lib/io/record_writer.h):

    uint64  length of the data, little-endian
    uint32  masked CRC-32C of the length
    bytes   data
    uint32  masked CRC-32C of the data

The data is a `tf.train.Example` of integer lists. `token_ids` are the ids of a document without
special tokens. `sentence_lengths` are the numbers of tokens of its sentences. `continues` is [1],
and only present, if the record continues the document of the record before, as in long documents.
To read it with TensorFlow:

    names = ("token_ids", "sentence_lengths", "continues")
    features = {name: tf.io.RaggedFeature(tf.int64) for name in names}
    tf.data.TFRecordDataset(files).map(lambda x: tf.io.parse_single_example(x, features))
"""

import functools
import struct

import google_crc32c
import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.message import DecodeError

# Bytes of a record before its data, and in total around it.
HEADER, FRAME = 12, 16
_MASK_DELTA = 0xA282EAD8
# The messages of tensorflow/core/example/example.proto that integer lists need.
_EXAMPLE = """
name: "example.proto" package: "tensorflow" syntax: "proto3"
message_type { name: "Int64List"
  field { name: "value" number: 1 type: TYPE_INT64 label: LABEL_REPEATED } }
message_type { name: "Feature"
  field { name: "int64_list" number: 3 type: TYPE_MESSAGE type_name: ".tensorflow.Int64List" } }
message_type { name: "Features"
  field { name: "feature" number: 1 type: TYPE_MESSAGE label: LABEL_REPEATED
    type_name: ".tensorflow.Features.FeatureEntry" }
  nested_type { name: "FeatureEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type: TYPE_MESSAGE label: LABEL_OPTIONAL
      type_name: ".tensorflow.Feature" } } }
message_type { name: "Example"
  field { name: "features" number: 1 type: TYPE_MESSAGE type_name: ".tensorflow.Features" } }
"""


def frame(data):
    """Return data framed as a TFRecord record."""
    return _header(len(data)) + data + struct.pack("<I", _masked(google_crc32c.value(data)))


def unframe(record):
    """Return the data of a whole record.

    Raises:
        ValueError: if the record is truncated, or a checksum differs.
    """
    data = record[HEADER:-4]
    if len(record) < FRAME or record != frame(data):
        raise ValueError("its length or checksum differs")
    return data


def document_to_bytes(token_ids, sentence_lengths, continues=False):
    """Serialise a document, or a part of one, as a `tf.train.Example`.

    Args:
        token_ids: (tokens,) integers.
        sentence_lengths: (sentences,) integers.
        continues: whether the record continues the document of the record before.
    """
    example, features = _example_class()(), {"continues": [1]} if continues else {}
    features |= {"sentence_lengths": sentence_lengths, "token_ids": token_ids}
    for name, values in features.items():
        example.features.feature[name].int64_list.value.extend(np.asarray(values).tolist())
    return example.SerializeToString(deterministic=True)


def document_from_bytes(data):
    """Parse a serialised document into ids (tokens,) int32 and sentence lengths (sentences,)
    int64.

    Raises:
        ValueError: if the data is not a serialised document.
    """
    try:
        features = _example_class().FromString(data).features.feature
    except DecodeError as e:
        raise ValueError(str(e)) from None
    ids, lengths = (
        features[name].int64_list.value[:] for name in ("token_ids", "sentence_lengths")
    )
    return np.array(ids, "int32"), np.array(lengths, "int64")


@functools.lru_cache(maxsize=4096)
def _header(length):
    packed = struct.pack("<Q", length)
    return packed + struct.pack("<I", _masked(google_crc32c.value(packed)))


def _masked(crc):
    """Return TensorFlow's masked checksum: bits rotated by 15, plus a constant."""
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


@functools.cache
def _example_class():
    """Return a class of `tf.train.Example` with integer lists alone.

    The original class would import all of TensorFlow in every process that prepares a corpus.
    """
    file = text_format.Parse(_EXAMPLE, descriptor_pb2.FileDescriptorProto())
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tensorflow.Example"))

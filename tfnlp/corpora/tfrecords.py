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

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.message import DecodeError

# Bytes of a record before its data, and in total around it.
HEADER, FRAME = 12, 16
_MASK_DELTA = 0xA282EAD8
# CRC-32C (Castagnoli), bits reversed.
_POLYNOMIAL = 0x82F63B78
# The number of bytes whose checksum is one reduction over a table.
_BLOCK = 1024
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
    return _header(len(data)) + data + struct.pack("<I", _masked(crc32c(data)))


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


def crc32c(data):
    """Compute the CRC-32C of bytes.

    The checksum is linear. That of a block is the exclusive or of a table entry for each byte at
    its distance from the end.
    """
    table, offsets = _tables()
    state = 0xFFFFFFFF
    for begin in range(0, len(data), _BLOCK):
        block = np.frombuffer(data, "uint8", min(_BLOCK, len(data) - begin), begin)
        size = len(block)
        # The state so far is combined with the first four bytes of the block.
        places = offsets[_BLOCK - size :] + block
        carried = min(size, 4)
        places[:carried] ^= np.frombuffer(struct.pack("<I", state), "uint8")[:carried]
        rest = state >> 8 * size if size < 4 else 0
        state = int(np.bitwise_xor.reduce(table[places])) ^ rest
    return state ^ 0xFFFFFFFF


@functools.lru_cache(maxsize=4096)
def _header(length):
    packed = struct.pack("<Q", length)
    return packed + struct.pack("<I", _masked(crc32c(packed)))


def _masked(crc):
    """Return TensorFlow's masked checksum: bits rotated by 15, plus a constant."""
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


@functools.cache
def _tables():
    """Return the checksum tables: each byte's contribution at each place of a block, and offsets.

    The table is flattened; an offset is the start of a place in it.
    """
    byte = np.arange(256, dtype="uint32")
    for _ in range(8):
        byte = np.where(byte & 1, (byte >> 1) ^ np.uint32(_POLYNOMIAL), byte >> 1)
    table = np.empty((_BLOCK, 256), "uint32")
    table[-1] = byte
    for place in range(_BLOCK - 2, -1, -1):  # one zero byte further from the end
        later = table[place + 1]
        table[place] = (later >> 8) ^ byte[later & 0xFF]
    return table.ravel(), np.arange(_BLOCK) * 256


@functools.cache
def _example_class():
    """Return a class of `tf.train.Example` with integer lists alone.

    The original class would import all of TensorFlow in every process that prepares a corpus.
    """
    file = text_format.Parse(_EXAMPLE, descriptor_pb2.FileDescriptorProto())
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tensorflow.Example"))

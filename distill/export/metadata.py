"""TFLite metadata inside a .tflite file, for mobile runtimes.

Follows `metadata_schema.fbs` 1.5.0 of MediaPipe (file identifier M001): a flatbuffer in the
model's buffer `TFLITE_METADATA`. The files that it names are appended to the model, see
`associated_files.py`. Numbers of slots and enums below are that schema's.
"""

import dataclasses

import flatbuffers
from tensorflow.lite.python import schema_py_generated as schema

from distill.runtime.associated_files import (
    LABELS_FILE,
    SENTENCEPIECE_FILE,
    SETTINGS_FILE,
    TOKENIZER_FILE,
    VOCABULARY_FILE,
    add_files,
)
from tfnlp.text import WordPieceTokenizer

METADATA_NAME = "TFLITE_METADATA"
IDENTIFIER = b"M001"
# The first schema version with all fields used here (BertTokenizerOptions).
MIN_PARSER_VERSION = "1.1.0"

# enum AssociatedFileType
UNKNOWN, TENSOR_AXIS_LABELS, VOCABULARY = 0, 2, 5
# union ProcessUnitOptions
SCORE_THRESHOLDING_OPTIONS, BERT_TOKENIZER_OPTIONS, SENTENCEPIECE_TOKENIZER_OPTIONS = 3, 4, 5
# union ContentProperties
FEATURE_PROPERTIES = 1


@dataclasses.dataclass(frozen=True)
class Credits:
    """Version, author and license of a model; a field is left out where None.

    Args:
        version: of the model, such as "1.2".
        author: of the model.
        license: of the model.
    """

    version: str | None = None
    author: str | None = None
    license: str | None = None


def tokenizer_files(tokenizer):
    """Return {name: text} of the file that holds a tokenizer."""
    if isinstance(tokenizer, WordPieceTokenizer):
        return {VOCABULARY_FILE: "\n".join(tokenizer.vocabulary)}
    return {TOKENIZER_FILE: tokenizer.to_json()}


def complete_file(content, options, description, descriptions, settings, files):
    """Add metadata, settings and associated files to a converted model.

    MediaPipe uses the tokenizer of the metadata: BERT's if there is a vocabulary among the files,
    SentencePiece's if there is a SentencePiece model. `LABELS_FILE` names the entries of the first
    output's last axis.

    Args:
        content: the bytes of the .tflite.
        options: `Export` or `DecoderExport`. Of a classifier with a `score_threshold`, MediaPipe
            leaves out lower scores.
        description: of the model.
        descriptions: {a name of inputs or outputs, or the start of some: their description}.
        settings: a dict, of the tokenizer and the model.
        files: {name: text or bytes} of the associated files.

    Returns:
        The bytes of the new .tflite.
    """
    tree = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content))
    # Runtimes look tensors up by name, in the order of the first graph.
    (signature,) = [x for x in tree.signatureDefs if x.subgraphIndex == 0]
    inputs, outputs = (
        {
            names[i]: next(d for start, d in descriptions.items() if names[i].startswith(start))
            for i in order
        }
        for names, order in (
            (_names(signature.inputs), tree.subgraphs[0].inputs),
            (_names(signature.outputs), tree.subgraphs[0].outputs),
        )
    )
    metadata = _metadata(options, description, inputs, outputs, [SETTINGS_FILE, *files])
    entry, buffer = schema.MetadataT(), schema.BufferT()
    entry.name, entry.buffer, buffer.data = METADATA_NAME, len(tree.buffers), list(metadata)
    tree.buffers.append(buffer)
    tree.metadata = [*(tree.metadata or []), entry]
    b = flatbuffers.Builder(len(content) + len(metadata) + 1024)
    b.Finish(tree.Pack(b), file_identifier=b"TFL3")
    return add_files(bytes(b.Output()), settings, files)


def _names(tensors):
    """Return {index: name} of a signature's inputs or outputs."""
    return {tensor.tensorIndex: tensor.name.decode() for tensor in tensors}


def _metadata(options, description, inputs, outputs, files):
    """Return the metadata flatbuffer; `inputs` and `outputs` are {name: description}."""
    score_threshold = getattr(options, "score_threshold", None)
    b = flatbuffers.Builder(1024)
    tensors = []
    for i, output in enumerate(outputs.items()):
        axis, units = [], []
        if LABELS_FILE in files and i == 0:
            text = "The class names, in order of the output."
            axis = [_file(b, LABELS_FILE, text, TENSOR_AXIS_LABELS)]
        if score_threshold is not None and i == 0:
            b.StartObject(1)  # ScoreThresholdingOptions
            b.PrependFloat32Slot(0, score_threshold, 0.0)
            units = [_process_unit(b, SCORE_THRESHOLDING_OPTIONS, b.EndObject())]
        tensors.append(_tensor(b, *output, axis, units))
    described_inputs = [_tensor(b, *each) for each in inputs.items()]
    slots = {2: _vector(b, described_inputs), 3: _vector(b, tensors)}
    if VOCABULARY_FILE in files:
        vocabulary = _file(b, VOCABULARY_FILE, "The WordPiece vocabulary, one a line.", VOCABULARY)
        bert = _table(b, 1, {0: _vector(b, [vocabulary])})  # BertTokenizerOptions
        slots[5] = _vector(b, [_process_unit(b, BERT_TOKENIZER_OPTIONS, bert)])
    if SENTENCEPIECE_FILE in files:
        pieces = _file(b, SENTENCEPIECE_FILE, "The SentencePiece model.", UNKNOWN)
        sentencepiece = _table(b, 2, {0: _vector(b, [pieces])})  # SentencePieceTokenizerOptions
        slots[5] = _vector(b, [_process_unit(b, SENTENCEPIECE_TOKENIZER_OPTIONS, sentencepiece)])
    named_above = (VOCABULARY_FILE, LABELS_FILE, SENTENCEPIECE_FILE)
    text = "The settings of the tokenizer and the model."
    others = [_file(b, name, text, UNKNOWN) for name in files if name not in named_above]
    subgraph = _table(b, 7, slots)
    credits = dataclasses.astuple(options.credits or Credits())  # version, author, license
    model = {slot: b.CreateString(x) for slot, x in zip((2, 4, 5), credits, strict=True) if x}
    model |= {0: b.CreateString(options.name), 1: b.CreateString(description)}
    model |= {3: _vector(b, [subgraph]), 6: _vector(b, others)}
    model[7] = b.CreateString(MIN_PARSER_VERSION)
    b.Finish(_table(b, 8, model), file_identifier=IDENTIFIER)
    return bytes(b.Output())


def _tensor(b, name, description, files=(), process_units=()):
    content = _table(b, 3, {1: _table(b, 0, {})}, {0: FEATURE_PROPERTIES})
    slots = {0: b.CreateString(name), 1: b.CreateString(description), 3: content}
    if process_units:
        slots[4] = _vector(b, process_units)
    if files:
        slots[6] = _vector(b, files)
    return _table(b, 7, slots)


def _file(b, name, description, kind):
    slots = {0: b.CreateString(name), 1: b.CreateString(description)}
    return _table(b, 3, slots, {2: kind})


def _process_unit(b, kind, options):
    return _table(b, 2, {1: options}, {0: kind})


def _table(b, size, offsets, small=None):
    """Build a table with `size` slots: offsets of other objects, and one-byte numbers."""
    b.StartObject(size)
    for slot, offset in offsets.items():
        b.PrependUOffsetTRelativeSlot(slot, offset, 0)
    for slot, number in (small or {}).items():
        b.PrependUint8Slot(slot, number, 0)
    return b.EndObject()


def _vector(b, offsets):
    b.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        b.PrependUOffsetTRelative(offset)
    return b.EndVector()

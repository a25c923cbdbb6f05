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
    VOCABULARY_FILE,
    add_files,
)

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


def complete_file(content, options, description, descriptions, settings, files):
    """Add metadata, settings and associated files to a converted model.

    Args:
        content: the bytes of the .tflite.
        options: `Export` or `DecoderExport`, for the name and the credits.
        description: of the model.
        descriptions: {a name of inputs or outputs, or the start of some: their description}.
        settings: a dict, of the tokenizer and the model.
        files: {name: text or bytes} of the associated files.

    Returns:
        The bytes of the new .tflite.
    """
    inputs, outputs = (
        {name: _description_of(name, descriptions) for name in names}
        for names in tensor_names(content)
    )
    metadata = text_model_metadata(options, description, inputs, outputs, [SETTINGS_FILE, *files])
    return add_files(add_metadata(content, metadata), settings, files)


def _description_of(name, descriptions):
    return next(text for start, text in descriptions.items() if name.startswith(start))


def text_model_metadata(options, description, inputs, outputs, files):
    """Build the metadata flatbuffer of a model that reads text.

    Args:
        options: has the `name` of the model, `credits` (`Credits` or None) and, for a
            classifier, the `score_threshold` of the first output: MediaPipe leaves out lower
            scores.
        description: of the model.
        inputs: {name: description} in the order of the subgraph's inputs; runtimes look them up
            by name.
        outputs: the same of the outputs.
        files: the names of the associated files. A vocabulary among them is declared as BERT's
            tokenizer, and a SentencePiece model as SentencePiece's; MediaPipe then uses it.
            `LABELS_FILE` names the entries of the first output's last axis.

    Returns:
        bytes.
    """
    score_threshold = getattr(options, "score_threshold", None)
    b = flatbuffers.Builder(1024)
    tensors = []
    for i, output in enumerate(outputs.items()):
        axis = []
        if LABELS_FILE in files and i == 0:
            text = "The class names, in order of the output."
            axis = [_file(b, LABELS_FILE, text, TENSOR_AXIS_LABELS)]
        units = []
        if score_threshold is not None and i == 0:
            threshold = _threshold(b, score_threshold)
            units = [_process_unit(b, SCORE_THRESHOLDING_OPTIONS, threshold)]
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
    others = [
        _file(b, name, "The settings of the tokenizer and the model.", UNKNOWN)
        for name in files
        if name not in (VOCABULARY_FILE, LABELS_FILE, SENTENCEPIECE_FILE)
    ]
    subgraph = _table(b, 7, slots)
    credits = dataclasses.astuple(options.credits or Credits())  # version, author, license
    credits = {slot: b.CreateString(x) for slot, x in zip((2, 4, 5), credits, strict=True) if x}
    model = _table(
        b,
        8,
        credits
        | {
            0: b.CreateString(options.name),
            1: b.CreateString(description),
            3: _vector(b, [subgraph]),
            6: _vector(b, others),
            7: b.CreateString(MIN_PARSER_VERSION),
        },
    )
    b.Finish(model, file_identifier=IDENTIFIER)
    return bytes(b.Output())


def add_metadata(model, metadata):
    """Add metadata to a .tflite model.

    Args:
        model: the bytes of the .tflite.
        metadata: the bytes of the metadata flatbuffer.

    Returns:
        The bytes of the new .tflite.
    """
    tree = schema.ModelT.InitFromObj(schema.Model.GetRootAs(model))
    entry = schema.MetadataT()
    entry.name = METADATA_NAME
    entry.buffer = len(tree.buffers)
    buffer = schema.BufferT()
    buffer.data = list(metadata)
    tree.buffers.append(buffer)
    tree.metadata = [*(tree.metadata or []), entry]
    b = flatbuffers.Builder(len(model) + len(metadata) + 1024)
    b.Finish(tree.Pack(b), file_identifier=b"TFL3")
    return bytes(b.Output())


def tensor_names(model):
    """Return the input and output names of a .tflite model's first graph, in order."""
    tree = schema.ModelT.InitFromObj(schema.Model.GetRootAs(model))
    (signature,) = [x for x in tree.signatureDefs if x.subgraphIndex == 0]
    graph = tree.subgraphs[0]
    inputs = {i.tensorIndex: i.name.decode() for i in signature.inputs}
    outputs = {i.tensorIndex: i.name.decode() for i in signature.outputs}
    return [inputs[i] for i in graph.inputs], [outputs[i] for i in graph.outputs]


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


def _threshold(b, score):
    """Build a ScoreThresholdingOptions table."""
    b.StartObject(1)
    b.PrependFloat32Slot(0, score, 0.0)
    return b.EndObject()


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

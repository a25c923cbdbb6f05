"""TFLite metadata inside a .tflite file, for mobile runtimes.

Follows `metadata_schema.fbs` 1.5.0 of MediaPipe (file identifier M001): a flatbuffer in the
model's buffer `TFLITE_METADATA`. The files that it names are appended to the model, see
`associated_files.py`. Numbers of slots and enums below are that schema's.
"""

import flatbuffers
from ai_edge_litert import schema_py_generated as schema

from distill.export.options import Credits
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
# union ContentProperties, and its only table here: {type, properties}
FEATURE = {0: 1, 1: {}}


def tokenizer_files(tokenizer):
    """Return {name: text} of the file that holds a tokenizer."""
    if isinstance(tokenizer, WordPieceTokenizer) and not tokenizer.added_tokens:
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
    described = [
        [{0: name, 1: text, 3: FEATURE} for name, text in tensors.items()]
        for tensors in (inputs, outputs)
    ]
    subgraph = {2: described[0], 3: described[1]}
    first_output = described[1][0]
    if getattr(options, "score_threshold", None) is not None:
        threshold = {0: float(options.score_threshold)}
        first_output[4] = [{0: SCORE_THRESHOLDING_OPTIONS, 1: threshold}]
    others = {name: "The settings of the tokenizer and the model." for name in files}
    if others.pop(LABELS_FILE, None):
        text = "The class names, in order of the output."
        first_output[6] = [{0: LABELS_FILE, 1: text, 2: TENSOR_AXIS_LABELS}]
    if others.pop(VOCABULARY_FILE, None):
        text = "The WordPiece vocabulary, one a line."
        tokenizer = {0: [{0: VOCABULARY_FILE, 1: text, 2: VOCABULARY}]}
        subgraph[5] = [{0: BERT_TOKENIZER_OPTIONS, 1: tokenizer}]
    if others.pop(SENTENCEPIECE_FILE, None):
        tokenizer = {0: [{0: SENTENCEPIECE_FILE, 1: "The SentencePiece model.", 2: UNKNOWN}]}
        subgraph[5] = [{0: SENTENCEPIECE_TOKENIZER_OPTIONS, 1: tokenizer}]
    credits = options.credits or Credits()
    model = {0: options.name, 1: description, 2: credits.version, 3: [subgraph]}
    model |= {4: credits.author, 5: credits.license, 7: MIN_PARSER_VERSION}
    model[6] = [{0: name, 1: text, 2: UNKNOWN} for name, text in others.items()]
    b = flatbuffers.Builder(1024)
    b.Finish(_build(b, model), file_identifier=IDENTIFIER)
    return bytes(b.Output())


def _build(b, value):
    """Return the offset of a string, a vector (a list) or a table ({slot: value})."""
    if isinstance(value, str):
        return b.CreateString(value)
    if isinstance(value, list):
        offsets = [_build(b, entry) for entry in value]
        b.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            b.PrependUOffsetTRelative(offset)
        return b.EndVector()
    value = {slot: entry for slot, entry in value.items() if entry is not None}
    offsets = {k: _build(b, x) for k, x in value.items() if not isinstance(x, int | float)}
    b.StartObject(max(value, default=-1) + 1)
    for slot, entry in value.items():
        if slot in offsets:
            b.PrependUOffsetTRelativeSlot(slot, offsets[slot], 0)
        elif isinstance(entry, float):
            b.PrependFloat32Slot(slot, entry, 0.0)
        else:
            b.PrependUint8Slot(slot, entry, 0)
    return b.EndObject()

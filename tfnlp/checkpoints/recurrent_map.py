"""Folder format of recurrent networks with tfnlp's names; `transformers` lacks them."""

import dataclasses

from tfnlp.checkpoints.family import Family, Weight
from tfnlp.configs import RecurrentConfig, RecurrentTranslatorConfig
from tfnlp.configs.recurrent_config import STATES

# Keras' names of the cells within its layers.
CELL_NAMES = {"rnn": "simple_rnn_cell", "lstm": "lstm_cell", "gru": "gru_cell"}
CELL_WEIGHTS = ("kernel", "recurrent_kernel", "bias")


def recurrent_weights(config, head):
    yield _weight("embeddings/token_table")
    yield from _layers(config, "")
    if head in ("classifier", "tagger", "chooser"):
        yield from _dense("classifier", head=True)
    elif head == "answerer":
        yield from _dense("span", head=True)
    elif head == "causal_lm":
        yield from _output(config)


def translator_weights(config, head):
    yield _weight("embeddings/token_table")
    if not config.share_embeddings:
        yield _weight("encoder_embeddings/token_table")
    yield from _layers(config, "encoder_")
    if config.bidirectional:
        for i in range(config.num_layers):
            for k in range(STATES[config.cell]):
                yield from _dense(f"bridge_{i}_{k}")
    for i in range(config.num_layers):
        for name in CELL_WEIGHTS:
            yield _weight(f"decoder/cell_{i}/{name}")
    parts = {"general": ("key",), "concat": ("query", "key", "direction")}
    for part in parts.get(config.attention, ()):
        yield _weight(f"decoder/attention/{part}/kernel")
    if config.attention is not None:
        yield _weight("decoder/combine/kernel")
    if head == "sequence_to_sequence":
        yield from _output(config)


def _layers(config, prefix):
    for i in range(config.num_layers):
        for direction in config.directions:
            for name in CELL_WEIGHTS:
                yield _weight(f"{prefix}{direction}_{i}/{CELL_NAMES[config.cell]}/{name}")


def _output(config):
    if not config.tie_embeddings:
        yield _weight("lm_output/kernel", head=True)
    if config.output_bias:
        yield _weight("lm_bias/bias", head=True)


def _dense(path, head=False):
    yield _weight(f"{path}/kernel", head)
    yield _weight(f"{path}/bias", head)


def _weight(path, head=False):
    return Weight(path, path.replace("/", "."), head=head)


def _fields(config):
    """Return {their field: ours}: equal names, except for `vocab_size`."""
    names = {field.name: field.name for field in dataclasses.fields(config)}
    names["vocab_size"] = names.pop("vocabulary_size")
    return names


def _decode(ours, fields):
    # A field that is null means the default.
    return ours | {"attention": None} if ours.get("attention") == "none" else ours


def _encode(theirs, config):
    return theirs | {"attention": config.attention or "none"}


RECURRENT = Family(
    model_type="recurrent",
    config=RecurrentConfig,
    prefix="recurrent.",
    fields=_fields(RecurrentConfig),
    weights=recurrent_weights,
    architectures={
        None: "RecurrentModel",
        "classifier": "RecurrentForSequenceClassification",
        "tagger": "RecurrentForTokenClassification",
        "answerer": "RecurrentForQuestionAnswering",
        "chooser": "RecurrentForMultipleChoice",
        "causal_lm": "RecurrentForCausalLM",
    },
)
RECURRENT_TRANSLATOR = Family(
    model_type="recurrent_translator",
    config=RecurrentTranslatorConfig,
    prefix="recurrent.",
    fields=_fields(RecurrentTranslatorConfig),
    weights=translator_weights,
    architectures={
        None: "RecurrentTranslatorModel",
        "sequence_to_sequence": "RecurrentTranslatorForConditionalGeneration",
    },
    decode=_decode,
    encode=_encode,
)

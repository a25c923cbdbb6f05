"""Folder format of recurrent networks with tfnlp's names; `transformers` lacks them."""

import dataclasses

from tfnlp.checkpoints.checkpoint_map import CheckpointMap, Weight, architectures, of_head
from tfnlp.configs import RecurrentConfig, RecurrentTranslatorConfig


def same(*paths):
    """Return `Weight`s with our names, dots for slashes."""
    return tuple(Weight(path, path.replace("/", ".")) for path in paths)


def cell_weights(path):
    """Return the `Weight`s of a recurrent cell."""
    return same(f"{path}/kernel", f"{path}/recurrent_kernel", f"{path}/bias")


ENCODER = (
    *same("embeddings/token_table", "encoder_embeddings/token_table"),
    *(
        weight
        for direction in ("forward", "backward", "encoder_forward", "encoder_backward")
        for cell in ("simple_rnn_cell", "lstm_cell", "gru_cell")  # Keras' names
        for weight in cell_weights(f"{direction}_{{}}/{cell}")
    ),
    *same("bridge_{}_{}/kernel", "bridge_{}_{}/bias"),
    *cell_weights("decoder/cell_{}"),
    *same("decoder/attention/query/kernel", "decoder/attention/key/kernel"),
    *same("decoder/attention/direction/kernel", "decoder/combine/kernel"),
)
CLASSIFIER = of_head(same("classifier/kernel", "classifier/bias"))
LM = of_head(same("lm_output/kernel", "lm_bias/bias"))


def own_fields(config):
    """Return {their field: ours}: equal names, except for `vocab_size`."""
    names = {field.name: field.name for field in dataclasses.fields(config)}
    names["vocab_size"] = names.pop("vocabulary_size")
    return names


def with_tuples(ours, fields):
    """Return the fields of a config with tuples for the lists of JSON."""
    return {name: tuple(x) if isinstance(x, list) else x for name, x in ours.items()}


def _decode(ours, fields):
    # A field that is null means the default.
    return ours | {"attention": None} if ours.get("attention") == "none" else ours


def _encode(theirs, config):
    return theirs | {"attention": config.attention or "none"}


RECURRENT = CheckpointMap(
    model_type="recurrent",
    config=RecurrentConfig,
    prefix="recurrent.",
    fields=own_fields(RecurrentConfig),
    encoder=ENCODER,
    heads={
        **dict.fromkeys(("classifier", "tagger", "chooser"), CLASSIFIER),
        "answerer": of_head(same("span/kernel", "span/bias")),
        "causal_lm": LM,
    },
    architectures=architectures(
        "Recurrent",
        *("classifier", "tagger", "answerer", "chooser"),
        causal_lm="RecurrentForCausalLM",
    ),
)
RECURRENT_TRANSLATOR = CheckpointMap(
    model_type="recurrent_translator",
    config=RecurrentTranslatorConfig,
    prefix="recurrent.",
    fields=own_fields(RecurrentTranslatorConfig),
    encoder=ENCODER,
    heads={"sequence_to_sequence": LM},
    architectures={
        None: "RecurrentTranslatorModel",
        "sequence_to_sequence": "RecurrentTranslatorForConditionalGeneration",
    },
    decode=_decode,
    encode=_encode,
)

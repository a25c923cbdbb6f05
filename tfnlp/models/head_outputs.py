"""Predictions of each head: from an encoder's outputs to those of a model."""

import dataclasses

import keras

from tfnlp import models
from tfnlp.configs import BaseConfig, VectorHead
from tfnlp.layers import SplitChoices
from tfnlp.models import heads
from tfnlp.models.shared_parts import BuildOptions
from tfnlp.models.vectors import text_vector


@dataclasses.dataclass(frozen=True)
class Encoded:
    """Texts after their encoder.

    Args:
        config: of the model.
        inputs: {name: tensor}, of the model.
        outputs: {name: tensor}, of the encoder.
        options: of the model.
    """

    config: BaseConfig
    inputs: dict
    outputs: dict
    options: BuildOptions

    @property
    def encoder(self):
        """The model from inputs to the last states."""
        return keras.Model(self.inputs, self.states)

    @property
    def states(self):
        """The last states (B, L, D)."""
        return self.outputs["sequence_output"]

    @property
    def pooled(self):
        """The vectors of texts (B, D)."""
        return self.outputs["pooled_output"]


def _classes(text, num_classes):
    config = text.config
    if not text.options.vectors:
        return {"logits": heads.classify(config, text.pooled, num_classes, config.head_dropout)}
    vector = _vector(text, num_classes)
    return {"logits": heads.classify_vector(config, vector["embedding"], num_classes)} | vector


def _choices(text, num_classes):
    logits = heads.classify(text.config, text.pooled, 1, text.config.chooser_dropout)
    split = SplitChoices(dtype="float32", name="choices")
    return {"logits": split(logits, text.inputs["token_ids"])}


def _tags(text, num_classes):
    return {"logits": heads.tag(text.config, text.states, num_classes)}


def _places(text, num_classes):
    start, end = heads.answer(text.config, text.states)
    return {"start_logits": start, "end_logits": end}


def _vector(text, num_classes):
    mask = text.inputs["padding_mask"]
    return {"embedding": text_vector(text.options.vectors or VectorHead(), text.states, mask)}


def _replaced(text, num_classes):
    positions = text.inputs.get("positions")
    return {"logits": heads.discriminate(text.config, text.states, positions)}


def _both_directions(text, num_classes):
    return heads.bidirectional_lm(text.config, text.states)


def _masked_tokens(text, num_classes):
    config, x = text.config, text.states
    encoder = text.encoder
    if config.enhanced_mask_decoder:
        states = text.outputs["hidden_states"]
        x = models.deberta.decode_masks(config, encoder, text.inputs, states, text.options)
    return {"logits": heads.masked_lm(config, encoder.get_layer("embeddings"), x)}


def _masked_tokens_and_pairs(text, num_classes):
    tokens = _masked_tokens(text, num_classes)  # first, as the order decides what seeds draw
    return tokens | {"pair_logits": heads.compare_texts(text.config, text.pooled)}


def _next_tokens(text, num_classes):
    return _tokens(text, use_bias=text.config.output_bias)


def _permuted_tokens(text, num_classes):
    return _tokens(text, use_bias=True)


def _tokens(text, use_bias):
    config, x = text.config, text.states
    embeddings = text.encoder.get_layer("embeddings")
    if config.adaptive_softmax:
        return {"logits": heads.adaptive_lm(config, embeddings, x)}
    return {"logits": heads.lm(config, embeddings, x, use_bias)}


# Functions of `Encoded` texts and the number of classes to {name: tensor}, by head.
PREDICTIONS = {
    "classifier": _classes,
    "multi_label_classifier": _classes,
    "chooser": _choices,
    "embedder": _vector,
    "tagger": _tags,
    "answerer": _places,
    "masked_lm": _masked_tokens,
    "pretraining": _masked_tokens_and_pairs,
    "causal_lm": _next_tokens,
    "permutation_lm": _permuted_tokens,
    "bidirectional_lm": _both_directions,
    "discriminator": _replaced,
}

"""Replaced-token detection with a generator and a discriminator.

Clark et al. 2020, 'ELECTRA', section 2, and He et al. 2021, 'DeBERTaV3', section 3.
"""

import dataclasses
from typing import ClassVar

import keras
import numpy as np
from keras import ops

from tfnlp.configs import family_name
from tfnlp.layers import GradientDisentangledEmbedding
from tfnlp.models import DebertaConfig, build_model, config_of
from tfnlp.objectives.masked_lm import MaskedLM, count_hits
from tfnlp.objectives.masked_positions import predict_at_positions
from tfnlp.objectives.masking import POSITIONS, MaskedBatches
from tfnlp.objectives.segments import Segments
from tfnlp.objectives.special_token_template import Frame
from tfnlp.text.batches import IGNORED
from tfnlp.utils.errors import InputError
from tfnlp.weighted_losses import cross_entropy, weighted_mean

# The inputs with the original tokens at masked positions, and a random number in [0, 1) for each.
ORIGINALS, DRAWS = "masked_ids", "draws"
# The generator's share of the width in ELECTRA's code, and of the layers in the paper of DeBERTa
# v3.
WIDTH_SHARE, LAYER_SHARE = 0.25, 0.5
# The number of tokens of a block of cumulative sums.
BLOCK = 128


@dataclasses.dataclass(frozen=True)
class ReplacedTokens:
    """Joint training of an ELECTRA or DeBERTa v3 discriminator and its generator.

    The generator, a masked language model, learns to predict masked tokens. A token sampled from
    its prediction replaces each of them. The discriminator, the model of interest, predicts for
    every token whether it was replaced. A sample that equals the original token counts as
    original. No gradient passes through the sampling.

    Args:
        share: the share of each text's tokens that is masked.
        masked: the share of those that the generator reads as [MASK] rather than unchanged: 0.85
            in ELECTRA's code, 1 in that of DeBERTa v3.
        generator_size: the size of the generator as a share of the discriminator's width (ELECTRA;
            a quarter to a half in its paper) or layers (DeBERTa); where None, 0.25 or 0.5.
        discriminator_weight: lambda, the weight of the discriminator's loss; 50 in both papers.

    Raises:
        InputError: if a size is not in (0, 1], or the weight is not above 0.
    """

    share: float = 0.15
    masked: float = 0.85
    generator_size: float | None = None
    discriminator_weight: float = 50.0

    head: ClassVar[str] = "discriminator"
    loss_name: ClassVar[str] = "replaced_tokens_loss"

    def __post_init__(self):
        size = self.generator_size
        if size is not None and not 0 < size <= 1:
            raise InputError(
                f"generator_size={size} must be a share of the discriminator's size, above 0 and "
                "1 at most; give one from 0.25 to 0.5, or leave it out."
            )
        if not self.discriminator_weight > 0:
            raise InputError(
                f"discriminator_weight={self.discriminator_weight} must be above 0; leave it out "
                "for that of the papers, 50."
            )

    @property
    def masked_lm(self):
        """The objective of the generator, without random replacements."""
        return MaskedLM(share=self.share, masked=self.masked, replaced=0.0)

    @property
    def loss_weights(self):
        """The weight of each loss in the total loss."""
        return {"generator_loss": 1.0, "discriminator_loss": self.discriminator_weight}

    def check(self, config, tokenizer):
        """Raise an InputError if the family or the tokenizer does not fit."""
        check_family(config)
        self.masked_lm.masking(tokenizer)

    def build(self, config, discriminator=None, generator=None, **options):
        """Build both models, which share their embedding tables as their family does.

        Args:
            config: the config of the discriminator, an `ElectraConfig` or a DeBERTa's.
            discriminator: a model whose weights the discriminator starts from; random weights
                where None.
            generator: the generator that was trained with it; random weights where None. A
                discriminator alone passes its tables to a random generator.
            options: options of `build_model` for both, such as `dtype`.

        Returns:
            A dict of `TextModel`s, "discriminator" and "generator". `save_model` writes either as
            a self-contained folder.

        Raises:
            InputError: for another family, or two models that were not trained together.
        """
        if generator is None:
            smaller = generator_config(config, self.generator_size)
        else:
            check_family(config)
            smaller = config_of(generator)
        models = {"generator": build_model(smaller, "masked_lm", name="generator", **options)}
        models["discriminator"] = build_model(
            config,
            self.head,
            shared_embeddings=models["generator"],
            name="discriminator",
            **options,
        )
        for name, source in (("discriminator", discriminator), ("generator", generator)):
            if source is not None:
                _take_weights(models[name], source)
        if discriminator is not None and generator is not None:
            _set_tables(models["discriminator"], discriminator)
        return {name: models[name] for name in ("discriminator", "generator")}

    def batches(self, corpus, tokenizer, batch_size, max_length, seed=0, shuffle=True):
        """Build the `ReplacedBatches` of a corpus.

        Args:
            corpus: see `tfnlp.objectives.Corpus`.
            tokenizer: see `tfnlp.text`.
            batch_size: B.
            max_length: the maximum number of tokens of a text, including special tokens.
            seed: the seed of the order, the masks and the draws.
            shuffle: whether each epoch has its own order.

        Raises:
            InputError: if the tokenizer has no mask token, or `max_length` leaves no room.
        """
        return ReplacedBatches(
            Segments.of(corpus, Frame.of(tokenizer), max_length),
            batch_size,
            self.masked_lm.masking(tokenizer),
            shuffle=shuffle,
            seed=seed,
            pad_token_id=tokenizer.pad_token_id,
        )

    def trained(self, models):
        """Return the model to fit, which shares all weights with the two of `build`.

        Save those two rather than this one.

        Args:
            models: a dict of "discriminator" and "generator".

        Returns:
            A functional `keras.Model`. Its inputs are `token_ids`, `segment_ids` and
            `padding_mask` (B, L), `masked_positions` and `masked_ids` (B, P) int32, and `draws`
            (B, P) float32. Its outputs are `generator_logits` (B, P, V), the discriminator's
            `logits` (B, L), `replaced` (B, L) int32, 1 at tokens that differ from the original,
            and `padding_mask`.
        """
        predicting = predict_at_positions(models["generator"])
        originals = keras.Input((None,), dtype="int32", name=ORIGINALS)
        draws = keras.Input((None,), dtype="float32", name=DRAWS)
        inputs = predicting.input | {ORIGINALS: originals, DRAWS: draws}
        logits = predicting.output["logits"]
        sampled = SampleTokens(name="sample_tokens")(logits, draws)
        ids, replaced = ReplaceTokens(name="replace_tokens")(
            inputs["token_ids"], inputs[POSITIONS], originals, sampled
        )
        same = {key: inputs[key] for key in ("segment_ids", "padding_mask")}
        found = models["discriminator"]({"token_ids": ids} | same)
        outputs = {
            "logits": found["logits"],
            "generator_logits": logits,
            "replaced": replaced,
            "padding_mask": inputs["padding_mask"],
        }
        return keras.Model(inputs, outputs, name="replaced_tokens")

    def losses(self, labels, outputs, sample_weight=None):
        """Return both losses, before they are weighted.

        Args:
            labels: (B, P), the original tokens at masked positions, -100 where a text has fewer.
            outputs: the outputs of the trained model.
            sample_weight: (B,), the weights of the texts.

        Returns:
            A dict: `generator_loss`, the mean cross-entropy of masked tokens, and
            `discriminator_loss`, the mean binary cross-entropy of all tokens except padding.
        """
        replaced = ops.cast(outputs["replaced"], "float32")
        logits = ops.cast(outputs["logits"], "float32")
        # softplus(x) - x z is the cross-entropy of the logistic function.
        values = ops.softplus(logits) - logits * replaced
        return {
            "generator_loss": cross_entropy(labels, outputs["generator_logits"], sample_weight),
            "discriminator_loss": weighted_mean(values, outputs["padding_mask"], sample_weight),
        }

    def scores(self, labels, outputs):
        """Return the scores of the generator and the discriminator.

        Returns:
            A dict of (sum, weight), whose quotient is the score: `masked_accuracy`, the share of
            masked tokens that the generator predicts; `accuracy`, the share of tokens that the
            discriminator classifies correctly; its `precision` and `recall` for replaced tokens.
        """
        there = ops.cast(outputs["padding_mask"], "bool")
        replaced = ops.cast(outputs["replaced"], "bool")
        said = outputs["logits"] > 0
        found = said & replaced & there
        return {
            "masked_accuracy": count_hits(labels, outputs["generator_logits"]),
            "accuracy": (_count(ops.equal(said, replaced) & there), _count(there)),
            "precision": (_count(found), _count(said & there)),
            "recall": (_count(found), _count(replaced & there)),
        }


class ReplacedBatches(MaskedBatches):
    """Batches of masked texts with the inputs of sampling: `masked_ids` and `draws` (B, P).

    The draws depend on the seed, the epoch and the batch number alone, like the masks.
    """

    def hide(self, inputs, rng):
        inputs, labels = super().hide(inputs, rng)
        draws = rng.random(labels.shape, "float32")
        # A copy, as TensorFlow may write over an array that it shares.
        return inputs | {ORIGINALS: labels.copy(), DRAWS: draws}, labels

    def signature(self):
        import tensorflow as tf

        inputs, labels = super().signature()
        return inputs | {ORIGINALS: labels, DRAWS: tf.TensorSpec((None, None), "float32")}, labels


def check_family(config):
    """Raise an InputError for a family without a generator and a discriminator."""
    if not config.shares_embeddings:
        raise InputError(
            f"Replaced-token detection does not fit the family {family_name(config)!r}; give an "
            "ELECTRA or a DeBERTa, or another objective."
        )


def _take_weights(model, source):
    """Copy the weights of a model with the same config, by their paths."""
    values = {weight.path: weight for weight in source.weights}
    for weight in model.weights:
        if weight.path in values:
            weight.assign(values[weight.path])


def _set_tables(model, source):
    """Set a discriminator's embedding tables to those of `source`.

    The generator shares part of them.
    """
    embeddings, due = model.get_layer("embeddings"), source.get_layer("embeddings")
    if isinstance(embeddings, GradientDisentangledEmbedding):
        embeddings.set_sums({name: getattr(due, name) for name in embeddings.sums()})
    elif not np.array_equal(embeddings.token_table, due.token_table):
        raise InputError(
            "The generator and the discriminator have other embeddings, so that they were not "
            "trained together; give the generator of this discriminator, or none."
        )


def generator_config(config, size=None):
    """Return the config of the generator for a discriminator.

    An ELECTRA generator has a share of the width, heads and feed-forward size, and the same number
    of layers (Clark et al. 2020, section 3.2). Its tables have the same width. A DeBERTa generator
    has a share of the layers, and the width of the tables (He et al. 2021, section 3.1). It
    predicts from absolute positions (`decode_masks`) if the embeddings have none, as in
    Microsoft's code.

    Args:
        config: an `ElectraConfig`, `DebertaConfig` or `DebertaV2Config`.
        size: the share, above 0 and at most 1; where None, 0.25 for ELECTRA and 0.5 for DeBERTa.

    Raises:
        InputError: if the family is another one.
    """
    check_family(config)
    if isinstance(config, DebertaConfig):
        return dataclasses.replace(
            config,
            num_layers=max(1, round(config.num_layers * (size or LAYER_SHARE))),
            enhanced_mask_decoder=not config.absolute_positions,
            tie_embeddings=True,
        )
    size = size or WIDTH_SHARE
    width = max(1, round(config.hidden_dim * size))
    heads = max(1, round(config.num_heads * size))
    while config.head_dim is None and width % heads:
        heads -= 1
    return dataclasses.replace(
        config,
        hidden_dim=width,
        num_heads=heads,
        intermediate_dim=max(1, round(config.intermediate_dim * size)),
    )


def sample(logits, draws):
    """Sample a token from each softmax by inverting its cumulative sums.

    The random numbers are inputs, so a draw is the same on one device, on several, and in a
    resumed run. The distribution equals that of Gumbel noise and argmax, as in ELECTRA's code.
    Sums are taken over blocks of tokens, then within one block: this takes a twelfth of the time
    of sums over all tokens, and is more accurate.

    Args:
        logits: (..., V).
        draws: (...) float32, uniform in [0, 1).

    Returns:
        (...) int32.
    """
    size = logits.shape[-1]
    count = -(-size // BLOCK)
    logits = ops.reshape(ops.cast(logits, "float32"), (-1, size))
    shares = ops.exp(logits - ops.max(logits, axis=-1, keepdims=True))
    shares = ops.pad(shares, ((0, 0), (0, count * BLOCK - size)))
    shares = ops.reshape(shares, (-1, count, BLOCK))
    sums = ops.cumsum(ops.sum(shares, axis=-1), axis=-1)  # (n, blocks)
    target = ops.reshape(draws, (-1, 1)) * sums[:, -1:]
    block = _first_above(sums, target)  # (n, 1)
    before = ops.take_along_axis(ops.pad(sums, ((0, 0), (1, 0))), block, axis=-1)
    rows = ops.arange(ops.shape(block)[0], dtype="int32")[:, None] * count + block
    within = ops.cumsum(ops.take(ops.reshape(shares, (-1, BLOCK)), rows[:, 0], axis=0), axis=-1)
    found = block * BLOCK + _first_above(within, target - before)
    return ops.reshape(ops.minimum(found, size - 1), ops.shape(draws))


def _first_above(sums, target):
    """Return the first index where rising sums (n, m) exceed a target (n, 1), at most m - 1."""
    below = ops.sum(ops.cast(sums <= target, "int32"), axis=-1, keepdims=True)
    return ops.minimum(below, sums.shape[-1] - 1)  # rounding may raise a target to the last sum


class SampleTokens(keras.layers.Layer):
    """Sampling by `sample` from logits (B, P, V) and draws (B, P), without a gradient."""

    def call(self, logits, draws):
        return sample(ops.stop_gradient(logits), draws)

    def compute_output_spec(self, logits, draws):
        return keras.KerasTensor(draws.shape, dtype="int32")


class ReplaceTokens(keras.layers.Layer):
    """Replacement of masked tokens by sampled ones.

    Call arguments:
        token_ids: (B, L).
        positions: (B, P), unique within a text.
        originals: (B, P), the original tokens; -100 where a text has fewer.
        sampled: (B, P).

    Returns:
        The new ids, and 1 where they differ from the original ones; both (B, L) int32.
    """

    def call(self, token_ids, positions, originals, sampled):
        places = ops.arange(ops.shape(token_ids)[1], dtype=positions.dtype)
        real = ops.not_equal(originals, IGNORED)
        hits = ops.equal(positions[:, :, None], places) & real[:, :, None]  # (B, P, L)
        chosen = ops.any(hits, axis=1)

        def placed(values):
            return ops.sum(ops.where(hits, values[:, :, None], 0), axis=1)

        new = placed(sampled)
        other = chosen & ops.not_equal(new, placed(originals))
        return ops.where(chosen, new, token_ids), ops.cast(other, "int32")

    def compute_output_spec(self, token_ids, positions, originals, sampled):
        spec = keras.KerasTensor(token_ids.shape, dtype="int32")
        return spec, keras.KerasTensor(token_ids.shape, dtype="int32")


def _count(flags):
    return ops.sum(ops.cast(flags, "float32"))

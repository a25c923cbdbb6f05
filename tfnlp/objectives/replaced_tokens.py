"""Replaced-token detection: which tokens of a text did a small language model put there?

Clark et al. 2020, 'ELECTRA', section 2, and He et al. 2021, 'DeBERTaV3', section 3.
"""

import dataclasses
from typing import ClassVar

import keras
import numpy as np
from keras import ops

from tfnlp.errors import InputError
from tfnlp.layers import GradientDisentangledEmbedding
from tfnlp.losses import cross_entropy, weighted_mean
from tfnlp.models import DebertaConfig, build_model, config_of
from tfnlp.models.build import family_name
from tfnlp.objectives.frame import Frame
from tfnlp.objectives.masked_lm import MaskedLM, count_hits
from tfnlp.objectives.masking import POSITIONS, MaskedBatches
from tfnlp.objectives.positions import predict_at_positions
from tfnlp.objectives.segments import Segments
from tfnlp.text.batches import IGNORED

# Of inputs: the tokens that stood at the masked positions, and a number for each, from 0 to 1.
ORIGINALS, DRAWS = "masked_ids", "draws"
# What ELECTRA's code has for the generator's share of the width; the paper of DeBERTa v3 for
# that of the layers.
WIDTH_SHARE, LAYER_SHARE = 0.25, 0.5
# The tokens that are summed together before one is drawn.
BLOCK = 128


@dataclasses.dataclass(frozen=True)
class ReplacedTokens:
    """The discriminator of an ELECTRA or a DeBERTa v3, trained together with its generator.

    The generator, a masked language model, learns to predict masked tokens; one drawn from what
    it predicts stands in place of each, and the discriminator, which is what the training is
    for, says of every token whether it is another than there was. One that is drawn right counts
    as original. No gradient goes through the draw.

    Args:
        share: of each text's tokens that are masked.
        masked: the share of those that the generator reads as [MASK], and not as they are: 0.85
            in ELECTRA's code, 1 in that of DeBERTa v3.
        generator_size: the generator's share of the discriminator's width (ELECTRA, a quarter to
            a half in its paper) or of its layers (DeBERTa); a quarter and a half where None.
        discriminator_weight: lambda, of the discriminator's loss; 50 in both papers.

    Raises:
        InputError: for sizes that are no shares, and a weight that is not above 0.
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
        """The objective of the generator; no token is replaced before it reads a text."""
        return MaskedLM(share=self.share, masked=self.masked, replaced=0.0)

    @property
    def loss_weights(self):
        """The weight of each loss in the sum that is trained."""
        return {"generator_loss": 1.0, "discriminator_loss": self.discriminator_weight}

    def check(self, config, tokenizer):
        """Raises an InputError where the family or the tokenizer does not fit."""
        check_family(config)
        self.masked_lm.masking(tokenizer)

    def build(self, config, discriminator=None, generator=None, **options):
        """The two models, which share their tables of embeddings as their family does.

        Args:
            config: of the discriminator, an `ElectraConfig` or a DeBERTa's.
            discriminator: one whose weights the training goes on from; random ones where None.
            generator: the one that was trained with it, likewise. A discriminator alone gives a
                random generator its tables.
            options: of both, as `build_model` takes them, such as `dtype`.

        Returns:
            A dict of `TextModel`s, "discriminator" and "generator". `save_model` writes either
            as a folder that is whole by itself.

        Raises:
            InputError: for another family, and for two models that were not trained together.
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
        """The batches of a corpus, see `ReplacedBatches`.

        Args:
            corpus: see `tfnlp.objectives.Corpus`.
            tokenizer: see `tfnlp.text`.
            batch_size: B.
            max_length: the most tokens of a text, special ones counted.
            seed: of the order, the masks and the draws.
            shuffle: whether each epoch has its own order.

        Raises:
            InputError: for a tokenizer without a mask, and a `max_length` without room.
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
        """The model to fit, which shares every weight with the two of `build`: save those.

        Args:
            models: a dict of "discriminator" and "generator".

        Returns:
            A functional `keras.Model` from `token_ids`, `segment_ids` and `padding_mask` (B, L),
            `masked_positions` and `masked_ids` (B, P) int32, and `draws` (B, P) float32, to a
            dict of `generator_logits` (B, P, V), `logits` (B, L), the discriminator's, `replaced`
            (B, L) int32, 1 at tokens that are not the original ones, and `padding_mask`.
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
        """Both losses, before their weights.

        Args:
            labels: (B, P), the tokens at the masked positions, -100 where a text has fewer.
            outputs: of the trained model.
            sample_weight: (B,), of the texts.

        Returns:
            A dict: `generator_loss`, the mean cross-entropy of masked tokens, and
            `discriminator_loss`, the mean binary cross-entropy of all tokens but padding.
        """
        replaced = ops.cast(outputs["replaced"], "float32")
        logits = ops.cast(outputs["logits"], "float32")
        # softplus(x) - x z, the cross-entropy of the logistic function.
        values = ops.softplus(logits) - logits * replaced
        return {
            "generator_loss": cross_entropy(labels, outputs["generator_logits"], sample_weight),
            "discriminator_loss": weighted_mean(values, outputs["padding_mask"], sample_weight),
        }

    def scores(self, labels, outputs):
        """What both get right: of masked tokens, of all tokens, and of the replaced ones.

        Returns:
            A dict of (sum, weight), the score being their quotient: `masked_accuracy`, the share
            of masked tokens that the generator would name; `accuracy`, that of tokens whose kind
            the discriminator names; its `precision` and `recall` of replaced tokens.
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
    """Masked texts with what the draw of replacements takes: `masked_ids` and `draws` (B, P).

    The draws depend on the seed, the epoch and the batch's number alone, as the masks do.
    """

    def hide(self, inputs, rng):
        inputs, labels = super().hide(inputs, rng)
        draws = rng.random(labels.shape, "float32")
        # A copy: TensorFlow takes arrays as they are, and may write over one that it has read.
        return inputs | {ORIGINALS: labels.copy(), DRAWS: draws}, labels

    def signature(self):
        import tensorflow as tf

        inputs, labels = super().signature()
        return inputs | {ORIGINALS: labels, DRAWS: tf.TensorSpec((None, None), "float32")}, labels


def check_family(config):
    """Raises an InputError for a family that has no generator and discriminator."""
    if not config.shares_embeddings:
        raise InputError(
            f"Replaced-token detection does not fit the family {family_name(config)!r}; give an "
            "ELECTRA or a DeBERTa, or another objective."
        )


def _take_weights(model, source):
    """Gives a model the weights of another of its config, by their paths."""
    values = {weight.path: weight for weight in source.weights}
    for weight in model.weights:
        if weight.path in values:
            weight.assign(values[weight.path])


def _set_tables(model, source):
    """Makes a discriminator's tables, part of which are its generator's, those of `source`."""
    embeddings, due = model.get_layer("embeddings"), source.get_layer("embeddings")
    if isinstance(embeddings, GradientDisentangledEmbedding):
        embeddings.set_sums({name: getattr(due, name) for name in embeddings.sums()})
    elif not np.array_equal(embeddings.token_table, due.token_table):
        raise InputError(
            "The generator and the discriminator have other embeddings, so that they were not "
            "trained together; give the generator of this discriminator, or none."
        )


def generator_config(config, size=None):
    """The config of the generator that goes with a discriminator.

    An ELECTRA's has a share of the width, of the heads and of the feed-forward networks, and as
    many layers (Clark et al. 2020, section 3.2); its tables are of the same width. A DeBERTa's has
    a share of the layers, and is as wide as the tables are (He et al. 2021, section 3.1); it
    predicts from absolute positions (`decode_masks`) where the embeddings have none, as in
    Microsoft's code.

    Args:
        config: an `ElectraConfig`, `DebertaConfig` or `DebertaV2Config`.
        size: the share, above 0 and 1 at most; 0.25 of an ELECTRA, 0.5 of a DeBERTa where None.

    Raises:
        InputError: for another family.
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
    """Tokens drawn from a softmax, one for each distribution, by the inverse of its sums.

    Numbers given from outside, in place of a generator's of its own, make a draw the same on one
    device and on several, and in a run that was killed. What is drawn has the distribution of
    Gumbel noise and a maximum, as ELECTRA's code draws. Sums are taken of blocks of tokens, then
    within one: a twelfth of the time of sums over all, and closer.

    Args:
        logits: (..., V).
        draws: (...) float32, uniform from 0 to below 1.

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
    """Where sums (n, m) that rise are first above a target (n, 1); the last place if nowhere."""
    below = ops.sum(ops.cast(sums <= target, "int32"), axis=-1, keepdims=True)
    return ops.minimum(below, sums.shape[-1] - 1)  # rounding may lift a target to the last sum


class SampleTokens(keras.layers.Layer):
    """`sample` of logits (B, P, V) and draws (B, P), without a gradient."""

    def call(self, logits, draws):
        return sample(ops.stop_gradient(logits), draws)

    def compute_output_spec(self, logits, draws):
        return keras.KerasTensor(draws.shape, dtype="int32")


class ReplaceTokens(keras.layers.Layer):
    """Texts with sampled tokens in place of masked ones, and where these are other tokens.

    Call arguments:
        token_ids: (B, L).
        positions: (B, P), in a text each once.
        originals: (B, P), what stood there; -100 where a text has fewer.
        sampled: (B, P).

    Returns:
        The ids, and 1 where they are not the original ones; both (B, L) int32.
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

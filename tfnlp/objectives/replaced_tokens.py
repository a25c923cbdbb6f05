"""Replaced-token detection with a generator and a discriminator.

Clark et al. 2020, 'ELECTRA', section 2, and He et al. 2021, 'DeBERTaV3', section 3.
"""

import dataclasses
from typing import ClassVar

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from tfnlp.configs import family_name
from tfnlp.functional.weighted_losses import cross_entropy, weighted_mean
from tfnlp.layers import GradientDisentangledEmbedding
from tfnlp.layers.core.merged_weights import merged_weights
from tfnlp.models import DebertaConfig, build_model, config_of
from tfnlp.objectives.batches.masking import POSITIONS, MaskedBatches
from tfnlp.objectives.masked_lm import MaskedLM
from tfnlp.objectives.masked_positions import predict_at_positions
from tfnlp.objectives.objective import Objective, accuracy
from tfnlp.objectives.token_replacement import ReplaceTokens, SampleTokens
from tfnlp.utils.errors import InputError

# The inputs with the original tokens at masked positions, and a random number in [0, 1) for each.
ORIGINALS, DRAWS = "masked_ids", "draws"
# The generator's share of the width in ELECTRA's code, and of the layers in the paper of DeBERTa
# v3.
WIDTH_SHARE, LAYER_SHARE = 0.25, 0.5


@dataclasses.dataclass(frozen=True)
class ReplacedTokens(Objective):
    """Joint training of an ELECTRA or DeBERTa v3 discriminator and its generator.

    The generator, a masked language model, learns to predict masked tokens. A token sampled from
    its prediction replaces each of them. The discriminator, the model of interest, predicts for
    every token whether it was replaced. A sample that equals the original token counts as
    original. No gradient passes through the sampling. The loss is L_MLM + lambda L_Disc (Clark et
    al. 2020, section 2).

    Args:
        share: the share of each text's tokens that is masked.
        masked: the share of those that the generator reads as [MASK] rather than unchanged: 0.85
            in ELECTRA's code, 1 in that of DeBERTa v3.
        generator_size: the size of the generator as a share of the discriminator's width (ELECTRA;
            a quarter to a half in its paper) or layers (DeBERTa); where None, 0.25 or 0.5.
        discriminator_weight: lambda, the weight of the discriminator's loss; 50 in both papers.
        packing: as in `MaskedLM`.

    Raises:
        InputError: if a size is not in (0, 1], or the weight is not above 0.
    """

    share: float = 0.15
    masked: float = 0.85
    generator_size: float | None = None
    discriminator_weight: float = 50.0
    packing: str = "separate"

    head: ClassVar[str] = "discriminator"
    loss_name: ClassVar[str] = "replaced_tokens_loss"

    def __post_init__(self):
        super().__post_init__()
        size, weight = self.generator_size, self.discriminator_weight
        if not weight > 0 or (size is not None and not 0 < size <= 1):
            raise InputError(
                f"generator_size={size} must be above 0 and 1 at most, or None, and "
                f"discriminator_weight={weight} above 0."
            )

    @property
    def masked_lm(self):
        """The objective of the generator, without random replacements."""
        shares = {"share": self.share, "masked": self.masked, "replaced": 0.0}
        return MaskedLM(**shares, packing=self.packing)

    @property
    def loss_weights(self):
        """The weight of each loss in the total loss."""
        return {"generator_loss": 1.0, "discriminator_loss": self.discriminator_weight}

    def check(self, config, tokenizer):
        """Raise an InputError if the family or the tokenizer does not fit."""
        _check_family(config)
        super().check(config, tokenizer)
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
            A dict of `TextModel`s, "discriminator" and "generator", each of which `save_model`
            writes as a self-contained folder.

        Raises:
            InputError: for another family, or two models that were not trained together.
        """
        _check_family(config)
        known = generator is not None
        smaller = config_of(generator) if known else self.generator_config(config)
        new_generator = build_model(smaller, "masked_lm", name="generator", **options)
        tables = {"shared_embeddings": new_generator, "name": "discriminator"}
        new_discriminator = build_model(config, self.head, **tables, **options)
        if discriminator is not None:
            _take_weights(new_discriminator, discriminator)
        if known:
            _take_weights(new_generator, generator)
            if discriminator is not None:
                _set_tables(new_discriminator, discriminator)
        return {"discriminator": new_discriminator, "generator": new_generator}

    def generator_config(self, config):
        """Return the config of the generator for a discriminator.

        An ELECTRA generator has a share of the width, heads and feed-forward size, and the same
        number of layers (Clark et al. 2020, section 3.2). Its tables have the same width. A
        DeBERTa generator has a share of the layers, and the width of the tables (He et al. 2021,
        section 3.1). It predicts from absolute positions (`decode_masks`) if the embeddings have
        none, as in Microsoft's code.
        """
        if isinstance(config, DebertaConfig):
            return dataclasses.replace(
                config,
                num_layers=max(1, round(config.num_layers * (self.generator_size or LAYER_SHARE))),
                enhanced_mask_decoder=not config.absolute_positions,
                tie_embeddings=True,
            )
        size = self.generator_size or WIDTH_SHARE
        sizes = {
            name: max(1, round(getattr(config, name) * size))
            for name in ("hidden_dim", "num_heads", "intermediate_dim")
        }
        while config.head_dim is None and sizes["hidden_dim"] % sizes["num_heads"]:
            sizes["num_heads"] -= 1
        return dataclasses.replace(config, **sizes)

    def batches(self, corpus, tokenizer, batch_size, max_length, seed=0, shuffle=True):
        """Build the `ReplacedBatches` of a corpus, with labels (B, P)."""
        texts = corpus, tokenizer, batch_size, max_length
        return self.masked_lm.batches(*texts, seed=seed, shuffle=shuffle, kind=ReplacedBatches)

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
        generator_logits = predicting.output["logits"]  # (B, P, V)
        sampled = SampleTokens(name="sample_tokens")(generator_logits, draws)  # (B, P)
        ids, replaced = ReplaceTokens(name="replace_tokens")(  # (B, L) each
            inputs["token_ids"], inputs[POSITIONS], originals, sampled
        )
        names = ("segment_ids", "padding_mask", "positions")
        corrupted = {name: inputs[name] for name in names if name in inputs}
        outputs = {
            "logits": models["discriminator"](corrupted | {"token_ids": ids})["logits"],  # (B, L)
            "generator_logits": generator_logits,
            "replaced": replaced,
            "padding_mask": inputs["padding_mask"],
        }
        return keras.Model(inputs, outputs, name="replaced_tokens")

    def losses(self, labels, outputs, sample_weight=None):
        """Return both losses, before they are weighted.

        They are `generator_loss`, the mean cross-entropy of the masked tokens (B, P), and
        `discriminator_loss`, the mean binary cross-entropy of all tokens except padding.
        """
        # L_MLM: -log p_G(x_i | masked text)
        generator = cross_entropy(labels, outputs["generator_logits"], sample_weight)
        # L_Disc: -z log D - (1 - z) log(1 - D) = softplus(x) - x z, for D = sigmoid(x)
        x = ops.cast(outputs["logits"], "float32")  # (B, L)
        z = ops.cast(outputs["replaced"], "float32")  # (B, L)
        discriminator = weighted_mean(
            ops.softplus(x) - x * z, outputs["padding_mask"], sample_weight
        )
        return {"generator_loss": generator, "discriminator_loss": discriminator}

    def scores(self, labels, outputs):
        """Return the scores of the generator and the discriminator.

        They are `masked_accuracy`, the share of masked tokens that the generator predicts;
        `accuracy`, the share of tokens that the discriminator classifies correctly; its
        `precision` and `recall` for replaced tokens; `auc`, the share of a batch's pairs of a
        replaced and a kept token whose logits are in order, whatever the rate of replacement;
        and `replaced_share`, that rate. Special tokens count as kept: knowing these alone is
        worth an AUC of 0.56 in texts of 20 tokens.
        """
        real = ops.cast(outputs["padding_mask"], "bool")  # (B, L)
        replaced = ops.cast(outputs["replaced"], "bool")
        predicted = outputs["logits"] > 0
        hits = predicted & replaced & real
        return {
            "masked_accuracy": accuracy(labels, outputs["generator_logits"]),
            "accuracy": (_count(ops.equal(predicted, replaced) & real), _count(real)),
            "precision": (_count(hits), _count(predicted & real)),
            "recall": (_count(hits), _count(replaced & real)),
            "auc": _ordered_pairs(outputs["logits"], replaced & real, real & ~replaced),
            "replaced_share": (_count(replaced & real), _count(real)),
        }


class ReplacedBatches(MaskedBatches):
    """Batches of masked texts with the inputs of sampling: `masked_ids` and `draws` (B, P).

    The draws depend on the seed, the epoch and the batch number alone, like the masks.
    """

    def mask(self, inputs, rng):
        inputs, labels = super().mask(inputs, rng)
        draws = rng.random(labels.shape, "float32")
        # A copy, as TensorFlow may write over an array that it shares.
        return inputs | {ORIGINALS: labels.copy(), DRAWS: draws}, labels

    def signature(self):
        inputs, labels = super().signature()
        return inputs | {ORIGINALS: labels, DRAWS: tf.TensorSpec((None, None), "float32")}, labels


def _check_family(config):
    """Raise an InputError for a family without a generator and a discriminator."""
    if not config.shares_embeddings:
        raise InputError(
            f"Replaced-token detection does not fit the family {family_name(config)!r}; give an "
            "ELECTRA or a DeBERTa, or another objective."
        )


def _take_weights(model, source):
    """Copy the weights of a model with the same config, by their paths."""
    values = merged_weights(source)
    for weight in model.weights:
        if weight.path in values:
            weight.assign(values[weight.path])


def _set_tables(model, source):
    """Set a discriminator's embedding tables to those of `source`.

    The generator shares part of them.
    """
    embeddings, source_embeddings = model.get_layer("embeddings"), source.get_layer("embeddings")
    if isinstance(embeddings, GradientDisentangledEmbedding):
        embeddings.set_sums({name: getattr(source_embeddings, name) for name in embeddings.sums()})
    elif not np.array_equal(embeddings.token_table, source_embeddings.token_table):
        raise InputError(
            "The generator and the discriminator have other embeddings, so that they were not "
            "trained together; give the generator of this discriminator, or none."
        )


def _ordered_pairs(logits, replaced, kept):
    """Return the pairs of a replaced and a kept token whose logits rise, and all pairs."""
    order = ops.argsort(ops.reshape(logits, (-1,)))
    replaced, kept = (ops.cast(ops.reshape(x, (-1,)), "float32") for x in (replaced, kept))
    below = ops.cumsum(ops.take(kept, order))
    return ops.sum(ops.take(replaced, order) * below), ops.sum(replaced) * ops.sum(kept)


def _count(flags):
    return ops.sum(ops.cast(flags, "float32"))

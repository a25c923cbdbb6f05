"""Replaced-token detection with a generator and a discriminator.

Clark et al. 2020, 'ELECTRA', section 2, and He et al. 2021, 'DeBERTaV3', section 3.
"""

import dataclasses
from typing import ClassVar

import keras
import tensorflow as tf
from keras import ops

from tfnlp.objectives.generator_discriminator import build_pair, check_discriminator_config
from tfnlp.objectives.masked_lm import MaskedLM, count_hits
from tfnlp.objectives.masked_positions import predict_at_positions
from tfnlp.objectives.masking import POSITIONS, MaskedBatches
from tfnlp.objectives.objective import Objective
from tfnlp.objectives.segments import Segments
from tfnlp.objectives.special_token_template import SpecialTokenTemplate
from tfnlp.objectives.token_replacement import ReplaceTokens, SampleTokens
from tfnlp.utils.errors import InputError
from tfnlp.weighted_losses import cross_entropy, weighted_mean

# The inputs with the original tokens at masked positions, and a random number in [0, 1) for each.
ORIGINALS, DRAWS = "masked_ids", "draws"


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
        check_discriminator_config(config)
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
        return build_pair(config, self.generator_size, discriminator, generator, **options)

    def batches(self, corpus, tokenizer, batch_size, max_length, seed=0, shuffle=True):
        """Build the `ReplacedBatches` of a corpus, with labels (B, P).

        Raises:
            InputError: if the tokenizer has no mask token, or `max_length` leaves no room.
        """
        return ReplacedBatches(
            Segments.from_corpus(
                corpus, SpecialTokenTemplate.from_tokenizer(tokenizer), max_length
            ),
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
        generator_logits = predicting.output["logits"]  # (B, P, V)
        sampled = SampleTokens(name="sample_tokens")(generator_logits, draws)  # (B, P)
        ids, replaced = ReplaceTokens(name="replace_tokens")(  # (B, L) each
            inputs["token_ids"], inputs[POSITIONS], originals, sampled
        )
        corrupted = {
            "token_ids": ids,
            "segment_ids": inputs["segment_ids"],
            "padding_mask": inputs["padding_mask"],
        }
        outputs = {
            "logits": models["discriminator"](corrupted)["logits"],  # (B, L)
            "generator_logits": generator_logits,
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

        Returns:
            A dict of (sum, weight), whose quotient is the score: `masked_accuracy`, the share of
            masked tokens that the generator predicts; `accuracy`, the share of tokens that the
            discriminator classifies correctly; its `precision` and `recall` for replaced tokens.
        """
        real = ops.cast(outputs["padding_mask"], "bool")  # (B, L)
        replaced = ops.cast(outputs["replaced"], "bool")
        predicted = outputs["logits"] > 0
        hits = predicted & replaced & real
        return {
            "masked_accuracy": count_hits(labels, outputs["generator_logits"]),
            "accuracy": (_count(ops.equal(predicted, replaced) & real), _count(real)),
            "precision": (_count(hits), _count(predicted & real)),
            "recall": (_count(hits), _count(replaced & real)),
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
        inputs, labels = super().signature()
        return inputs | {ORIGINALS: labels, DRAWS: tf.TensorSpec((None, None), "float32")}, labels


def _count(flags):
    return ops.sum(ops.cast(flags, "float32"))

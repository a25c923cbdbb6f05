"""Base class of step-by-step decoders, and states of several texts for each prompt."""

import abc

import keras
from keras import ops

from tfnlp.models import config_of
from tfnlp.utils.errors import InputError


class Decoder(abc.ABC):
    """Step-by-step decoder of a model, with the model's layers and weights.

    A subclass is chosen by `decoder_of`. Its states are `NamedTuple`s of tensors. All shapes are
    fixed, for XLA.

    Attributes:
        families: the config classes of its models.
        head: the head of its models.
        start_token_id: the first token of texts; None if texts continue their prompts.
        max_length: the positions of the model; None for no limit.

    Args:
        model: from `build_model` or `load_model`.

    Raises:
        InputError: if the model has another head or family.
    """

    families = ()
    head = "causal_lm"
    start_token_id = None
    max_length = None

    def __init__(self, model):
        self.model, self.config = model, config_of(model)
        if type(self.config) not in self.families or model.head != self.head:
            names = " or ".join(each.__name__.removesuffix("Config") for each in self.families)
            raise InputError(
                f"This decoder needs the head {self.head!r} of {names}, but the model is a "
                f"{model.name} with the head {model.head!r}; give such a model."
            )

    @property
    def sizes(self):
        """The config of the stack that generates."""
        return self.config

    @property
    def vocabulary_size(self):
        """V, the number of tokens of the texts."""
        return self.sizes.vocabulary_size

    @abc.abstractmethod
    def start(self, token_ids, prompt_mask, beams, steps):
        """Process prompts, or sources and the start token of each text.

        Args:
            token_ids: (B, P) integers; prompts are padded at the left, sources at the right.
            prompt_mask: (B, P), 1 or true at real tokens, at least one in each row.
            beams: K, the texts of each prompt.
            steps: the maximum number of tokens of each text.

        Returns:
            The logits of the first token of the texts, (B, V) float32, and the state.
        """

    @abc.abstractmethod
    def step(self, token_ids, parents, number, state):
        """Process one more token of each text.

        Args:
            token_ids: (B, K) integers.
            parents: (B, K) integers, the text of the previous step that each text continues; None
                if each continues itself.
            number: 0 at the first step after `start`, 1 at the next; a scalar.
            state: the state of the previous step.

        Returns:
            The logits of the next token, (B, K, V) float32, and the state.
        """


def for_beams(state, beams):
    """Return tensors (B, ...) repeated for K texts, (B, K, ...)."""
    return keras.tree.map_structure(lambda x: ops.repeat(x[:, None], beams, axis=1), state)


def of_parents(state, parents):
    """Return tensors (B, K, ...) of the texts that each text continues, as (B * K, ...)."""

    def gathered(x):
        batch, beams, *sizes = x.shape
        flat = ops.reshape(x, (batch * beams, *sizes))
        if parents is None:
            return flat
        places = parents + beams * ops.arange(batch, dtype="int32")[:, None]
        return ops.take(flat, ops.reshape(places, (-1,)), axis=0)

    return keras.tree.map_structure(gathered, state)


def by_beam(state, beams):
    """Return tensors (B * K, ...) as (B, K, ...)."""
    return keras.tree.map_structure(lambda x: ops.reshape(x, (-1, beams, *x.shape[1:])), state)

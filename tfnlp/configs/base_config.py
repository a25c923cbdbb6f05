"""Base classes of the model configs, and the heads that a family can have."""

import dataclasses
from typing import ClassVar

from tfnlp import families
from tfnlp.utils.errors import InputError
from tfnlp.utils.settings import Settings, setting

# The prediction of each head.
HEADS = {
    "classifier": "one class, or one number, for a text or a pair",
    "multi_label_classifier": "any of several labels for a text or a pair",
    "tagger": "one class for each token",
    "answerer": "first and last token of an answer",
    "chooser": "one of several texts",
    "embedder": "a vector for a text",
    "masked_lm": "the token at each masked position",
    "causal_lm": "the next token",
    "permutation_lm": "tokens at some positions, in any order of the text",
    "discriminator": "whether each token was replaced",
    "sequence_to_sequence": "the next token of another text",
    "bidirectional_lm": "the next and the previous word",
    "pretraining": "the token at each masked position, and how two texts belong together",
}
# The heads of one vector for a text, with a logit for each class, and all with classes.
TEXT_CLASS_HEADS = ("classifier", "multi_label_classifier")
CLASS_HEADS = (*TEXT_CLASS_HEADS, "tagger")
# The heads that fine-tuning adds to an encoder.
FINE_TUNED_HEADS = (*CLASS_HEADS, "answerer", "chooser", "embedder")
# The heads that have all of "masked_lm".
MASKED_LMS = ("masked_lm", "pretraining")


@dataclasses.dataclass(frozen=True)
class Pooling:
    """Pooling of a text's states into one vector, for heads on whole texts.

    Args:
        token: "first" for the first token's state, "last" for the last real token's, "mean" for
            the mean of all real ones; "ends" for those of a recurrent network of two directions,
            each where it stopped reading; None where the encoder itself gives the vector.
        activation: of the dense layer on it; None for no such layer.
        pretrained: whether the dense layer belongs to the encoder, not to a head.
        dropout_before: whether a classifier has dropout before the dense layer too.
        bare: whether a classifier is a product with the vector alone, as GPT's is.
    """

    token: str | None = "first"
    activation: str | None = "tanh"
    pretrained: bool = False
    dropout_before: bool = False
    bare: bool = False


class BaseConfig:
    """Base class of the model configs; each subclass is a frozen dataclass.

    It has the fields `vocabulary_size`, `num_layers`, `hidden_dim`, `dropout`,
    `classifier_dropout`, `max_length`, `initializer_range`, `pad_token_id` and `tie_embeddings`,
    or class variables of these names.
    """

    pooling: ClassVar[Pooling] = Pooling()
    # The head that predicts tokens: "masked_lm", "causal_lm", "permutation_lm", or
    # "bidirectional_lm", or "sequence_to_sequence" of an encoder-decoder.
    language_model: ClassVar[str] = "masked_lm"
    # True if that head is an `AdaptiveSoftmax`, with log-probabilities by clusters of tokens.
    adaptive_softmax: ClassVar[bool] = False
    # True if a causal LM adds a bias for each token; masked LMs always do.
    output_bias: ClassVar[bool] = False
    # True if masked tokens are predicted from absolute positions too.
    enhanced_mask_decoder: ClassVar[bool] = False
    # False if layers have no biases, but for the last of each head.
    biases: ClassVar[bool] = True
    # True if each head begins with a dense layer, an activation and a norm, as a masked LM's.
    prediction_head: ClassVar[bool] = False
    # True if a model can take the states of earlier segments.
    has_memory: ClassVar[bool] = False
    # True if that memory is a recurrent network's state, and so of fixed length.
    recurrent: ClassVar[bool] = False
    # True if it is a transformer, whose blocks attend.
    attends: ClassVar[bool] = True
    # True if a row may hold several documents, each of which sees itself alone.
    packs_documents: ClassVar[bool] = False
    # True if it gives a vector of the whole text alone, and so has heads for whole texts alone.
    whole_texts: ClassVar[bool] = False
    # Largest norm of the weights of each class in a classifier's last layer; None for any.
    max_norm: ClassVar[float | None] = None
    # True if words are read as `characters` (B, L, W) too, and a task reads frozen states.
    reads_characters: ClassVar[bool] = False
    # True if attention heads can have any size, and so be pruned.
    any_head_dim: ClassVar[bool] = False
    # True if it is pretrained on pairs of texts too, and so can have the head "pretraining".
    pretrained_on_pairs: ClassVar[bool] = False
    # True if two models of the family can share their embedding tables.
    shares_embeddings: ClassVar[bool] = False
    # True if it reads the entities of a knowledge graph beside the tokens.
    reads_entities: ClassVar[bool] = False
    # True if a discriminator first normalises each state plus that of the first token.
    discriminator_norm: ClassVar[bool] = False

    @property
    def model_type(self):
        """Name of the family in config.json."""
        return families.family_of(self).model_type

    @property
    def head_dropout(self):
        """Dropout before a head's last layer."""
        return self.dropout if self.classifier_dropout is None else self.classifier_dropout

    @property
    def tagger_dropout(self):
        """Dropout before the tagging layer."""
        return self.head_dropout

    @property
    def chooser_dropout(self):
        """Dropout before the multiple-choice layer."""
        return self.head_dropout

    @property
    def pair_dropout(self):
        """Dropout before the pair classifier."""
        return 0.0

    @property
    def answerer_dropout(self):
        """Dropout before the question-answering layer."""
        return 0.0

    def get_config(self):
        """Return the fields, as JSON has them."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in vars(self).items()}

    @classmethod
    def from_config(cls, config):
        """Build a config from its fields."""
        return cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in config.items()})

    def check_divides(self, part, whole):
        """Raise an InputError unless the field `part` divides the field `whole`."""
        if getattr(self, part) < 1 or getattr(self, whole) % getattr(self, part):
            raise InputError(
                f"{part}={getattr(self, part)} does not divide {whole}={getattr(self, whole)}."
            )


@dataclasses.dataclass(frozen=True)
class TextConfig(Settings, BaseConfig):
    """Sizes and rates that every family has.

    Args:
        vocabulary_size: V, the number of tokens.
        num_layers, num_heads, hidden_dim, intermediate_dim: L, N, D and F. N must divide D where
            there is no `head_dim`.
        activation: of the feed-forward networks; "gelu" is exact.
        dropout: applied to embeddings and sub-layer outputs in training.
        attention_dropout: applied to attention weights in training.
        classifier_dropout: applied before a head's last layer; `dropout` if None.
        max_length: the longest input there can be, in tokens; None for any length.
        num_segments: the number of segments (2: first and second text).
        layer_norm_epsilon: added to variances.
        initializer_range: standard deviation of fresh weights, truncated at 2.
        pad_token_id: the id that pads a batch.
        tie_embeddings: whether a language model's output is the token table; else it has a
            table of its own.
        head_dim: H, the size of one head, of families with BERT's attention; `hidden_dim /
            num_heads` if None. Models whose heads were pruned have it.
    """

    vocabulary_size: int = 30522
    num_layers: int = setting(12, "Encoder blocks, or recurrent layers.", low=1)
    num_heads: int = setting(12, "Attention heads.", low=1)
    hidden_dim: int = setting(768, "Model width.", low=1)
    intermediate_dim: int = setting(3072, "Inner width of the feed-forward networks.", low=1)
    activation: str = "gelu"
    dropout: float = setting(0.1, "Dropout rate.", low=0, high=1)
    attention_dropout: float = 0.1
    classifier_dropout: float | None = None
    max_length: int | None = 512
    num_segments: int = 2
    layer_norm_epsilon: float = 1e-12
    initializer_range: float = 0.02
    pad_token_id: int = 0
    tie_embeddings: bool = True
    head_dim: int | None = None

    # The sub-layers of a block whose outputs `dropout` is for.
    dropout_after: ClassVar[tuple] = ("attention", "feed_forward")

    def __post_init__(self):
        super().__post_init__()
        if self.head_dim is None:
            self.check_divides("num_heads", "hidden_dim")
        elif not self.any_head_dim or self.head_dim < 1:
            raise InputError(
                f"head_dim={self.head_dim} must be None, or in families with BERT's attention "
                "a whole number of at least 1."
            )

    @property
    def key_dim(self):
        """H, the size of one head, whether or not `head_dim` says it."""
        return self.head_dim or self.hidden_dim // self.num_heads

    @property
    def lm_activation(self):
        """Activation before the masked LM output."""
        return self.activation


def family_name(config):
    """Return the name of a config's family, such as "bert"."""
    return families.family_of(config).name


def check_head(config, head, num_classes=None):
    """Raise an InputError for a head that the family cannot have, or one without classes."""
    heads = [config.language_model]
    if config.language_model != "sequence_to_sequence":
        heads += ["embedder", *TEXT_CLASS_HEADS] + ["tagger"] * (not config.whole_texts)
        if not config.reads_characters:
            heads += ["answerer"] * (not config.whole_texts) + ["chooser"]
        heads += ["discriminator"] * config.attends
        heads += ["pretraining"] * config.pretrained_on_pairs
    if head not in (None, *heads):
        raise InputError(
            f"head={head!r} does not fit the family {family_name(config)!r}; use one of "
            f"{', '.join(filter(None, heads))}."
        )
    if head in CLASS_HEADS and not num_classes:
        raise InputError(f"num_classes={num_classes} must be at least 1 for head={head!r}.")


def check_packing(config):
    """Raise an InputError for a family that would see other documents of a packed row."""
    if not config.packs_documents:
        raise InputError(
            f"packing=masked does not fit the family {family_name(config)}, which would see "
            "other documents of a row; give another packing, or another model."
        )

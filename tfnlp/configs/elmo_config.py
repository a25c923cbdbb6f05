"""Config of ELMo: a bidirectional language model of words from their characters.

Peters et al. 2018, 'Deep Contextualized Word Representations', section 3.
"""

import dataclasses
from typing import ClassVar

from tfnlp.configs.base_config import BaseConfig, Pooling
from tfnlp.configs.recurrent_config import RecurrentConfig
from tfnlp.utils.errors import InputError
from tfnlp.utils.settings import Settings, setting


@dataclasses.dataclass(frozen=True)
class ElmoConfig(Settings, BaseConfig):
    """The sizes and rates of an ELMo, and of the network that reads its states for a task.

    Args:
        vocabulary_size: number of words of the tokenizer, whose characters pretraining reads.
        predicted_words: V, the commonest words, which both directions predict and of which a task
            has an embedding; all others are [UNK] there.
        num_layers: number of LSTMs of each direction.
        hidden_dim: D, the width of a layer's states, of which each direction has half; and that
            of a task's network.
        intermediate_dim: cells of an LSTM.
        filters: number of convolutions over 1 character, over 2, and so on (`CharacterCNN`).
        character_dim: width of a character's embedding.
        num_highways: number of highways of a word's vector.
        clip: limit of the absolute values of cells and states (`ProjectedLSTM`).
        dropout: applied to the words' vectors and each layer's output in training, and to what a
            task's network reads.
        classifier_dropout: applied before a head's last layer too; none if None.
        initializer_range: standard deviation of fresh tables and heads.
        pad_token_id: the id that pads a batch.

    Raises:
        InputError: for an odd `hidden_dim`.
    """

    vocabulary_size: int = 100000
    predicted_words: int = setting(
        8000, "Words that an ELMo predicts, the commonest; 8000 if not given.", low=6, rare=True
    )
    num_layers: int = 2
    hidden_dim: int = 256
    intermediate_dim: int = 1024
    filters: tuple = (32, 32, 64, 128)
    character_dim: int = 16
    num_highways: int = 1
    clip: float = 3.0
    dropout: float = 0.1
    classifier_dropout: float | None = None
    initializer_range: float = 0.05
    pad_token_id: int = 0

    max_length: ClassVar[None] = None
    recurrent: ClassVar[bool] = True
    attends: ClassVar[bool] = False
    tie_embeddings: ClassVar[bool] = False
    language_model: ClassVar[str] = "bidirectional_lm"
    reads_characters: ClassVar[bool] = True
    pooling: ClassVar[Pooling] = Pooling("ends", None)

    def __post_init__(self):
        super().__post_init__()
        if self.hidden_dim % 2:
            raise InputError(
                f"hidden_dim={self.hidden_dim} must be even: each direction has half of it."
            )

    @property
    def head_dropout(self):
        """Dropout before a head's last layer, in addition to that of the states."""
        return self.classifier_dropout or 0.0

    @property
    def output_words(self):
        """V, the number of words that are predicted."""
        return min(self.predicted_words, self.vocabulary_size)

    @property
    def task_config(self):
        """Config of the network that reads a task's texts: one bidirectional LSTM."""
        return RecurrentConfig(
            self.output_words,
            num_layers=1,
            hidden_dim=self.hidden_dim,
            dropout=self.dropout,
            bidirectional=True,
            initializer_range=self.initializer_range,
        )

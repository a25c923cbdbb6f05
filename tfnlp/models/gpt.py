"""GPT (Radford et al. 2018) and GPT-2 (Radford et al. 2019)."""

import dataclasses
import math
from typing import ClassVar

import keras

from tfnlp.layers import FastTruncatedNormal, LayerNormalization
from tfnlp.models.base_config import Pooling, TextConfig
from tfnlp.models.shared_parts import encoder_blocks, run_blocks, text_embedding


@keras.saving.register_keras_serializable("tfnlp")
@dataclasses.dataclass(frozen=True)
class GptConfig(TextConfig):
    """The sizes and rates of a GPT; defaults are those of the first, 'openai-gpt'.

    Args:
        embedding_dropout: applied to the embeddings in training.
    """

    vocabulary_size: int = 40478
    activation: str = "gelu_tanh"
    num_segments: int = 0
    layer_norm_epsilon: float = 1e-5
    embedding_dropout: float = 0.1

    pooling: ClassVar[Pooling] = Pooling("last", None, bare=True)
    language_model: ClassVar[str] = "causal_lm"


@keras.saving.register_keras_serializable("tfnlp")
@dataclasses.dataclass(frozen=True)
class Gpt2Config(GptConfig):
    """The sizes and rates of a GPT-2; defaults are those of the smallest, 'gpt2'.

    Args:
        embedding_dropout: applied to the embeddings in training.
    """

    vocabulary_size: int = 50257
    max_length: int | None = 1024

    @property
    def tagger_dropout(self):
        """Dropout before the tagging layer: 0.1 by default, as in `transformers`."""
        return 0.1 if self.classifier_dropout is None else self.classifier_dropout


def encode_gpt(config, inputs, options):
    """Run a GPT; return as `run_blocks` does."""
    return _run(config, inputs, options)


def encode_gpt2(config, inputs, options):
    """Run a GPT-2, which is pre-norm with a final norm; return as `encode_gpt` does."""
    # Radford et al. 2019, section 2.3: residual layers start scaled by 1 / sqrt(their number).
    scale = 1 / math.sqrt(2 * config.num_layers)
    scaled = FastTruncatedNormal(stddev=config.initializer_range * scale)
    states, further = _run(config, inputs, options, norm_first=True, output_initializer=scaled)
    norm = LayerNormalization(
        epsilon=config.layer_norm_epsilon, dtype=options.dtype, name="final_norm"
    )
    states[-1] = norm(states[-1])
    return states, further


def _run(config, inputs, options, **block_arguments):
    embed = text_embedding(
        config, options, num_segments=0, use_norm=False, dropout=config.embedding_dropout
    )
    return run_blocks(
        encoder_blocks(config, options, **block_arguments),
        embed(inputs["token_ids"]),
        options,
        attention_mask=inputs["padding_mask"][:, None, :],
        use_causal_mask=True,
    )

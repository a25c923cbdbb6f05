"""ELMo: states of a bidirectional language model over words, which read their characters.

Peters et al. 2018, 'Deep Contextualized Word Representations', section 3; sizes, residuals and
clipping as in `bilm-tf`.
"""

import keras
from keras import ops

from tfnlp.layers import CharacterCNN, ProjectedLSTM, ScalarMix
from tfnlp.models.recurrent import read_layers
from tfnlp.models.shared_parts import token_embedding, weight_initializer
from tfnlp.text.tokenizers.spelling import UNKNOWN_WORD


def encode_elmo(config, inputs, options):
    """Run both directions of the language model.

    Args:
        config: an `ElmoConfig`.
        inputs: `characters` (B, L, W) and `padding_mask` (B, L).
        options: a `BuildOptions`.

    Returns:
        The words' vectors and every layer's states, a list of (B, L, D), the forward half of D
        before the backward one; and {}. The vectors know no context, and have both halves alike.
    """
    mask, width = ops.cast(inputs["padding_mask"], "bool"), config.hidden_dim // 2
    embed = CharacterCNN(
        width,
        config.filters,
        config.character_dim,
        num_highways=config.num_highways,
        embeddings_initializer=weight_initializer(config),
        name="word_vectors",
    )
    x = keras.layers.Dropout(config.dropout, name="dropout")(embed(inputs["characters"]))
    halves, states = [x, x], [ops.concatenate([x, x], axis=-1)]
    for i in range(config.num_layers):
        for place, direction in enumerate(("forward", "backward")):
            layer = ProjectedLSTM(
                config.intermediate_dim,
                width,
                clip=config.clip,
                go_backwards=direction == "backward",
                name=f"{direction}_{i}",
            )
            x = layer(halves[place], mask=mask)
            x = keras.layers.Dropout(config.dropout, name=f"{direction}_dropout_{i}")(x)
            halves[place] = halves[place] + x if i else x
        states.append(ops.concatenate(halves, axis=-1))
    return states, {}


def read_states(config, inputs, states):
    """Read [word embedding; ELMo] with the network of a task; the language model is frozen.

    Peters et al. 2018, section 3.3; ELMo is the `ScalarMix` of the states.

    Args:
        config, inputs, states: those of `encode_elmo`, and its result.

    Returns:
        (B, L, D), forward states before backward ones.
    """
    for layer in keras.Model(inputs, states).layers:
        layer.trainable = False
    ids, mask = inputs["token_ids"], ops.cast(inputs["padding_mask"], "bool")
    words = ops.where(ids < config.output_words, ids, UNKNOWN_WORD)
    x = token_embedding(config.task_config, "word_embeddings")(words)
    mixed = ScalarMix(name="mix")(ops.stack(states, axis=-2))
    x = keras.layers.Dropout(config.dropout, name="task_dropout")(
        ops.concatenate([x, mixed], axis=-1)
    )
    return read_layers(config.task_config, x, mask, prefix="task_")[0][-1]

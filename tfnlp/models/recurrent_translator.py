"""Recurrent encoder-decoders: Sutskever et al. 2014, Bahdanau et al. 2015, Luong et al. 2015."""

import keras
from keras import ops

from tfnlp.configs.recurrent_config import STATES
from tfnlp.layers import RecurrentDecoderBlock
from tfnlp.models.heads import lm
from tfnlp.models.recurrent import read_layers
from tfnlp.models.shared_parts import token_embedding
from tfnlp.models.text_model import config_of


def run_recurrent_translator(config, inputs, options, head):
    """Run a recurrent encoder-decoder on sources and targets.

    Args:
        config: a `RecurrentTranslatorConfig`.
        inputs: `encoder_token_ids` and `encoder_padding_mask`, (B, S), and `decoder_token_ids`,
            (B, T).
        options: a `BuildOptions`.
        head: "sequence_to_sequence", or None for no logits.

    Returns:
        The outputs, a dict, as `build_model` describes them; the decoder's input and output, two
        tensors (B, T, D); and the encoder's input and every layer's output, a list of (B, S, D).
    """
    embed = embed_source = token_embedding(config)
    if not config.share_embeddings:
        embed_source = token_embedding(config, "encoder_embeddings")
    source = embed_source(inputs["encoder_token_ids"])
    source = keras.layers.Dropout(config.dropout, name="encoder_dropout")(source)
    mask = ops.cast(inputs["encoder_padding_mask"], "bool")
    source_states, last = read_layers(config, source, mask, prefix="encoder_")
    if config.bidirectional:
        last = _bridge(config, last)
    x = embed(inputs["decoder_token_ids"])
    states = [keras.layers.Dropout(config.dropout, name="decoder_dropout")(x)]
    decoder = RecurrentDecoderBlock(
        config.hidden_dim,
        config.num_layers,
        config.cell,
        score=config.attention,
        input_feeding=config.input_feeding and config.attention is not None,
        dropout=config.dropout,
        name="decoder",
    )
    weights = {}
    if config.attention is None:
        x = decoder(states[0], last)
    else:
        x, weights["attention_weights"] = decoder(
            states[0], last, source_states[-1], source_mask=inputs["encoder_padding_mask"]
        )
    states.append(keras.layers.Dropout(config.dropout, name="output_dropout")(x))
    outputs = {"sequence_output": states[-1], "encoder_output": source_states[-1]} | weights
    if head is not None:
        logits = lm(config, embed, states[-1], use_bias=False)
        outputs = {"logits": ops.cast(logits, "float32")} | outputs
    return outputs, states, source_states


def _bridge(config, last):
    """Compute the decoder's initial states from both directions' last (B, layers, S, D).

    Bahdanau et al. 2015, appendix A.2.2, here from both directions; an LSTM's c, which has no
    bounds, is projected without tanh.
    """
    projected = []
    for i in range(config.num_layers):
        for k in range(STATES[config.cell]):
            bridge = keras.layers.Dense(
                config.hidden_dim, activation=None if k else "tanh", name=f"bridge_{i}_{k}"
            )
            projected.append(bridge(last[:, i, k]))
    shape = (-1, config.num_layers, STATES[config.cell], config.hidden_dim)
    return ops.reshape(ops.concatenate(projected, axis=-1), shape)


class ReadsOwnTokens(keras.Model):
    """Recurrent encoder-decoder with scheduled sampling.

    Bengio et al. 2015, section 2.4; it is for training. In place of a target's token it can read
    its own prediction, the best token. The weights are the model's.

    Args:
        model: a recurrent encoder-decoder.

    Call arguments:
        inputs: those of the model, and `feed_predictions` (B, T), 1 where the decoder reads its
            most probable token in place of that of `decoder_token_ids`; at the first place it
            changes nothing.

    Returns:
        A dict: `logits` (B, T, V) float32.
    """

    def __init__(self, model):
        super().__init__(name=model.name)
        self.model = model
        # In a function, so that Keras does not take it for a part of this model.
        before = decoder_inputs(model)
        self._before = lambda inputs, training: before(inputs, training=training)
        self.built = True

    def call(self, inputs, training=None):
        inputs = dict(inputs)
        feed_predictions = inputs.pop("feed_predictions")
        config, decoder = self.model.text_config, self.model.get_layer("decoder")
        x, *source = self._before(inputs, training)
        every = ops.arange(config.vocabulary_size, dtype="int32")[None]
        rows = self.model.get_layer("embeddings")(every)[0]
        matrix = output_logits(self.model, ops.eye(config.hidden_dim, dtype=x.dtype))
        arguments = {"feed_predictions": (feed_predictions, rows, matrix)}
        if config.attention is not None:
            arguments["source_mask"] = inputs["encoder_padding_mask"]
        x = decoder(x, *source, **arguments, training=training)
        x = x if config.attention is None else x[0]
        x = self.model.get_layer("output_dropout")(x, training=training)
        return {"logits": output_logits(self.model, x)}


def decoder_inputs(model):
    """Build a model of the same weights that ends at the decoder's inputs.

    Returns:
        A functional `keras.Model` to a list: the embeddings of the target (B, T, D), the states
        that the decoder begins with (B, num_layers, states, D), and with attention the source's
        states (B, S, D).
    """
    with_source = config_of(model).attention is not None
    return keras.Model(model.input, model.get_layer("decoder").input[: 2 + with_source])


def output_logits(model, x):
    """Compute the logits (..., V) float32 of a decoder's outputs (..., D)."""
    if model.text_config.tie_embeddings:
        logits = model.get_layer("embeddings")(x, reverse=True)
    else:
        logits = model.get_layer("lm_output")(x)
    if model.text_config.output_bias:
        logits = model.get_layer("lm_bias")(logits)
    return ops.cast(logits, "float32")

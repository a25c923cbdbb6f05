"""Construction of a model of any family, with any head."""

import contextlib

import keras

from tfnlp import families, models
from tfnlp.configs import CLASS_HEADS, TEXT_CLASS_HEADS, check_head, family_name
from tfnlp.layers import MergeChoices
from tfnlp.models.head_outputs import PREDICTIONS, Encoded
from tfnlp.models.heads import pool
from tfnlp.models.shared_parts import BuildOptions
from tfnlp.models.text_model import TextModel, config_of
from tfnlp.utils.errors import InputError

# Heads of tokens, whose rows may hold several documents.
PACKED_HEADS = ("tagger", "masked_lm", "causal_lm", "discriminator")


def build_model(
    config,
    head=None,
    num_classes=None,
    *,
    memory=False,
    packed=False,
    shared_embeddings=None,
    dtype=None,
    name=None,
    **options,
):
    """Build a model of any family, with fresh weights.

    Args:
        config: of a family, such as a `BertConfig`.
        head: None for the states alone, or one of `tfnlp.models.HEADS`: "classifier",
            "multi_label_classifier", "tagger", "answerer", "chooser", "embedder", "masked_lm",
            "causal_lm", "permutation_lm", "discriminator", "pretraining"; "bidirectional_lm" of
            an ELMo; "sequence_to_sequence" of an encoder-decoder.
        num_classes: C, of a classifier (1 for regression), of several labels too, or a tagger.
        memory: also take the memory of earlier segments, and give the one for the next; of a
            Transformer-XL, an XLNet or a recurrent network, whose memory is its states.
        shared_embeddings: the other model of an ELECTRA's two, to have its embedding tables and
            their norm (but not its projection) in common with it; of a DeBERTa's two, to have
            its tables without training them (`GradientDisentangledEmbedding`).
        packed: also take the `positions` of the tokens, (B, L) int32, each within its document: a
            row may hold several, each of which begins at a 0 and sees itself alone. Not with a
            head for whole texts.
        dtype: a Keras dtype policy, such as "mixed_bfloat16"; the global one if None.
        name: of the model; the family's if None.
        hidden_states: also output the embeddings and every block's output.
        attention_scores: also output every block's scores before the softmax.
        vectors: the `tfnlp.configs.VectorHead` of an embedder; the mean of the states, of length
            1, if not given. Of a classifier, which reads such a vector in place of the family's
            own and outputs it too; the latter if not given.
        block_size: tokens that attention looks at together, so that training on long inputs
            takes a fraction of the memory; all tokens if None. Results are the same but for
            rounding and the draws of attention dropout. It is no part of the config: a saved
            folder does not know of it, a `.keras` file does.
        attention_projections: also output every block's queries, keys and values; not with
            "permutation_lm", whose blocks have two streams.

    Returns:
        A functional `TextModel` from a dict of `token_ids`, `segment_ids` and `padding_mask`,
        each (B, L) int32 (the mask 1 at real tokens); for a chooser each (B, choices, L). A
        `KnowledgeBertConfig` has also `entity_ids`, likewise, 0 at tokens without an entity. With
        "permutation_lm" also of `permutation_order` (B, L), the rank of each position in the
        order in which they are seen, and `target_mapping` (B, P, L), one-hot rows of the
        positions to predict. With `memory` also of `memory` (B, num_layers, M, D) float32, M
        being 0 before the first segment. Its output is a dict of the head's predictions:

        - "classifier", "multi_label_classifier": `logits` (B, C); "tagger": `logits` (B, L, C);
        - "answerer": `start_logits` and `end_logits` (B, L);
        - "chooser": `logits` (B, choices);
        - "embedder", and a classifier with `vectors`: `embedding` (B, D) float32, the vector of
          each text;
        - "masked_lm", "causal_lm": `logits` (B, L, V); "permutation_lm": `logits` (B, P, V);
        - "bidirectional_lm": `forward_logits` and `backward_logits` (B, L, V);
        - "discriminator": `logits` (B, L);
        - "pretraining": `logits` (B, L, V) of tokens and `pair_logits` (B, 2).

        (A Transformer-XL's logits are log-probabilities already.)

        Then `sequence_output` (B, L, D), `pooled_output` (B, D) where the family or the head
        has one, and on request `hidden_states`, a list of num_layers + 1 tensors (B, L, D),
        `attention_scores`, a list of num_layers tensors (B, N, L, M + L), and `queries`, `keys`
        and `values`, lists of num_layers tensors (B, N, L, H), the latter two (B, N, M + L, H). A
        chooser's are of B * choices texts. With `memory` the new `memory` (B, num_layers, at most
        memory_length, D).

        An encoder-decoder takes a dict of `encoder_token_ids` and `encoder_padding_mask`, (B, S),
        and `decoder_token_ids`, (B, T), int32 each, and gives `logits` (B, T, V) float32, row t of
        the token after the decoder's token t; then `sequence_output` (B, T, D) of the decoder,
        `encoder_output` (B, S, D), and on request `hidden_states`, `attention_scores` (B, N, T,
        T) and `queries`, `keys` and `values` of the decoder's blocks, those of their attention to
        the encoder, which begin with "cross_" (scores (B, N, T, S)), and those of the encoder's
        blocks, which begin with "encoder_". A recurrent one with attention has its weights,
        `attention_weights` (B, T, S), and none of the other attention outputs.

    Raises:
        InputError: for a head, a memory, shared embeddings or options of attention that the
            family or the head cannot have.
        ValueError: for a `block_size` below 1, or beside attention scores.
    """
    check_head(config, head, num_classes)
    options = BuildOptions(**options)
    _check_options(config, head, options, memory, packed)
    shared = {} if shared_embeddings is None else _shared_tables(config, shared_embeddings)
    with dtype_policy(dtype):
        if families.family_of(config).translates:
            inputs, outputs = _build_encoder_decoder(config, head, options)
        else:
            inputs = _inputs(config, head, memory)
            if packed:
                inputs["positions"] = keras.Input((None,), dtype="int32", name="positions")
            outputs = _encode(config, head, inputs, options, **shared)
            if head is not None:
                text = Encoded(config, inputs, outputs, options)
                outputs = PREDICTIONS[head](text, num_classes) | outputs
            if not options.hidden_states:
                del outputs["hidden_states"]
    model = TextModel(inputs, outputs, name=name or family_name(config))
    model.text_config, model.head = config, head
    return model


@contextlib.contextmanager
def dtype_policy(policy):
    """Temporarily make `policy`, unless it is None, the dtype policy of new layers."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy or before)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def _encode(config, head, inputs, options, **shared):
    """Return the outputs of an encoder, all `hidden_states` among them."""
    texts = inputs
    if head == "chooser":
        texts = {key: MergeChoices(name=f"merge_{key}")(x) for key, x in inputs.items()}
    encode = families.family_of(config).load("build")
    states, further, *memory = encode(config, texts, options, **shared)
    if config.reads_characters and head in CLASS_HEADS:
        states = [*states, models.elmo.read_states(config, texts, states)]
    outputs = {"sequence_output": states[-1], "hidden_states": states} | further
    class_heads = () if options.vectors else TEXT_CLASS_HEADS
    is_whole_text = head in (*class_heads, "chooser", "pretraining")
    if config.pooling.token and (is_whole_text or (head is None and config.pooling.pretrained)):
        outputs["pooled_output"] = pool(config, states[-1], texts["padding_mask"], head)
    return outputs | ({"memory": memory[0]} if "memory" in inputs else {})


def _inputs(config, head, memory):
    """Return the inputs of an encoder by name."""
    shape = (None, None) if head == "chooser" else (None,)
    names = ["token_ids", "segment_ids", "padding_mask"] + ["entity_ids"] * config.reads_entities
    inputs = {key: keras.Input(shape, dtype="int32", name=key) for key in names}
    if config.reads_characters:
        inputs["characters"] = keras.Input((*shape, None), dtype="int32", name="characters")
    if head == "permutation_lm":
        inputs["permutation_order"] = keras.Input((None,), dtype="int32", name="permutation_order")
        inputs["target_mapping"] = keras.Input((None, None), dtype="int32", name="target_mapping")
    if memory:
        shape = (config.num_layers, None, config.hidden_dim)
        inputs["memory"] = keras.Input(shape, dtype="float32", name="memory")
    return inputs


def _build_encoder_decoder(config, head, options):
    """Return the inputs and the outputs of an encoder-decoder."""
    inputs = {
        key: keras.Input((None,), dtype="int32", name=key)
        for key in ("encoder_token_ids", "encoder_padding_mask", "decoder_token_ids")
    }
    run = families.family_of(config).load("build")
    outputs, states, source_states = run(config, inputs, options, head)
    if options.hidden_states:
        outputs |= {"hidden_states": states, "encoder_hidden_states": source_states}
    return inputs, outputs


def _shared_tables(config, model):
    if not config.shares_embeddings or type(config_of(model)) is not type(config):
        raise InputError(
            f"shared_embeddings does not fit the family {family_name(config)!r} with a "
            f"{model.name}; only the two models of an ELECTRA or of a DeBERTa share theirs."
        )
    return {"shared": model.get_layer("embeddings")}


def _check_options(config, head, options, memory, packed):
    """Raise an InputError for an option that the family or the head cannot have."""
    refused = {
        f"memory={memory}": memory and (not config.has_memory or head == "chooser"),
        f"packed={packed}": packed
        and (not config.packs_documents or head not in (None, *PACKED_HEADS)),
        f"block_size={options.block_size}": not config.attends and options.block_size,
        "attention_scores=True": not config.attends and options.attention_scores,
        "attention_projections=True": options.attention_projections
        and (not config.attends or head == "permutation_lm"),
    }
    for option in filter(refused.get, refused):
        raise InputError(
            f"{option} does not fit the family {family_name(config)!r} with head={head!r}; leave "
            "it out."
        )

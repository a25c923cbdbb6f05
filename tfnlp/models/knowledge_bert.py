"""ERNIE (Zhang et al. 2019): a BERT whose last blocks also read entities of a knowledge graph."""

import keras
import numpy as np
from keras import ops

from tfnlp.configs import BertConfig, KnowledgeBertConfig, family_name
from tfnlp.layers import KnowledgeBlock
from tfnlp.layers.core.merged_weights import merged_weights
from tfnlp.models.build import build_model
from tfnlp.models.shared_parts import block_sizes, encoder_blocks, run_blocks, text_embedding
from tfnlp.models.text_model import config_of
from tfnlp.models.vectors import vector_head
from tfnlp.utils.errors import InputError


def encode_knowledge_bert(config, inputs, options):
    """Run a BERT, of which the last blocks are aggregators of tokens and entities.

    Zhang et al. 2019, section 3.2: the T-Encoder, then the K-Encoder. As in their code the first
    token takes part in the attention among entities, as one of zeros, so that the state of the
    whole text sees them.

    Args:
        config: a `KnowledgeBertConfig`.
        inputs: `token_ids`, `segment_ids`, `padding_mask` and `entity_ids`, each (B, L).
        options: a `BuildOptions`.

    Returns:
        As `run_blocks`.
    """
    x = text_embedding(config)(inputs["token_ids"], inputs["segment_ids"])
    attention_mask = inputs["padding_mask"][:, None, :]  # (B, 1, L)
    plain = config.num_layers - config.num_knowledge_layers
    blocks = encoder_blocks(config, options)[:plain]
    states, further = run_blocks(blocks, x, options, attention_mask=attention_mask)

    ids, x = inputs["entity_ids"], states[-1]
    embed = keras.layers.Embedding(
        config.num_entities, config.entity_dim, trainable=False, name="entity_embeddings"
    )
    entities = embed(ids)  # (B, L, E)
    entity_mask = ops.concatenate([ops.ones_like(ids[:, :1]), ids[:, 1:]], axis=1) > 0
    blocks = [
        KnowledgeBlock(
            config.num_heads,
            config.intermediate_dim,
            num_entity_heads=config.num_entity_heads,
            name=f"encoder_{i}",
            **block_sizes(config, options),
        )
        for i in range(plain, config.num_layers)
    ]
    for block in blocks:
        x, entities, *tensors = block(
            x,
            entities,
            attention_mask=attention_mask,
            entity_mask=entity_mask,
            **options.block_arguments,
        )
        for name, tensor in zip(further, tensors, strict=True):
            further[name].append(tensor)
        states.append(x)
    # Nothing reads the last block's entities.
    for part in (blocks[-1].feed_forward.entity_output, blocks[-1].norms["entity_feed_forward"]):
        part.trainable = False
    return states, further


def with_entities(model, vectors, num_layers=2, num_heads=4):
    """Return an ERNIE that starts from a BERT and vectors of entities, which are not trained.

    The fusion of a block starts from the feed-forward network of BERT's, and all that is of
    entities alone from random weights.

    Args:
        model: a BERT of `build_model`, with any head.
        vectors: (entities, E); entity i has the id i + 1, as 0 means none.
        num_layers: the last blocks, which become aggregators.
        num_heads: heads of the attention among entities.

    Raises:
        InputError: if the model is no BERT, has fewer layers, or `num_heads` does not divide E.
    """
    config = config_of(model)
    if type(config) is not BertConfig:
        raise InputError(
            f"A model of the family {family_name(config)} cannot read entities; give a BERT."
        )
    count, width = vectors.shape
    sizes = {"num_entities": count + 1, "entity_dim": width, "num_entity_heads": num_heads}
    config = KnowledgeBertConfig(**vars(config), **sizes, num_knowledge_layers=num_layers)
    classes = model.output["logits"].shape[-1] if "logits" in model.output else None
    options = {"block_size": model.block_size, "vectors": vector_head(model)}
    fused = build_model(config, model.head, classes, **options)
    weights = merged_weights(model)
    for weight in fused.weights:
        if weight.path in weights:
            weight.assign(weights[weight.path])
    table = np.concatenate([np.zeros((1, width)), vectors])
    fused.get_layer("entity_embeddings").set_weights([table])
    return fused

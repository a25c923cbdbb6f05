"""ERNIE's aggregator: beside BERT's block, and which entities it sees."""

import numpy as np

from tests.layers.witnesses import layer_norm, near, rand, randomise
from tfnlp.layers import KnowledgeBlock, KnowledgeFusion


def test_both_activations_of_a_fusion_are_computed():
    tokens, entities = rand(2, 5, 8), rand(2, 5, 6, seed=1)
    fusion = KnowledgeFusion(12, "relu", output_activation="tanh")
    fusion(tokens, entities)
    h = np.maximum(fusion.intermediate(tokens) + fusion.entity_intermediate(entities), 0)
    near(fusion(tokens, entities)[0], np.tanh(fusion.output_dense(h)))
    near(fusion(tokens, entities)[1], np.tanh(fusion.entity_output(h)))


def test_norms_can_come_first():
    tokens, entities = rand(2, 5, 8), rand(2, 5, 6, seed=1)
    block = KnowledgeBlock(2, 12, num_entity_heads=3, norm_first=True)
    block(tokens, entities)
    randomise(block)
    for norm in block.norms.values():
        norm.gamma.assign(np.ones(norm.gamma.shape))
        norm.beta.assign(np.zeros(norm.beta.shape))
    mask = np.array([[1, 0, 1, 0, 1], [0, 1, 1, 0, 0]])

    def norm(x):
        return layer_norm(np.asarray(x), 1e-12).astype("float32")

    x = tokens + block.attention(norm(tokens))
    e = entities + block.entity_attention(norm(entities), attention_mask=mask[:, None, :])
    w, v = block.feed_forward(norm(x), norm(e), mask)
    found = block(tokens, entities, entity_mask=mask)
    near(found[0], x + w)
    near(found[1], (e + v) * mask[:, :, None])

"""The fusion of tokens and entities against the paper's equations, a token at a time."""

import math

import numpy as np

from tests.layers.witnesses import near, project, rand, randomise, weight
from tfnlp.layers import KnowledgeFusion


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / np.sqrt(2)))


def fused(layer, token, entity):
    """Eq. 4 for a token with an entity, eq. 5 for one without."""
    h = project(layer.intermediate, token)
    if entity is not None:
        h = h + entity @ weight(layer.entity_intermediate.kernel)
    h = gelu(h)
    return gelu(project(layer.output_dense, h)), gelu(project(layer.entity_output, h))


def test_fusion_is_that_of_the_paper():
    tokens, entities = rand(2, 3, 8), rand(2, 3, 5, seed=1)
    layer = KnowledgeFusion(7)
    layer(tokens, entities)
    randomise(layer)
    for mask in (None, np.array([[1, 0, 1], [0, 1, 1]]), np.zeros((2, 3), bool)):
        found = layer(tokens, entities, mask)
        for b, i in np.ndindex(2, 3):
            has_entity = mask is None or mask[b, i]
            token, entity = fused(layer, tokens[b, i], entities[b, i] if has_entity else None)
            near(found[0][b, i], token)
            near(found[1][b, i], entity if has_entity else 0 * entity)

"""ERNIE's aggregator: beside BERT's block, and which entities it sees."""

import numpy as np
import pytest

from tests.layers.witnesses import layer_norm, near, rand, randomise
from tfnlp.layers import EncoderBlock, KnowledgeBlock


def made(tokens, entities, **options):
    block = KnowledgeBlock(2, 12, num_entity_heads=3, **options)
    block(tokens, entities)
    randomise(block)
    return block


@pytest.mark.parametrize("norm_first", [False, True])
def test_without_entities_it_is_an_encoder_block(norm_first):
    tokens, entities = rand(2, 5, 8), rand(2, 5, 6, seed=1)
    block, plain = made(tokens, entities, norm_first=norm_first), EncoderBlock(2, 12)
    plain.norm_first = norm_first
    plain(tokens)
    weights = {w.path.split("/", 1)[1]: w for w in block.weights}
    for weight in plain.weights:
        weight.assign(weights[weight.path.split("/", 1)[1]])
    mask = np.tri(5, dtype=bool)[None]
    options = {"attention_mask": mask, "return_attention_scores": True}
    found = block(tokens, entities, entity_mask=np.zeros((2, 5)), **options)
    expected = plain(tokens, **options)
    near(found[0], expected[0])
    near(found[2], expected[1])
    assert not np.any(found[1])


def test_norms_can_come_first():
    tokens, entities = rand(2, 5, 8), rand(2, 5, 6, seed=1)
    block = made(tokens, entities, norm_first=True)
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


def test_entities_of_other_tokens_do_not_count():
    tokens, entities = rand(2, 5, 8), rand(2, 5, 6, seed=1)
    block, mask = made(tokens, entities), np.array([[1, 0, 1, 0, 1], [0, 0, 0, 0, 0]])
    found = block(tokens, entities, entity_mask=mask)
    others = np.where(mask[:, :, None], entities, 9 + entities).astype("float32")
    for a, b in zip(found, block(tokens, others, entity_mask=mask), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)
    assert np.abs(found[0] - block(tokens, -entities, entity_mask=mask)[0])[0].max() > 1e-2


def test_heads_that_do_not_divide_the_width_of_entities_are_refused():
    with pytest.raises(ValueError, match="num_heads=4 does not divide the input width 6"):
        KnowledgeBlock(2, 12)(rand(1, 2, 8), rand(1, 2, 6))

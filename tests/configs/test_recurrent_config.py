"""Names of cells and scores, which configs repeat so that they need no Keras."""

from tfnlp.configs.recurrent_config import SCORES, STATES
from tfnlp.layers.attention import score_attention
from tfnlp.layers.blocks import recurrent_decoder


def test_cells_and_scores_are_those_of_the_layers():
    assert {name: count for name, (_, count) in recurrent_decoder.CELLS.items()} == STATES
    assert SCORES == score_attention.SCORES

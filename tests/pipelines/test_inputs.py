"""Inputs: drawn, taken, and as flat texts."""

from tfnlp.pipelines import Inputs


def test_inputs_are_drawn_with_all_their_columns():
    inputs = Inputs(list("abcd"), list("ABCD"), [1, 2, 3, 4], None)
    assert inputs.take([2, 0]) == Inputs(["c", "a"], ["C", "A"], [3, 1])
    assert inputs.draw(9) == inputs
    drawn = inputs.draw(2)
    assert len(drawn.texts) == 2 and drawn.texts != ["a", "b"]
    assert [text.upper() for text in drawn.texts] == drawn.second_texts

"""Settings of vectors of graphs."""

import pytest

from tfnlp.knowledge import METHODS
from tfnlp.utils.errors import InputError


def test_methods_have_their_papers_losses():
    assert [METHODS[name]().loss for name in METHODS] == ["margin", "margin", "self_adversarial"]


@pytest.mark.parametrize(
    ("setting", "expected"),
    [({"norm": 3}, "norm=3 must be at most 2"), ({"dim": 0}, "dim=0 must be at least")],
)
def test_bad_settings_are_told(setting, expected):
    with pytest.raises(InputError, match=expected):
        METHODS["transe"](**setting)

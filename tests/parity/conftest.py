import sys

import pytest


@pytest.fixture(autouse=True)
def _one_thread():
    """Models this small take longer on several threads."""
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)

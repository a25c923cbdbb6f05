"""Whole layers that go: a model of fewer blocks, each as it was."""

from distill.learning.layer_map import even_layer_map
from distill.learning.student import make_student
from tfnlp.errors import InputError
from tfnlp.models import config_of

WAYS = ("top", "alternate", "even")


def kept_layers(num_layers, keep, way="top"):
    """The layers that stay, counted from 0.

    Sajjad et al. 2023, 'On the Effect of Dropping Layers of Pre-trained Transformer Models',
    section 3.

    Args:
        num_layers: of the model.
        keep: how many of them stay.
        way: "top": the first ones stay, which are the most general; "alternate": every second
            one goes, from the last but one on; "even": those spread evenly stay, the last among
            them.

    Raises:
        InputError: for another way, more layers than there are, and fewer than half of them where
            every second one goes.
    """
    if way not in WAYS:
        raise InputError(f"way={way!r} is unknown; use one of {', '.join(WAYS)}.")
    even = even_layer_map(num_layers, keep)  # which checks the number
    if way == "even":
        return even
    if way == "top":
        return list(range(keep))
    gone = {num_layers - 2 - 2 * i for i in range(num_layers - keep)}
    if min(gone, default=0) < 0:
        raise InputError(
            f"keep={keep} of {num_layers} layers are fewer than half, which way='alternate' "
            "leaves; keep more, or use another way."
        )
    return [layer for layer in range(num_layers) if layer not in gone]


def drop_layers(model, layers):
    """A model of some of another's layers, all else as it was.

    Args:
        model: from `tfnlp.models.build_model`.
        layers: those that stay, counted from 0, such as `kept_layers` gives.

    Returns:
        A `TextModel`.

    Raises:
        InputError: for a layer that is not there, or named twice.
    """
    layers = list(layers)
    if len(set(layers)) < len(layers):
        raise InputError(f"layers={layers} names a layer twice; each can stay once.")
    if not layers or len(layers) > config_of(model).num_layers:
        raise InputError(f"layers={layers} must name at least one of the model's layers.")
    return make_student(model, len(layers), layer_map=layers)

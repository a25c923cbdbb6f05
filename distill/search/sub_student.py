"""Students that a supernet holds, and the space of them, without TensorFlow."""

import dataclasses

import numpy as np

from distill.learning.layer_map import even_layer_map
from tfnlp.utils.errors import InputError
from tfnlp.utils.settings import setting


@dataclasses.dataclass(frozen=True)
class SubStudent:
    """Part of a supernet: some of its layers, and the most important heads, units and tokens.

    Args:
        layers: the numbers of its layers in the supernet, ascending, from 0.
        num_heads: heads of each layer.
        intermediate_dim: feed-forward units of each layer.
        vocabulary_size: tokens.
    """

    layers: tuple[int, ...]
    num_heads: int
    intermediate_dim: int
    vocabulary_size: int

    @property
    def sizes(self):
        """Its numbers of layers, heads, units and tokens."""
        return len(self.layers), self.num_heads, self.intermediate_dim, self.vocabulary_size

    def __str__(self):
        layers = ",".join(map(str, self.layers))
        return (
            f"layers {layers}; {self.num_heads} heads, {self.intermediate_dim} units, "
            f"{self.vocabulary_size} tokens"
        )


@dataclasses.dataclass(frozen=True)
class SearchSpace:
    """Numbers of layers, heads, units and tokens that a student may have.

    A field that is empty has the default of `complete`.
    """

    num_layers: tuple[int, ...] = setting((), "Numbers of layers to try; all if not given.")
    num_heads: tuple[int, ...] = setting(
        (), "Numbers of heads to try; an eighth of the teacher's to all if not given."
    )
    intermediate_dim: tuple[int, ...] = setting(
        (), "Numbers of feed-forward units to try, likewise."
    )
    keep_tokens: tuple[int, ...] = setting(
        (),
        "Numbers of tokens to try, the most frequent in `train`; 3 by `size_mb`, or all without "
        "it, if not given.",
    )

    def complete(self, config, keep_tokens):
        """Return the space with the defaults of a teacher's config, each field sorted.

        Args:
            config: of the teacher.
            keep_tokens: the default of the field.

        Raises:
            InputError: for a number that the teacher does not reach, fewer heads of a family whose
                heads cannot be pruned, or a space of one student.
        """
        most = {
            "num_layers": config.num_layers,
            "num_heads": config.num_heads,
            "intermediate_dim": config.intermediate_dim,
            "keep_tokens": config.vocabulary_size,
        }
        shares = {name: _shares(most[name]) for name in ("num_heads", "intermediate_dim")}
        if not config.any_head_dim:
            shares["num_heads"] = [config.num_heads]
        layers = range(1, config.num_layers + 1)
        defaults = {"num_layers": layers, **shares, "keep_tokens": keep_tokens}
        space = {name: sorted({*(value or defaults[name])}) for name, value in vars(self).items()}
        for name, numbers in space.items():
            if not 1 <= numbers[0] <= numbers[-1] <= most[name]:
                shown = ",".join(map(str, numbers))
                raise InputError(f"{name}={shown} must lie from 1 to the teacher's {most[name]}.")
        if not config.any_head_dim and space["num_heads"] != [config.num_heads]:
            raise InputError(
                f"num_heads={space['num_heads'][0]}: heads of a {config.model_type} cannot be "
                "pruned, since its attention has more weights by head than BERT's; leave it out."
            )
        if all(len(x) == 1 for x in space.values()) and space["num_layers"] == [config.num_layers]:
            raise InputError(
                "num_layers, num_heads, intermediate_dim and keep_tokens hold one student alone, "
                "so that there is nothing to search; give more numbers, or distil that one."
            )
        return SearchSpace(**{name: tuple(numbers) for name, numbers in space.items()})

    def largest(self, depth):
        """Return the student of most parts, its layers spread over the supernet's `depth`."""
        return self._at(depth, -1)

    def smallest(self, depth):
        """Return the student of fewest parts, its layers spread over the supernet's `depth`."""
        return self._at(depth, 0)

    def _at(self, depth, place):
        layers = even_layer_map(depth, self.num_layers[place])
        return SubStudent(tuple(layers), *(options[place] for options in self._widths()))

    def _widths(self):
        return self.num_heads, self.intermediate_dim, self.keep_tokens

    def bounds(self, depth):
        """Return the (lowest, highest) of each number of the vectors of `student`, a list.

        They are a preference of each of the supernet's `depth` layers, and the places of the
        numbers of layers, heads, units and tokens among those of the space.
        """
        places = [(0, len(x) - 1) for x in (self.num_layers, *self._widths())]
        return [(0, depth)] * depth + places

    def student(self, vector):
        """Return the student of a vector within `bounds`: its layers are the most preferred."""
        *preferences, count, heads, units, tokens = np.asarray(vector).astype("int64").tolist()
        order = np.argsort(-np.array(preferences), kind="stable")
        layers = sorted(order[: self.num_layers[count]].tolist())
        widths = (
            x[place] for x, place in zip(self._widths(), (heads, units, tokens), strict=True)
        )
        return SubStudent(tuple(layers), *widths)


def _shares(most):
    """Return an eighth, a quarter, a half and three quarters of a number, and itself."""
    return [max(1, most * part // 8) for part in (1, 2, 4, 6, 8)]

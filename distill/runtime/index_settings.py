"""Settings of an index of texts."""

import dataclasses

from tfnlp.utils.settings import Settings, setting


@dataclasses.dataclass(frozen=True)
class IndexSettings(Settings):
    """Settings of an index, described by the help of their fields."""

    precision: str = setting(
        "int8",
        "Numbers of the vectors: float32, int8, or bits with int8 to score the first hits again.",
        choices=("float32", "int8", "bits"),
    )
    dims: int | None = setting(
        None,
        "First dimensions of the vectors to keep, of a model with `matryoshka_dims`; all if not "
        "given.",
        low=1,
    )

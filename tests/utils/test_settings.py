"""Settings of dataclasses: numbers, bounds and choices."""

import dataclasses

import pytest

from tfnlp.utils.errors import InputError
from tfnlp.utils.settings import Settings, setting


@dataclasses.dataclass
class Numbers(Settings):
    count: int | None = setting(None, "Number.", low=1, high=3)
    share: float = setting(0.5, "Share.", above=0, below=1)
    kind: str = setting("a", "Kind.", choices=("a", "b"))
    name: str = ""


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"count": 1.5}, "count=1.5 must be a whole number"),
        ({"count": 0}, "count=0 must be at least 1"),
        ({"count": 4}, "count=4 must be at most 3"),
        ({"share": 0}, "share=0 must be above 0"),
        ({"share": 1.0}, "share=1.0 must be below 1"),
        ({"share": float("nan")}, "share=nan must be a finite number"),
        ({"kind": "c"}, "kind=c is unknown"),
    ],
)
def test_fields_out_of_their_bounds_are_named(fields, message):
    for count in (None, 1, 3):
        Numbers(count)
    with pytest.raises(InputError, match=f"^{message}"):
        Numbers(**fields)

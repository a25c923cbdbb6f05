"""Errors that name what a user can mend."""

import pytest

from tfnlp.utils.errors import InputError, needs_packages, unknown_name


def test_a_package_that_is_absent_is_named():
    with pytest.raises(InputError) as error, needs_packages("The graph", "no-such-package"):
        import no_such_package  # noqa: F401
    assert str(error.value) == "The graph needs no_such_package: pip install no-such-package."


def test_a_package_that_is_there_and_fails_tells_itself_why():
    with pytest.raises(ImportError, match="built for another"), needs_packages("a", "b"):
        raise ImportError("built for another version")
    with pytest.raises(ImportError, match="cannot import name"), needs_packages("a", "b"):
        from tfnlp.utils.errors import no_such_name  # noqa: F401


def test_no_names_are_told_where_there_are_none():
    assert str(unknown_name("x", "a", {})) == "x=a is unknown; there are none, so leave it out."

"""Work on shards: everything once, errors in one sentence, in this process and elsewhere."""

import functools
import importlib.util
import os

import pytest

from tests.beam import NO_BEAM
from tfnlp.utils.errors import ColumnError, InputError
from tfnlp.utils.shard_work import in_beam, in_processes


def load(folder):
    def make(item):
        if item == 3:
            raise InputError("item=3 is one too many; give fewer.")
        if item == 4:
            raise ColumnError("a.jsonl has no field 'text' in line 4.", "text")
        (folder / f"{item}").write_text(f"{item * item}")

    return make


def fail_to_load(folder):
    raise InputError(f"{folder} is damaged.")


def kill(folder):
    return lambda item: os._exit(1)


@pytest.mark.parametrize("place", ["1", "2", "DirectRunner"])
def test_every_item_is_done_and_errors_keep_their_sentence(place, tmp_path):
    if place == "DirectRunner":
        pytest.importorskip("apache_beam", reason=NO_BEAM)
    map_shards = in_processes(int(place)) if place.isdigit() else in_beam(place)
    work = functools.partial(load, tmp_path)
    assert list(map_shards(work, [0, 1, 2, 5])) == [0, 1, 2, 5]
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert written == {"0": "0", "1": "1", "2": "4", "5": "25"}
    damaged = functools.partial(fail_to_load, tmp_path)
    for each, item, message in (
        (work, 3, "item=3 is one too many; give fewer."),
        (damaged, 0, f"{tmp_path} is damaged."),
        (work, 4, "a.jsonl has no field 'text' in line 4."),
    ):
        with pytest.raises(InputError) as error:
            list(map_shards(each, [item]))
        assert str(error.value) == message
    if place.isdigit():
        assert error.value.column == "text"


def test_a_killed_process_is_told(tmp_path):
    with pytest.raises(InputError, match=r"A worker process was killed.*fewer than processes=2"):
        list(in_processes(2)(functools.partial(kill, tmp_path), [1, 2, 3]))


@pytest.mark.skipif(importlib.util.find_spec("apache_beam") is not None, reason="it is installed")
def test_a_missing_beam_is_named():
    with pytest.raises(InputError) as error:
        in_beam("FlinkRunner")
    assert str(error.value) == "runner=FlinkRunner needs apache_beam: pip install apache-beam."

"""Teacher outputs in shards: those of the live teacher, gone on with, and of nothing else."""

import dataclasses
import pickle

import keras
import numpy as np
import pytest

from distill.learning import teacher_outputs
from distill.learning.teacher_outputs import compute_teacher_outputs
from tests.beam import NO_BEAM
from tfnlp.models import build_model
from tfnlp.text import LengthBatches
from tfnlp.text.tokenizers.tokenizer import Encoding
from tfnlp.utils.errors import InputError
from tfnlp.utils.shard_work import in_beam

READS = [("logits", None), ("hidden_states", -1), ("hidden_states", 0), ("attention_scores", 1)]
READS += [("values", 1)]
OUTPUTS = ("hidden_states", "attention_scores", "attention_projections")


def make_batches(lengths=(3, 7, 5, 2, 6, 4, 7), seed=0, shuffle=False):
    rng = np.random.default_rng(seed)
    encodings = [Encoding(rng.integers(5, 28, n).tolist(), [0] * n) for n in lengths]
    return LengthBatches(encodings, 3, rng.integers(0, 2, len(lengths)), shuffle=shuffle)


@pytest.fixture
def teacher(tiny_config):
    keras.utils.set_random_seed(1)
    config = dataclasses.replace(tiny_config, num_layers=2)
    return build_model(config, "classifier", 2, **dict.fromkeys(OUTPUTS, True))


@pytest.fixture
def computed(monkeypatch):
    """The numbers of the shards that were computed, as they are."""
    found, original = [], teacher_outputs._shard_work

    def work(number, *arguments):
        found.append(number)
        return original(number, *arguments)

    monkeypatch.setattr(teacher_outputs, "_shard_work", work)
    monkeypatch.setattr(teacher_outputs, "SHARD_BYTES", 1000)
    return found


def test_shards_hold_what_the_teacher_gives_and_a_killed_cache_goes_on(
    teacher, computed, tmp_path, monkeypatch
):
    batches, write, written = make_batches(), teacher_outputs.write_tensors, []

    def killed(path, *arguments):
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(path)
        write(path, *arguments)

    monkeypatch.setattr(teacher_outputs, "write_tensors", killed)
    with pytest.raises(KeyboardInterrupt):
        compute_teacher_outputs(teacher, batches, READS, tmp_path)
    monkeypatch.setattr(teacher_outputs, "write_tensors", write)
    before = {path.name: path.stat().st_mtime_ns for path in written}
    assert len(before) == 2 and computed == [0, 1, 2]
    computed.clear()
    outputs = compute_teacher_outputs(teacher, batches, READS, tmp_path)
    shards = sorted(tmp_path.glob("*.safetensors"))
    assert computed == list(range(2, len(shards))) and len(shards) >= 4
    assert {path.name: path.stat().st_mtime_ns for path in shards[:2]} == before
    assert [*tmp_path.glob(".*")] == []

    computed.clear()
    again = compute_teacher_outputs(teacher, batches, READS, tmp_path)
    # A run that reads less finds it in the same cache.
    fewer = compute_teacher_outputs(teacher, batches, READS[:2], tmp_path)
    assert computed == []
    assert fewer.signature().keys() == {"logits", "hidden_states/-1"}
    indices = np.array([6, 0, 3, 4])  # of several shards, in another order
    inputs = batches.batch(indices)[0]
    of_teacher, mask = teacher(inputs), inputs["padding_mask"]
    expected = {
        "logits": of_teacher["logits"].numpy(),
        "hidden_states/-1": of_teacher["hidden_states"][-1] * mask[..., None],
        "hidden_states/0": of_teacher["hidden_states"][0] * mask[..., None],
        "attention_scores/1": of_teacher["attention_scores"][1]
        * (mask[:, None, :, None] * mask[:, None, None, :]),
        "values/1": of_teacher["values"][1] * mask[:, None, :, None],
    }
    found, specs = outputs.batch(indices, 7), outputs.signature()
    assert found.keys() == expected.keys() == specs.keys()
    for key, value in found.items():
        assert value.dtype == ("float32" if key == "logits" else "float16") == specs[key].dtype
        assert specs[key].shape.is_compatible_with(value.shape)
        largest = np.abs(expected[key]).max()
        within = 1e-6 if key == "logits" else 1e-3 * largest
        np.testing.assert_allclose(value, expected[key], atol=within)
        np.testing.assert_array_equal(value, again.batch(indices, 7)[key])
        if key in fewer.layouts:
            np.testing.assert_array_equal(value, fewer.batch(indices, 7)[key])
        # What is in memory is not rounded.
    live = compute_teacher_outputs(teacher, batches, READS).batch(indices, 7)
    for key, value in live.items():
        assert value.dtype == "float32"
        np.testing.assert_allclose(value, expected[key], atol=3e-6)


def elsewhere(load, items):
    """Works as another process does, in another order."""
    items = pickle.loads(pickle.dumps(list(items)))
    make = pickle.loads(pickle.dumps(load))()
    for item in reversed(items):
        make(item)
    return items


@pytest.mark.parametrize("runner", ["elsewhere", "DirectRunner"])
def test_work_elsewhere_with_a_saved_teacher_gives_the_same_bytes(
    runner, teacher, computed, tmp_path
):
    map_shards = elsewhere
    if runner != "elsewhere":
        pytest.importorskip("apache_beam", reason=NO_BEAM)
        map_shards = in_beam(runner)
    compute_teacher_outputs(teacher, make_batches(), READS, tmp_path / "here")
    compute_teacher_outputs(teacher, make_batches(), READS, tmp_path / "there", map_shards)
    here, there = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("here", "there")
    )
    assert len(here) > 4 and here == there


def test_a_cache_of_something_else_or_broken_is_refused_in_one_sentence(
    teacher, computed, tmp_path
):
    batches, reads = make_batches(), READS[:2]
    compute_teacher_outputs(teacher, batches, reads, tmp_path)

    def refused(message, given=batches, wanted=reads):
        with pytest.raises(InputError, match=message) as error:
            compute_teacher_outputs(teacher, given, wanted, tmp_path)
        assert "\n" not in str(error.value) and str(tmp_path) in str(error.value)

    refused("of other texts, or of texts cut to", make_batches(seed=1))
    refused("of other texts, or of texts cut to", make_batches((3, 6, 5, 2, 6, 4, 6)))
    refused("of this teacher, but without attention_scores/1; delete it", wanted=READS)
    first, second, *_ = sorted(tmp_path.glob("*.safetensors"))
    content = first.read_bytes()
    for broken in (content[:-8], content[:100], b""):
        first.write_bytes(broken)
        refused("shard_00000.safetensors is no complete shard")
    first.unlink()
    refused("an unfinished cache of other outputs too", wanted=READS[:1])
    compute_teacher_outputs(teacher, batches, reads, tmp_path)
    assert first.read_bytes() == content  # computed anew, and as it was

    index = tmp_path / "cache.json"
    bias = teacher.get_layer("classifier").bias
    bias.assign([3.0, 4.0])
    refused("of another teacher")
    # A shard that another teacher left is not taken for this one's.
    index.unlink()
    refused("it is of another cache")
    assert second.exists()


def test_what_float16_cannot_hold_is_refused_by_name(teacher, tmp_path):
    (shift,) = [
        w for w in teacher.weights if w.path.startswith("embeddings/") and "beta" in w.path
    ]
    shift.assign(shift + 7e4)
    with pytest.raises(InputError, match=r"hidden_states/0 go beyond 65504.*without `cache_dir`"):
        compute_teacher_outputs(teacher, make_batches(), READS[2:3], tmp_path)

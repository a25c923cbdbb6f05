"""Models by their names on a Hub that is a server on loopback."""

import json
import os
import pathlib
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
import safetensors.numpy
from huggingface_hub import constants

from tests.utils.hub_server import COMMITS, HubServer
from tfnlp.checkpoints import load_model, read_config, read_head, read_labels, save_model
from tfnlp.models import build_model
from tfnlp.text import load_tokenizer
from tfnlp.utils import hub
from tfnlp.utils.errors import InputError

NAME = "someone/tiny-film"
SHARDS = ("odd-name-1.safetensors", "odd-name-2.safetensors")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tiny_config, tokenizer):
    folder = tmp_path_factory.mktemp("model")
    save_model(build_model(tiny_config, "classifier", 2), folder, ["bad", "good"], tokenizer)
    return folder


@pytest.fixture(scope="module")
def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def server(files, monkeypatch, tmp_path):
    server = HubServer({NAME: files})
    point_to(server.url, monkeypatch)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(hub, "_COMMITS", {})
    yield server
    server.close()


def point_to(url, monkeypatch):
    monkeypatch.setattr(constants, "ENDPOINT", url)
    template = url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)


def no_network(monkeypatch):
    """As in a process that is started where nobody answers."""
    point_to("http://127.0.0.1:9", monkeypatch)
    hub._COMMITS.clear()


def assert_same_weights(model, other):
    assert len(model.weights) == len(other.weights) > 40
    for a, b in zip(model.weights, other.weights, strict=True):
        np.testing.assert_array_equal(a, b)


def test_only_needed_files_are_fetched_and_once(server, folder, files):
    others = {"pytorch_model.bin": b"x", "README.md": b"x", "onnx/model.onnx": b"x"}
    server.models[NAME] = files | others | {"model.weights.h5": b"x", "run.py": b"x"}
    tokenizer = load_tokenizer(NAME)
    own = ["config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt"]
    assert sorted(server.files_asked()) == own
    assert_same_weights(load_model(NAME, "classifier"), load_model(folder, "classifier"))
    assert sorted(server.files_asked()) == sorted([*own, "model.safetensors"])
    assert tokenizer.vocabulary == load_tokenizer(folder).vocabulary
    server.asked.clear()
    load_model(NAME, "classifier")
    assert read_head(NAME) == "classifier" and read_labels(NAME) == ["bad", "good"]
    assert read_config(NAME) == read_config(folder)
    # A process sees one commit of a name, though the branch moves meanwhile.
    server.commits["main"] = "c" * 40
    assert load_tokenizer(NAME).vocabulary == tokenizer.vocabulary
    assert not server.asked


def test_shards_are_those_of_the_index(server, folder, files):
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    names = sorted(tensors)
    parts = dict(zip(SHARDS, (names[::2], names[1::2]), strict=True))
    sharded = {f: safetensors.numpy.save({n: tensors[n] for n in p}) for f, p in parts.items()}
    sharded |= {"model-00003-of-00003.safetensors": b"of another index"}
    index = {"weight_map": {n: f for f, part in parts.items() for n in part}}
    server.models[NAME] = {n: b for n, b in files.items() if n != "model.safetensors"} | sharded
    server.models[NAME]["model.safetensors.index.json"] = json.dumps(index).encode()
    assert_same_weights(load_model(NAME), load_model(folder))
    asked = [name for name in server.files_asked() if name.endswith(".safetensors")]
    assert sorted(asked) == [*SHARDS]
    server.asked.clear()
    load_model(NAME)
    assert not server.asked
    # The one file goes before shards that hold other tensors, as it does in a folder.
    both = server.models[NAME] | {"model.safetensors": files["model.safetensors"]}
    both |= dict.fromkeys(SHARDS, safetensors.numpy.save({"x": np.zeros(1)}))
    server.models["someone/both"] = both
    assert_same_weights(load_model("someone/both"), load_model(folder))
    asked = [name for name in server.files_asked() if name.endswith(".safetensors")]
    assert asked == ["model.safetensors"]
    del server.models[NAME][SHARDS[1]]
    hub._COMMITS.clear()
    server.commits["main"] = "c" * 40
    with pytest.raises(InputError, match=f"holds no {SHARDS[1]}"):
        load_model(NAME)


def test_a_revision_is_a_branch_a_tag_or_a_commit(server):
    for revision in ("v1", COMMITS["v1"], "main"):
        found = hub.find_folder(f"{NAME}@{revision}", ["config.json"])
        assert found.name == COMMITS.get(revision, revision)
    with pytest.raises(InputError, match="has no revision v2"):
        load_tokenizer(f"{NAME}@v2")


def test_a_folder_wins_over_a_name(server, tmp_path, monkeypatch, tokenizer):
    monkeypatch.chdir(tmp_path)
    tokenizer.save(NAME)
    assert load_tokenizer(NAME).vocabulary == tokenizer.vocabulary
    assert not server.asked


def test_a_broken_download_is_resumed_or_reported(server, files, monkeypatch):
    folder = hub.find_folder(NAME, ["config.json"])
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    server.cuts["model.safetensors"] = 1000
    with pytest.raises(InputError, match=r"^The download of model\.safetensors .* broke off.*$"):
        load_model(NAME)
    cache = pathlib.Path(constants.HF_HUB_CACHE)
    assert not list(cache.rglob("model.safetensors")) and not list(cache.rglob("*.incomplete"))
    server.cuts["model.safetensors"] = 2
    hub.fetch_weights(NAME, folder, ["model.safetensors"])
    assert server.cuts["model.safetensors"] == 0
    assert (folder / "model.safetensors").read_bytes() == files["model.safetensors"]


REFUSED = {
    "no/such": (404, "^no/such is neither a folder here nor a public model.*$"),
    "a/private": (401, "^a/private is neither .*HF_TOKEN.*$"),
    "a/gated": (403, "^a/gated is open to those who accepted its terms.*$"),
    "a/broken": (500, "^a/broken is neither .*500 Internal Server.*$"),
}


def test_what_cannot_be_fetched_is_one_sentence(server, files, monkeypatch):
    for name, (status, message) in REFUSED.items():
        server.models[name] = status if status != 404 else None
        for load in (load_tokenizer, load_model):
            with pytest.raises(InputError, match=message):
                load(name)
    other = {"config.json": b'{"model_type": "llama"}', "model.safetensors": b"large"}
    server.models["a/llama"] = other
    with pytest.raises(InputError, match="model_type=llama is unknown"):
        load_model("a/llama")
    assert "model.safetensors" not in server.files_asked()
    pickled = {"config.json": files["config.json"], "pytorch_model.bin": b"\x80\x04"}
    server.models["a/pickle"] = pickled
    with pytest.raises(InputError, match=r"pytorch_model\.bin is not safetensors"):
        load_model("a/pickle")
    assert "pytorch_model.bin" not in server.files_asked()
    no_network(monkeypatch)
    with pytest.raises(InputError, match=r"a/new is neither .*:9 did not answer .*refused"):
        load_model("a/new")


def test_without_network_the_cached_copy_serves(server, monkeypatch):
    model, tokenizer = load_model(NAME, "classifier"), load_tokenizer(NAME)
    no_network(monkeypatch)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    assert_same_weights(load_model(NAME, "classifier"), model)
    assert load_tokenizer(NAME).vocabulary == tokenizer.vocabulary
    cached = hub.find_folder(NAME, ["config.json"]) / "model.safetensors"
    cached.unlink()
    with pytest.raises(InputError, match=r"model\.safetensors of someone/tiny-film .*refused"):
        load_model(NAME)


def test_a_silent_server_ends_in_seconds(server, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        point_to(f"http://127.0.0.1:{silent.getsockname()[1]}", monkeypatch)
        monkeypatch.setattr(constants, "HF_HUB_ETAG_TIMEOUT", 0.2)
        start = time.monotonic()
        with pytest.raises(InputError, match=r"did not answer .*timed out"):
            read_config(NAME)
        assert time.monotonic() - start < 10


LOAD = """
import sys
from tfnlp.utils.errors import InputError
from tfnlp.text import load_tokenizer
try:
    print(load_tokenizer(sys.argv[1]).vocabulary_size)
except InputError as e:
    print(e)
assert "keras" not in sys.modules
"""


def test_settings_of_the_hub_client_hold(files, tmp_path, tokenizer):
    server = HubServer({NAME: files})
    home = {"HF_ENDPOINT": server.url, "HF_HOME": str(tmp_path / "home"), "HF_TOKEN": "hf_abc"}

    def run(name, **environment):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
        command = [sys.executable, "-c", LOAD, name]
        environment = clean | home | environment
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    assert run(NAME) == str(tokenizer.vocabulary_size)
    models = [token for _, path, token in server.asked if NAME in path]
    assert len(models) > 4 and set(models) == {"Bearer hf_abc"}
    assert list((tmp_path / "home/hub").rglob("models--someone--tiny-film/snapshots/*/vocab.txt"))
    server.close()
    assert run(NAME, HF_HUB_OFFLINE="1") == str(tokenizer.vocabulary_size)
    assert "a/new is not in the cache" in run("a/new", HF_HUB_OFFLINE="1")


@pytest.mark.parametrize("load", [load_model, load_tokenizer, read_labels])
def test_what_is_no_checkpoint_is_named(load, folder, tmp_path):
    for missing in (tmp_path / "none", folder / "config.json", "a/b/c", "./none", ""):
        with pytest.raises(InputError, match=r"is no folder; give that of a checkpoint"):
            load(missing)
    run = tmp_path / "run"
    (run / "best").mkdir(parents=True)
    (run / "flags.json").write_text("{}")
    with pytest.raises(InputError, match="run is the folder of a run"):
        load(run)

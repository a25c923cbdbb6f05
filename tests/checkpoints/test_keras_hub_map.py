"""Presets that keras-hub wrote, and folders of ours that keras-hub reads."""

import keras_hub
import numpy as np
import pytest
from huggingface_hub import constants

from tests.checkpoints.keras_hub_backbones import (
    FAMILIES,
    LINES,
    SIZES,
    backbone,
    change_json,
    check_states,
    make_inputs,
    randomized,
)
from tests.parity.compare import near
from tests.utils.hub_server import HubServer
from tfnlp.checkpoints import load_model, read_config, read_head, read_pooler, save_model
from tfnlp.models import AlbertConfig, build_model
from tfnlp.text import load_tokenizer, train_wordpiece
from tfnlp.utils import hub
from tfnlp.utils.errors import InputError


def test_a_pooler_stays_beside_a_masked_language_model(tmp_path):
    theirs = backbone("bert")
    theirs.save_to_preset(tmp_path / "preset")
    model, pooler = load_model(tmp_path / "preset", "masked_lm"), read_pooler(tmp_path / "preset")
    save_model(model, tmp_path / "folder", pooler=pooler)
    check_states(load_model(tmp_path / "folder"), theirs, pooled=True)


@pytest.mark.parametrize("name", ["distilbert", "deberta_v3", "albert"])
def test_a_classifier_comes_with_its_head(name, tmp_path):
    make = getattr(keras_hub.models, f"{FAMILIES[name][0]}TextClassifier")
    theirs = randomized(make(backbone(name), num_classes=3, preprocessor=None))
    theirs.save_to_preset(tmp_path)
    assert read_head(tmp_path) == "classifier"
    inputs = make_inputs()
    inputs["segment_ids"] *= "segment_ids" in {x.name for x in theirs.inputs}
    expected = theirs({x.name: inputs[x.name] for x in theirs.inputs})
    ours = load_model(tmp_path, "classifier")
    near(ours(inputs)["logits"], expected, 1e-5)
    # It is a model like any other: it is saved as a folder of Hugging Face, and starts a head.
    save_model(ours, tmp_path / "folder")
    assert read_config(tmp_path / "folder") == ours.text_config
    tagger = load_model(tmp_path, "tagger", 5)
    check_states(tagger, theirs.backbone, pooled=False)
    assert 0.01 < np.std(tagger.get_layer("classifier").kernel) < 0.03


def test_keras_hub_opens_our_folders(tmp_path):
    """It looks for ALBERT's weights by the names that they have beside a head."""
    config = AlbertConfig(**SIZES, max_length=16, embedding_dim=6)
    ours = randomized(build_model(config, "classifier", 2))
    save_model(ours, tmp_path)
    check_states(ours, keras_hub.models.Backbone.from_preset(str(tmp_path)), pooled=True)


def test_other_presets_are_one_sentence(tmp_path):
    theirs = backbone("bert")
    theirs.save_to_preset(tmp_path)
    with pytest.raises(InputError, match="preset of keras-hub without a tokenizer"):
        load_tokenizer(tmp_path)
    weights = tmp_path / "model.weights.h5"
    quantized = {"dtype": {"class_name": "QuantizedDTypePolicy"}}

    def fields(changed=None, **more):
        def change(config):
            config.update(more)
            config["config"].update(changed or {})

        return lambda: change_json(tmp_path / "config.json", change)

    for change, message in (
        (fields(registered_name="mine>BertBackbone"), "mine>B.* none .*; those are BertBackbone"),
        (fields(quantized), r"quantized \(QuantizedDTypePolicy\)"),
        (fields({"num_layers": 3}), r"\(A total of 8 objects could not be loaded"),
        (lambda: weights.write_bytes(weights.read_bytes()[:3000]), "truncated.*copy the preset"),
    ):
        change()
        with pytest.raises(InputError, match=message) as error:
            load_model(tmp_path)
        assert "\n" not in str(error.value)
        theirs.save_to_preset(tmp_path)


def test_a_preset_pads_with_what_its_tokenizer_pads_with(tmp_path):
    """RoBERTa's positions are counted from it."""
    theirs = backbone("roberta")
    theirs.save_to_preset(tmp_path)
    names = ["ab", "<s>", "</s>", "<pad>", "<mask>", "a", "b"]
    vocabulary = {token: i for i, token in enumerate(names)}
    make = keras_hub.models.RobertaTokenizer
    make(vocabulary=vocabulary, merges=["a b"]).save_to_preset(tmp_path)
    ours = load_model(tmp_path)
    assert ours.text_config.pad_token_id == 3 == load_tokenizer(tmp_path).pad_token_id
    check_states(ours, theirs, pooled=False)


@pytest.fixture
def kaggle(tmp_path, monkeypatch):
    """Kaggle's cache with one preset, which is found there without a network."""
    monkeypatch.setenv("KAGGLEHUB_CACHE", str(tmp_path))
    hub._fetch_from_kaggle.cache_clear()
    folder = tmp_path / "models" / "keras" / "bert" / "keras" / "bert_tiny_en_uncased" / "3"
    theirs = backbone("bert")
    theirs.save_to_preset(folder)
    keras_hub.models.BertTokenizer(
        vocabulary=train_wordpiece(LINES * 3, 200).vocabulary, lowercase=True
    ).save_to_preset(folder)
    folder.with_name("3.complete").touch()
    yield theirs
    hub._fetch_from_kaggle.cache_clear()


def test_a_preset_loads_by_its_name_on_kaggle(kaggle):
    check_states(load_model("bert_tiny_en_uncased"), kaggle, pooled=True)
    for name in ("bert_tiny_en_uncased", "kaggle://keras/bert/keras/bert_tiny_en_uncased/3"):
        assert read_config(name).vocabulary_size == 30 and read_head(name) is None
        assert load_tokenizer(name).encode(LINES).token_ids.size > 30


def test_a_name_that_is_no_preset_is_one_sentence(kaggle, monkeypatch):
    with pytest.raises(InputError, match=r"en_uncasd is no folder, and no preset .*\(did you"):
        load_model("bert_tiny_en_uncasd")

    def refuse(handle):
        raise ConnectionError(f"no answer for {handle}.\nTraceback")

    monkeypatch.setattr("kagglehub.model_download", refuse)
    message = r"kaggle://a/b/keras/c could not be fetched \(no answer for a/b/keras/c\); check the"
    with pytest.raises(InputError, match=message):
        load_tokenizer("kaggle://a/b/keras/c")


def test_a_preset_loads_by_its_name_on_the_hub(tmp_path, monkeypatch):
    theirs = backbone("gpt2")
    theirs.save_to_preset(tmp_path / "preset")
    files = {path.name: path.read_bytes() for path in (tmp_path / "preset").iterdir()}
    server = HubServer({"someone/preset": files})
    monkeypatch.setattr(constants, "ENDPOINT", server.url)
    template = server.url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    assert read_head("hf://someone/preset@v1") is None
    assert "model.weights.h5" not in server.files_asked()
    check_states(load_model("hf://someone/preset@v1"), theirs, pooled=False)
    server.close()

"""The recipe that draws what models do inside, as a user runs it."""

import numpy as np
import pytest

from tests.grammar_corpus import make_reviews
from tfnlp.checkpoints import save_model
from tfnlp.models import (
    ElmoConfig,
    RecurrentConfig,
    RecurrentTranslatorConfig,
    TransformerConfig,
    build_model,
)
from tfnlp.text import train_tokenizer
from tfnlp.text.tokenizers.special_tokens import end_token_id

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Folders of random models, and a text."""
    place = tmp_path_factory.mktemp("models")
    texts = [text for text, _ in make_reviews(40)]
    (place / "text.txt").write_text("\n".join(texts), encoding="utf-8")
    tokenizer = train_tokenizer(texts, "bpe", 300, "gpt2")[0]
    sizes = {"vocabulary_size": tokenizer.vocabulary_size, "num_layers": 1, "hidden_dim": 16}
    for cell in ("rnn", "gru"):
        model = build_model(RecurrentConfig(cell=cell, **sizes), "causal_lm")
        save_model(model, place / cell, tokenizer=tokenizer)
    config = RecurrentTranslatorConfig(**sizes, end_token_id=end_token_id(tokenizer))
    model = build_model(config, "sequence_to_sequence")
    save_model(model, place / "translator", tokenizer=tokenizer)
    heads = {"num_heads": 2, "intermediate_dim": 16, "max_length": 30}
    config = TransformerConfig(**sizes, **heads, end_token_id=end_token_id(tokenizer))
    model = build_model(config, "sequence_to_sequence")
    save_model(model, place / "transformer", tokenizer=tokenizer)
    words = train_tokenizer(texts, "words", 300)[0]
    config = ElmoConfig(words.vocabulary_size, hidden_dim=4, intermediate_dim=4, filters=(2, 2))
    save_model(build_model(config, "tagger", 2), place / "elmo", tokenizer=words)
    return place


def test_pictures_and_their_numbers(place, run, tmp_path):
    text, source = f"--input={place}/text.txt", "--text=the film is fine"
    output = tmp_path / "picture.png"
    shapes = {}
    for picture, folders, flags in (
        ("gradients", "rnn gru", [text, "--length=6", "--pieces=2"]),
        ("activations", "gru", [source, "--layer=0", "--unit=3"]),
        ("activations", "rnn", [source]),
        ("states", "rnn", [source, "--layer=0"]),
        ("alignment", "transformer", [source, "--target=not dull"]),
        ("alignment", "translator", [source, "--target=not dull"]),
        ("layers", "elmo", []),
    ):
        models = ",".join(f"{place}/{name}" for name in folders.split())
        drawn = (f"--picture={picture}", f"--model_dir={models}", f"--output={output}")
        run("pictures", *drawn, *flags)
        assert output.stat().st_size > 1000
        found = np.load(output.with_suffix(".npz"))
        shapes[folders] = {name.split("/")[-1]: found[name].shape for name in found.files}
        assert all(np.isfinite(found[name]).all() for name in found.files)
        output.unlink()
    assert shapes["rnn gru"] == {"rnn": (6,), "gru": (6,)}
    ((length, width),) = shapes["gru"].values()
    assert (length > 4, width) == (True, 16)
    (targets, sources) = shapes["translator"]["attention"]
    names = ("layer 1, head 1", "layer 1, head 2")
    assert shapes["transformer"] == dict.fromkeys(names, (targets, sources))
    assert shapes["elmo"] == {"elmo": (3,)}
    assert sources == length + 1 > targets > 2  # the end of the source, too


def test_bad_input_is_one_sentence(place, refused, tmp_path):
    output = tmp_path / "a.png"
    for folder, flags, message in (
        ("gru", ["states", "--text=a", "--unit=1"], "--unit=1 has no effect beside"),
        ("gru", ["activations", "--text=a", "--unit=99"], "--unit=99 must be from 0 to"),
        ("gru", ["alignment", "--text=a", "--target=b"], "has no attention to a source"),
        ("gru", ["layers", "--text=a"], "--text=a has no effect beside --picture=layers"),
        ("transformer", ["alignment", f"--text={'a ' * 600}", "--target=b"], "a shorter one"),
        ("translator", ["activations", "--text=a"], "is no recurrent language model"),
    ):
        where = (f"--model_dir={place}/{folder}", f"--output={output}")
        error = refused("pictures", *where, f"--picture={flags[0]}", *flags[1:])
        assert message in error and not output.exists()

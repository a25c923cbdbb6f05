"""mmBERT's tokenizer against `tokenizers` and `transformers`, and a ModernBERT with it."""

import json

import numpy as np
import pytest
import tokenizers

from distill.compression import prune_vocabulary
from distill.export.metadata import tokenizer_files
from distill.runtime.litert_backend import read_tokenizer
from tests.parity.test_xlm_roberta_tokenizer import check_alike, hostile_texts
from tests.text.family_tokenizers import HARD_TEXTS, ids_of, write_gemma_bpe
from tfnlp.checkpoints import load_model, save_model
from tfnlp.models import ModernBertConfig, build_model
from tfnlp.text import load_tokenizer
from tfnlp.utils.errors import InputError

transformers = pytest.importorskip("transformers", reason="parity needs .[parity]")
TEXTS = [*HARD_TEXTS[:6], "it <mask>that  <eos>", "뷁\n\n 😀<table>", "▁ ▁▁", "\u200b\t<0x41>"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mmbert").mkdir()
    return write_gemma_bpe(tmp_path / "mmbert", HARD_TEXTS, 420)


@pytest.mark.parametrize("count", [300, 10_000])
def test_ids_of_hostile_texts_are_those_of_the_engine(count, folder, tmp_path):
    tokenizer, texts = load_tokenizer(folder), [*TEXTS, *hostile_texts(count, seed=0)]
    engine = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    # `transformers` has its flags from tokenizer_config.json.
    mask = tokenizers.AddedToken("<mask>", lstrip=True, normalized=False, special=True)
    engine.add_special_tokens([mask])
    check_alike(tokenizer, engine, texts)
    tokenizer.save(tmp_path / "again")
    (tmp_path / "again" / "config.json").write_text('{"model_type": "bert"}')
    check_alike(load_tokenizer(tmp_path / "again"), engine, texts[:300])
    in_file = read_tokenizer("file", tokenizer.settings(), tokenizer_files(tokenizer))
    check_alike(in_file, engine, texts[:300])
    for path in (folder, tmp_path / "again"):
        theirs = transformers.AutoTokenizer.from_pretrained(path)
        check_alike(tokenizer, theirs._tokenizer, texts[:300])
        (pair,) = tokenizer.encode(["film <mask>"], ["정말"])
        assert pair.token_ids == theirs("film <mask>", "정말")["input_ids"]


def test_a_modernbert_with_it_is_saved_and_pruned(folder):
    tokenizer = load_tokenizer(folder)
    ids = {"pad_token_id": tokenizer.pad_token_id, "max_length": 64}
    config = ModernBertConfig(tokenizer.vocabulary_size, 2, 2, 16, 24, **ids)
    model = build_model(config, "masked_lm")
    save_model(model, folder, tokenizer=tokenizer)
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(folder)
    inputs = transformers.AutoTokenizer.from_pretrained(folder)(
        TEXTS[:3], padding=True, return_tensors="pt"
    )
    ours = load_model(folder, "masked_lm")(load_tokenizer(folder)(TEXTS[:3]))["logits"]
    real = inputs["attention_mask"].numpy()[..., None]
    expected = theirs(**inputs).logits.detach().numpy()
    np.testing.assert_allclose(ours * real, expected * real, atol=1e-5)
    smaller, pruned = prune_vocabulary(model, tokenizer, TEXTS[:1])
    assert pruned.vocabulary_size < tokenizer.vocabulary_size
    before, after = (
        [[t.token(i) for i in row] for row in ids_of(t, TEXTS[:1])] for t in (tokenizer, pruned)
    )
    assert before == after
    assert pruned.decode(ids_of(pruned, ["뷁"])[0]).strip() == "뷁"
    found = smaller(pruned(TEXTS[:1]))["sequence_output"]
    same = model(tokenizer(TEXTS[:1]))["sequence_output"]
    np.testing.assert_allclose(found, same, atol=1e-6)


def test_words_begin_at_spaces_and_special_tokens_may_be_text(folder):
    tokenizer = load_tokenizer(folder)
    (row,) = tokenizer.encode(["fox 뷁\u3000x"])
    starts = tokenizer.word_starts()(np.array([row.token_ids]))[0]
    firsts = [tokenizer.token(i) for i, first in zip(row.token_ids, starts, strict=True) if first]
    assert firsts[0].startswith("▁f") and firsts[1:] == ["▁", "<0xE3>"]
    (literal,) = tokenizer.encode(["a <eos>"], literal=True)
    assert literal.token_ids.count(tokenizer.token_id("<eos>")) == 1


def test_a_file_without_its_special_tokens_is_refused(folder):
    path = folder / "tokenizer.json"
    path.write_text(path.read_text().replace("<mask>", "<hidden>"))
    with pytest.raises(InputError, match="<mask>"):
        load_tokenizer(folder)
    content = json.loads(path.read_text()) | {"normalizer": {"type": "Later"}}
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"tokenizer.json cannot be read"):
        load_tokenizer(folder)

"""XLM-R's tokenizer, and a BERT with it, against `transformers` and `tokenizers`."""

import json
import random

import numpy as np
import pytest
import tokenizers

from tests.text.family_tokenizers import HARD_TEXTS
from tfnlp.checkpoints import load_model
from tfnlp.text import load_tokenizer
from tfnlp.utils.errors import InputError

torch = pytest.importorskip("torch", reason="parity needs .[parity]")
transformers = pytest.importorskip("transformers", reason="parity needs .[parity]")

# Of each kind some characters, by the ranges of their code points.
KINDS = {
    "Latin": [(0x20, 0x7E), (0xA0, 0x17F)],
    "Hangul": [(0xAC00, 0xD7A3)],
    "jamo": [(0x1100, 0x11FF), (0x3131, 0x318E), (0xA960, 0xA97C), (0xFFA0, 0xFFDC)],
    "CJK": [(0x4E00, 0x9FFF), (0x3040, 0x30FF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF)],
    "emoji": [(0x1F300, 0x1FAFF), (0x2600, 0x27BF), (0xFE0E, 0xFE0F), (0x200D, 0x200D)],
    "combining marks": [(0x300, 0x36F), (0x591, 0x5BD), (0x93C, 0x94D), (0xE31, 0xE3A)],
    "controls": [(0x00, 0x1F), (0x7F, 0x9F), (0x200B, 0x200F), (0x202A, 0x202E), (0xFEFF, 0xFEFF)],
    "spaces": [(0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x2000, 0x200A), (0x3000, 0x3000)],
    "compatibility": [(0xFB00, 0xFB06), (0xFF01, 0xFF5E), (0x2460, 0x24FF), (0x3300, 0x33FF)],
    "any": [(0x01, 0xD7FF), (0xE000, 0x10FFFF)],
}
WORDS = [
    "query: ",
    "the",
    " film",
    "정말 ",
    "재미",
    "▁",
    "<mask>",
    "</s>",
    "<unk>",
    "< s>",
    "ㅋㅋㅋ",
]


def hostile_texts(count, seed):
    """Return texts of random characters of all kinds, of words, special tokens and long runs."""
    draw = random.Random(seed)

    def character():
        start, end = draw.choice(draw.choice([*KINDS.values()]))
        return chr(draw.randint(start, end))

    def part():
        share = draw.random()
        if share < 0.3:
            return draw.choice(WORDS)
        if share < 0.32:
            return character() * draw.randint(50, 300)
        return "".join(character() for _ in range(draw.randint(1, 5)))

    return ["".join(part() for _ in range(draw.randint(0, 8))) for _ in range(count)]


def check_alike(tokenizer, engine, texts):
    """Assert that ids, offsets and special tokens are those of an engine of `tokenizers`."""
    engine.no_truncation()
    engine.no_padding()
    found = tokenizer.encode(texts, offsets=True)
    for text, ours, theirs in zip(texts, found, engine.encode_batch(texts), strict=True):
        special = [int(source is None) for source in ours.sources]
        expected = (theirs.ids, theirs.offsets, theirs.special_tokens_mask)
        assert (ours.token_ids, [*map(tuple, ours.offsets)], special) == expected, repr(text)


@pytest.fixture
def folder(tmp_path):
    """A folder that has only a SentencePiece model, as fairseq has it."""
    spm = pytest.importorskip("sentencepiece")
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter([t for t in HARD_TEXTS if t]),
        model_prefix=str(tmp_path / "sentencepiece.bpe"),
        vocab_size=160,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / "sentencepiece.bpe.vocab").unlink()
    return tmp_path


def test_a_sentencepiece_model_has_the_ids_of_fairseq(folder, tmp_path):
    tokenizer = load_tokenizer(folder)
    first = ["<s>", "<pad>", "</s>", "<unk>"]
    tokens = tokenizer.tokens_by_id()
    assert tokens[:4] == first and tokens[-1] == "<mask>"
    assert tokenizer.pad_token_id == 1 and tokenizer.mask_token_id == len(tokens) - 1
    texts = hostile_texts(300, seed=1)
    # As in the released tokenizer.json.
    mask = tokenizers.AddedToken("<mask>", lstrip=True, special=True, normalized=False)
    theirs = transformers.XLMRobertaTokenizer.from_pretrained(folder, mask_token=mask)
    check_alike(tokenizer, theirs._tokenizer, texts)
    # What is written is read as the same by all three.
    tokenizer.save(folder)
    assert {path.name for path in folder.iterdir() if "token" in path.name} == {
        *("tokenizer.json", "tokenizer_config.json")
    }
    again = transformers.AutoTokenizer.from_pretrained(folder)
    assert type(again) is transformers.XLMRobertaTokenizer
    again.save_pretrained(tmp_path / "theirs")
    read = [load_tokenizer(path)._engine for path in (folder, tmp_path / "theirs")]
    for engine in (again._tokenizer, *read):
        check_alike(tokenizer, engine, texts)


@pytest.mark.parametrize("count", [300, 10_000])
def test_a_bert_with_these_pieces_is_read_by_its_own_rules(count, data_dir, tmp_path):
    source = data_dir / "e5_small_ko_en"
    engine = tokenizers.Tokenizer.from_file(str(source / "tokenizer.json"))
    tokenizer, texts = load_tokenizer(source), hostile_texts(count, seed=0)
    check_alike(tokenizer, engine, texts)
    tokenizer.save(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    again = transformers.AutoTokenizer.from_pretrained(tmp_path)
    check_alike(tokenizer, again._tokenizer, texts[:300])
    check_alike(load_tokenizer(tmp_path), engine, texts[:300])


def test_a_bert_with_these_pieces_gives_the_vectors_of_transformers(data_dir):
    """Mean vectors of multilingual-e5 on sentences of KorSTS, with the ids of `tokenizers`."""
    source = data_dir / "e5_small_ko_en"
    lines = (data_dir / "korsts" / "dev.tsv").read_text(encoding="utf-8").splitlines()[1:17]
    texts = [f"query: {text}" for line in lines for text in line.split("\t") if " " in text]
    inputs = load_tokenizer(source)(texts)
    engine = tokenizers.Tokenizer.from_file(str(source / "tokenizer.json"))
    engine.enable_padding(pad_id=1, pad_token="<pad>")
    ids = torch.tensor([encoding.ids for encoding in engine.encode_batch(texts)])
    model = transformers.AutoModel.from_pretrained(source, dtype=torch.float32).eval()
    with torch.no_grad():
        theirs = model(input_ids=ids, attention_mask=(ids != 1).long()).last_hidden_state.numpy()
    ours = load_model(source).predict_on_batch(inputs)["sequence_output"]
    a, b = (np.sum(x * inputs["padding_mask"][..., None], 1) for x in (ours, theirs))
    cosines = np.sum(a * b, -1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1)
    assert len(texts) >= 32 and cosines.min() > 0.99999


def test_files_of_others_are_refused(folder):
    path = folder / "sentencepiece.bpe.model"
    path.write_bytes(path.read_bytes().replace(b"<unk>", b"<UNK>"))
    with pytest.raises(InputError, match="<UNK>"):
        load_tokenizer(folder)
    name, content = folder / "tokenizer.json", {"type": "Unigram", "vocab": [["<s>", 0.0]]}
    name.write_text(json.dumps({"model": content}))
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "XLMRobertaTokenizer"}')
    with pytest.raises(InputError, match="The vocabulary lacks <pad>, which the input of a XLMR"):
        load_tokenizer(folder)
    content["vocab"] = [[token, 0.0] for token in ("<s>", "<pad>", "</s>", "<unk>", "<mask>")]
    name.write_text(json.dumps({"model": content, "normalizer": {"type": "Later"}}))
    with pytest.raises(InputError, match="a pre_tokenizer that `tokenizers` does not know"):
        load_tokenizer(folder)

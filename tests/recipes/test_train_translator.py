"""Translators from the shell: trained, resumed, translating, and distilled."""

import json

import pytest

from tests.recipes.refusals import check_refusals
from tests.training.experiments.test_translator_training import make_pairs
from tfnlp.checkpoints import load_model
from tfnlp.text import load_tokenizer

SIZES = ["--num_layers=1", "--hidden_dim=16", "--vocabulary_size=300"]
FLAGS = ["--epochs=2", "--max_tokens=300", "--max_length=40", "--beams=1"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Pairs as a table, train.tsv, and line by line."""
    folder = tmp_path_factory.mktemp("pairs")
    for seed, (name, count) in enumerate((("train", 80), ("dev", 12), ("test", 12))):
        pairs = make_pairs(count, seed)
        rows = ["n\tsource\ttarget", *map("1\t{}\t{}".format, pairs.sources, pairs.targets)]
        (folder / f"{name}.tsv").write_text("\n".join(rows) + "\n")
        for side in ("sources", "targets"):
            lines = "".join(f"{text}\n" for text in getattr(pairs, side))
            (folder / f"{name}.{side}").write_text(lines)
    return folder


def splits(data, *names):
    return [f"--{name}={data}/{name}.tsv" for name in names]


@pytest.fixture(scope="module")
def teacher(data, run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "teacher"
    flags = [*splits(data, "train", "dev", "test"), *SIZES, *FLAGS, "--num_heads=2"]
    flags += ["--num_decoder_layers=2", "--average_epochs=2", f"--output_dir={folder}"]
    run("train_translator", *flags)
    return folder, flags


def test_a_run_has_scores_curves_and_translations(teacher, data):
    folder, _ = teacher
    figures = json.loads((folder / "figures.json").read_text())
    for prefix in ("", "averaged_"):
        assert figures[f"{prefix}test_bleu_signature"].startswith("nrefs:1|case:mixed")
        assert figures[f"{prefix}test_chrf"] >= 0
        assert figures[f"{prefix}dev_perplexity"] > 1
        header, *rows = (folder / f"{prefix}test_translations.tsv").read_text().splitlines()
        assert header == "source\treference\ttranslation"
        sources = [row.split("\t")[0] for row in rows]
        assert sources == (data / "test.sources").read_text().splitlines()
    assert (folder / "curves.png").stat().st_size > 1000
    model, tokenizer = (f(folder / "averaged") for f in (load_model, load_tokenizer))
    assert (model.text_config.num_layers, model.text_config.decoder.num_layers) == (1, 2)
    assert tokenizer.decode(tokenizer.encode(["Hunde und"])[0].token_ids) == "Hunde und"


def test_texts_are_translated_from_the_shell(teacher, run, refused):
    flags = [f"--model_dir={teacher[0]}/best", "--beams=2", "--n_best=2", "--max_new_tokens=2"]
    texts = ["--text=big dogs", "--text= ", "--text=cats sleep"]
    done = run("translate", *flags, *texts)
    assert "of the translations were cut at 2 tokens." in done.stderr
    found = done.stdout.splitlines()
    assert len(found) == 6 and found[2:4] == ["0.0000\t"] * 2
    scores = [float(line.split("\t")[0]) for line in found]
    assert 0 > scores[0] >= scores[1] and 0 > scores[4] >= scores[5]
    output = teacher[0].parent / "x.tsv"
    more = ["--text=big dogs", f"--text={'dogs ' * 60}", f"--output={output}"]
    assert "--text number 2 has" in refused("translate", *flags, *more, "--too_long=error")
    assert not output.exists() and not output.with_name("x.tsv.part").exists()
    token = load_tokenizer(teacher[0] / "best").tokens("cats")[0]
    forced = [f"--forced_first={token}", "--max_new_tokens=3"]  # one token is free
    done = run("translate", *flags, *more, *forced)
    assert "1 of 2 sources are longer than the model's 40 positions" in done.stderr
    rows = [row.split("\t") for row in output.read_text().splitlines()]
    assert len(rows) == 5 and all(text.startswith("c") for _, text, _ in rows[1:]), rows
    draws = ["--search=sample", "--seed=3", "--batch_size=1", "--max_new_tokens=3"]
    done = run("translate", flags[0], *draws, "--text=big dogs", "--text=cats sleep")
    assert len(done.stdout.splitlines()) == 2


def test_a_file_translates_as_its_folder(teacher, run, float_file, tmp_path):
    folder, output = teacher[0] / "best", tmp_path / "said.tsv"
    file, flags = float_file(folder), ["--max_new_tokens=5", "--n_best=2"]
    texts = ["--text=big dogs", "--text= ", "--text=cats sleep"]
    found = [run("translate", f"--model_dir={model}", *flags, *texts) for model in (folder, file)]
    assert found[0].stdout == found[1].stdout
    long = f"--text={'dogs ' * 60}"
    done = run("translate", f"--model_dir={file}", *flags, *texts, long, f"--output={output}")
    assert "1 of 4 sources are longer than the model's 16 positions" in done.stderr
    rows = [row.split("\t") for row in output.read_text().splitlines()]
    assert len(rows) == 9 and rows[1][1] == found[0].stdout.splitlines()[0].split("\t")[1]


def test_a_student_learns_what_its_teacher_writes(teacher, data, run, tmp_path):
    taught = tmp_path / "taught.tsv"
    flags = [f"--model_dir={teacher[0]}/best", "--search=greedy", "--max_new_tokens=20"]
    flags += [f"--input={data}/train.tsv", "--translation_column=target", f"--output={taught}"]
    run("translate", *flags)
    header, *rows = taught.read_text().splitlines()
    assert header == "source\ttarget\tscore" and len(rows) == 80
    # What a teacher of two epochs writes may be nothing: a word in its place.
    rows = [row.split("\t") for row in rows]
    lines = [f"{source}\t{text.strip() or 'nichts'}" for source, text, _ in rows]
    taught.write_text("\n".join(["source\ttarget", *lines]) + "\n")
    student = tmp_path / "student"
    flags = [f"--teacher_dir={teacher[0]}/best", f"--train={taught}", *FLAGS, "--epochs=1"]
    flags += [f"--dev={data}/dev.sources,{data}/dev.targets"]
    run("train_translator", *flags, "--num_decoder_layers=1", f"--output_dir={student}")
    config = load_model(student / "best").text_config
    assert (config.num_layers, config.decoder.num_layers) == (1, 1)
    assert config.dropout == 0.3


def test_a_recurrent_translator_without_attention(data, run, tmp_path):
    flags = [*splits(data, "train", "dev"), *SIZES, *FLAGS, "--family=recurrent"]
    flags += ["--attention=none", "--tokenizer=unigram", f"--output_dir={tmp_path}/run"]
    run("train_translator", *flags, "--epochs=1")
    config = load_model(tmp_path / "run" / "best").text_config
    assert config.attention is None
    assert (config.cell, config.num_layers, config.hidden_dim) == ("gru", 1, 16)
    figures = json.loads((tmp_path / "run" / "figures.json").read_text())
    assert 0 <= figures["dev_bleu"] <= 100
    # Pieces of unigram are learned otherwise each time: those of the run are kept, and go on.
    assert load_tokenizer(tmp_path / "run" / "tokenizer").family == "marian"


def test_flags_that_do_not_go_together_are_one_sentence(data):
    start = [*splits(data, "train", "dev"), "--output_dir=a"]
    cases = {
        "--family=recurrent --num_heads=2": "--num_heads=2 has no effect with --family=recurrent",
        "--attention=dot": "--attention=dot has no effect with --family=transformer",
        "--family=recurrent --attention=none --input_feeding": "--input_feeding=true has no",
        "--model_dir=x --vocabulary_size=300": "has no effect beside --model_dir=x",
        "--model_dir=x --teacher_dir=y": "--teacher_dir=y has no effect beside --model_dir=x",
        "--layer_map=last": "has no effect without --teacher_dir",
        "--warmup_steps=0": "needs a --learning_rate",
        "--scheduled_sampling=0.2": "needs a recurrent model",
        "--beams=0": "must be a whole number, 1 or more",
        "--num_heads=3": "--num_heads=3 does not divide --hidden_dim=128",
        "--layer_map=middle": "--layer_map=middle must be one of",
        "--tokenize=words": "sacrebleu cannot use --tokenize='words'",
        "--source_column=en": "has no column 'en'",
    }
    check_refusals("train_translator", start, cases)
    cases = {
        "--beams=0": "--beams=0 must be a whole number",
        "--beams=2 --n_best=3": "--n_best=3 is more than --beams=2",
        "--search=greedy --n_best=2": "--n_best=2 has no effect with --search=greedy",
        "--top_p=0.5": "--top_p=0.5 has no effect with --search=beam",
        "--output=x.txt": "must end in .tsv",
        "--input=x.tsv": "x.tsv does not exist",
    }
    check_refusals("translate", ["--model_dir=nowhere"], cases)


def test_bad_input_leaves_no_run(teacher, data, refused, tmp_path):
    error = refused("train_translator", *teacher[1], "--label_smoothing=0.2")
    assert "there --label_smoothing is 0.1, here 0.2" in error
    (tmp_path / "long.tsv").write_text(f"source\ttarget\n{'.' * 40}\tb\n")
    flags = [*splits(data, "train", "dev"), f"--output_dir={tmp_path}/a", *SIZES, *FLAGS]
    long = f"--test={tmp_path}/long.tsv"
    for wrong, message in (
        ([long, "--too_long=skip", "--max_tokens=4"], "tokens, end tokens included, which"),
        ([long], "long.tsv, line 2 has 41 tokens, more than the model's 40"),
    ):
        assert message in refused("train_translator", *flags, *wrong)
        assert not (tmp_path / "a").exists()

"""The recipe that generates, as a user runs it."""

import json


def test_texts_are_printed_or_written(run, language_model, tmp_path):
    flags = [f"--model_dir={language_model}", "--max_new_tokens=5"]
    done = run("generate", *flags, "--text=the film", "--text=결말은")
    first, second = done.stdout.strip("\n").split("\n")
    assert first.startswith("the film") and second.startswith("결말은")

    prompts = tmp_path / "prompts.txt"
    prompts.write_text("the film\nthe cast\n", encoding="utf-8")
    output = tmp_path / "written.jsonl"
    flags += [f"--input={prompts}", f"--output={output}"]
    run("generate", *flags, "--search=beam", "--beams=3", "--continuations=2", "--forbid=film")
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    assert [line["prompt"] for line in lines] == ["the film"] * 2 + ["the cast"] * 2
    assert lines[0]["score"] >= lines[1]["score"] and len(lines[0]["token_ids"]) == 5

    run("generate", *flags, "--search=sample", "--min_p=0.9", "--stop=\\n", "--stop=e")
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    assert not any({"e", "\n"} & {*line["text"]} for line in lines)
    assert all(line["ended"] or len(line["token_ids"]) == 5 for line in lines)


def test_a_file_writes_the_texts_of_its_folder(run, refused, language_model, float_file):
    file = float_file(language_model)
    flags = ["--text=the film", "--text=", "--text=결말은", "--max_new_tokens=7"]
    flags += ["--search=sample", "--seed=2", "--continuations=2", "--repetition_penalty=1.3"]
    flags += ["--forbid=film", "--stop=e"]
    expected = run("generate", f"--model_dir={language_model}", *flags).stdout
    assert run("generate", f"--model_dir={file}", *flags).stdout == expected
    assert len({*expected.splitlines()}) > 4
    for flag in ("--batch_size=3", "--end_token=a"):
        line = refused("generate", f"--model_dir={file}", "--text=a", flag)
        assert f"{flag} has no effect beside --model_dir={file}" in line
    assert "of the kind generator" in refused("translate", f"--model_dir={file}", "--text=a")


def test_bad_input_is_one_sentence(refused, language_model):
    for given, message in (
        (["--text=a", "--search=beam", "--beams=0"], "--beams=0 must be"),
        (["--text=a", "--search=sample", "--top_p=0"], "--top_p=0.0 must be above 0"),
        (["--text=a", "--top_p=0.5"], "--top_p=0.5 has no effect with --search=greedy"),
        (["--text=" + "a " * 60], "are more than the model's 40 positions"),
        (["--text=a", "--end_token=a", "--end_token=[END]"], "--end_token='[END]'"),
        (["--text=a", "--search=beam", "--stop=e"], "stop_strings are for greedy search"),
        (["--text=a", "--output=x.txt"], "--output=x.txt must end in"),
    ):
        assert message in refused("generate", f"--model_dir={language_model}", *given)

"""A student learns from texts, and then a task."""

import json


def test_a_student_learns_from_texts_and_then_a_task(corpus, teacher, run, refused, tmp_path):
    train, general = corpus[0].removeprefix("--train="), tmp_path / "general"
    flags = [f"--teacher_dir={teacher[0] / 'best'}", "--num_layers=1", "--hidden_dim=24"]
    flags += ["--num_heads=3", "--max_length=64", f"--texts={train}"]
    hidden = ("--whole_words", "--masked_share=0.15")
    run("distill_general", *flags, *hidden, f"--output_dir={general}")
    figures = json.loads((general / "figures.json").read_text())
    assert figures["texts"] == 320 and figures["parameters"] < figures["teacher_parameters"]
    losses = {key for key in figures if key.endswith("loss")}
    assert losses == {"loss", "embedding_loss", "hidden_state_loss", "attention_score_loss"}
    assert f"| texts | ['{train}'] |" in (general / "README.md").read_text()
    done = run("distill_general", *flags, *hidden, f"--output_dir={general}")
    assert "is complete" in done.stderr

    # The task stage starts from it, with its teacher's layers.
    fine, best = tmp_path / "fine", f"--student_dir={general / 'best'}"
    given = [flags[0], *corpus, best, "--epochs=1", "--max_length=64", "--attention_weight=0.1"]
    run("distill_classifier", *given, f"--output_dir={fine}")
    fine_figures = json.loads((fine / "figures.json").read_text())
    assert abs(fine_figures["parameters"] - figures["parameters"]) < 200  # the classifier
    error = refused("distill_classifier", *given, "--num_layers=1", f"--output_dir={fine}x")
    assert "--num_layers=1 has no effect beside --student_dir=" in error
    (tmp_path / "empty.txt").write_text("")
    for wrong, message in [
        ("--method=distilbert", "holds no masked language model"),
        (f"--texts={train},{tmp_path}/empty.txt", "empty.txt is empty"),
        ("--teacher_dir=a,b", "a,b"),
    ]:
        assert message in refused("distill_general", *flags, wrong, f"--output_dir={tmp_path}/a")
    assert not (tmp_path / "a").exists()

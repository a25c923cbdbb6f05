"""What the flags of files say of them before a training."""

from recipes.flags import data_flags


def test_a_corpus_to_evaluate_on_that_is_learned_too_is_told(tmp_path, caplog):
    learned, other, link = (tmp_path / name for name in ("a.txt", "b.txt", "link.txt"))
    link.symlink_to(learned)
    data_flags.warn_of_shared_corpora({"corpus": [learned], "dev": [other]})
    assert not caplog.records
    data_flags.warn_of_shared_corpora({"corpus": [learned], "dev": [other, link]})
    assert f"dev has {learned}" in caplog.text

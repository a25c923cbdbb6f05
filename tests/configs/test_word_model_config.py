"""Configs of convolutional networks and bags."""

import pytest

from tfnlp.configs import BagConfig, TextCnnConfig, check_head, config_by_name
from tfnlp.utils.errors import InputError


def test_names_give_configs():
    config = config_by_name("textcnn", channels="static", vocabulary_size=9)
    # Kim 2014, section 3.1.
    assert config == TextCnnConfig(9, 300, 0.5, channels="static", filter_widths=(3, 4, 5))
    assert (config.num_filters, config.max_norm, config.head_dropout) == (100, 3.0, 0.5)
    assert config_by_name("bag", word_ngrams=2) == BagConfig(word_ngrams=2)
    check_head(config, "classifier", 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TextCnnConfig(channels="random"), "channels=random"),
        (lambda: TextCnnConfig(filter_widths=(0,)), "filter_widths=0"),
        (lambda: BagConfig(word_ngrams=0), "word_ngrams=0"),
        (lambda: BagConfig(buckets=2**30), "buckets=1073741824"),
        (lambda: BagConfig(10**7, word_ngrams=2), "vocabulary_size=10000000"),
        (lambda: config_by_name("bag", num_layers=2), "num_layers=2"),
        (lambda: check_head(BagConfig(), "tagger", 2), "chooser"),
    ],
)
def test_fields_that_do_not_fit_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()

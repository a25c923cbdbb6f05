import pytest

from tfnlp.configs import ElmoConfig, check_head, config_by_name
from tfnlp.utils.errors import InputError


def test_sizes_by_name_and_those_that_do_not_fit():
    config = config_by_name("elmo", hidden_dim=32, predicted_words=50, vocabulary_size=40)
    assert (config.hidden_dim, config.intermediate_dim, config.output_words) == (32, 128, 40)
    assert config.task_config.vocabulary_size == 40 and config.task_config.bidirectional
    with pytest.raises(InputError, match="hidden_dim=15 must be even"):
        ElmoConfig(hidden_dim=15)
    with pytest.raises(InputError, match="predicted_words=9 is no field of the family bert"):
        config_by_name("bert", predicted_words=9)
    with pytest.raises(InputError, match="'elmo'"):
        check_head(ElmoConfig(), "chooser")

"""All families of checkpoints, and the family of a config."""

from tfnlp.checkpoints import (
    albert_map,
    bert_map,
    deberta_map,
    distilbert_map,
    electra_map,
    gpt_map,
    marian_map,
    recurrent_map,
    transformer_xl_map,
    xlnet_map,
)

FAMILIES = (
    bert_map.BERT,
    bert_map.ROBERTA,
    distilbert_map.DISTILBERT,
    albert_map.ALBERT,
    electra_map.ELECTRA,
    deberta_map.DEBERTA,
    deberta_map.DEBERTA_V2,
    xlnet_map.XLNET,
    transformer_xl_map.TRANSFORMER_XL,
    gpt_map.GPT,
    gpt_map.GPT2,
    recurrent_map.RECURRENT,
    recurrent_map.RECURRENT_TRANSLATOR,
    marian_map.MARIAN,
    marian_map.PEGASUS,
)


def family_of(config):
    """Return the `Family` of a config."""
    return next(
        family
        for family in FAMILIES
        if family.config is type(config)
        and all(getattr(config, name) == value for name, value in family.only.items())
    )

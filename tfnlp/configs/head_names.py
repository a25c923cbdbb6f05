"""Heads by name, and which family can have which."""

from tfnlp.configs.base_config import family_name
from tfnlp.utils.errors import InputError

# The prediction of each head.
HEADS = {
    "classifier": "one class, or one number, for a text or a pair",
    "tagger": "one class for each token",
    "answerer": "first and last token of an answer",
    "chooser": "one of several texts",
    "masked_lm": "the token at each masked position",
    "causal_lm": "the next token",
    "permutation_lm": "tokens at some positions, in any order of the text",
    "discriminator": "whether each token was replaced",
    "sequence_to_sequence": "the next token of another text",
    "pretraining": "the token at each masked position, and how two texts belong together",
}
# The heads that have all of "masked_lm".
MASKED_LMS = ("masked_lm", "pretraining")


def check_head(config, head, num_classes=None):
    """Raise an InputError for a head that is unknown or that the family cannot have."""
    if head is not None and head not in HEADS:
        raise InputError(f"head={head!r} is unknown; use None or one of {list(HEADS)}.")
    predicts = head in ("masked_lm", "causal_lm", "permutation_lm", "sequence_to_sequence")
    other = head is not None and config.language_model == "sequence_to_sequence"
    unfit = (predicts or other) and head != config.language_model
    if unfit or (head == "discriminator" and config.recurrent):
        raise InputError(f"head={head!r} does not fit the family {family_name(config)!r}.")
    if head == "pretraining" and not config.pretrained_on_pairs:
        raise InputError(
            f"head={head!r} does not fit the family {family_name(config)!r}, which is not "
            "pretrained on pairs of texts; a BERT and an ALBERT are."
        )
    if head in ("classifier", "tagger") and not num_classes:
        raise InputError(f"num_classes={num_classes} must be at least 1 for head={head!r}.")

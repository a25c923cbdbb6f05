"""Whether a tokenizer belongs to a model."""

from tfnlp.errors import InputError


def check_vocabulary(tokenizer, model):
    """Raises an InputError unless the vocabulary has as many tokens as the model's table."""
    rows = model.get_layer("embeddings").vocabulary_size
    if tokenizer.vocabulary_size != rows:
        raise InputError(
            f"The vocabulary has {tokenizer.vocabulary_size} tokens, but the model's table "
            f"{rows}; give the vocab.txt that belongs to the model."
        )

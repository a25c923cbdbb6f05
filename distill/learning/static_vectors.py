"""Static vectors of a teacher: one vector for each token, without training.

Tulkens & van Dongen 2024, 'Model2Vec', as its version 0.10 makes them.
"""

import numpy as np

from distill.learning.static_settings import StaticSettings
from tfnlp.configs import StaticConfig, VectorHead
from tfnlp.models import build_model, with_vectors
from tfnlp.objectives.batches.special_token_template import SpecialTokenTemplate
from tfnlp.text import Encoding, Encodings, LengthBatches
from tfnlp.training.run.inference import predictor
from tfnlp.utils.errors import InputError

BATCH_SIZE = 256


def make_static_embedder(teacher, tokenizer, settings=None, texts=None):
    """Return an embedder of the family "static" with a vector for each token of a teacher.

    Args:
        teacher: from `tfnlp.checkpoints.load_model`, without a head.
        tokenizer: the teacher's, and the new model's.
        settings: `StaticSettings`; its defaults where None.
        texts: to count tokens in, for the weights "sif"; or None.

    Raises:
        InputError: for more dimensions than the teacher or the vocabulary has, or weights "sif"
            without a known token in texts.
    """
    settings = settings or StaticSettings()
    settings.check_texts(texts)
    size, width = tokenizer.vocabulary_size, teacher.output["sequence_output"].shape[-1]
    if settings.dims > min(size, width):
        raise InputError(
            f"dims={settings.dims} is above the {width} dimensions of the teacher's vectors, or "
            f"its {size} tokens; give fewer."
        )
    from sklearn.decomposition import PCA  # recipes load TensorFlow without scikit-learn

    pca = PCA(settings.dims, svd_solver="covariance_eigh")
    tables = {
        "embeddings": pca.fit_transform(token_vectors(teacher, tokenizer)),
        "token_weights": token_weights(tokenizer, settings, texts)[:, None],
    }
    config = StaticConfig(size, settings.dims, pad_token_id=tokenizer.pad_token_id)
    model = build_model(config, "embedder")
    for name, table in tables.items():
        model.get_layer(name).token_table.assign(table)
    return model


def token_vectors(teacher, tokenizer):
    """Return the teacher's vector of each token alone, (V, D).

    It is the mean of the states of a text of this token, those of [CLS] and [SEP] among them.
    """
    template = SpecialTokenTemplate.from_tokenizer(tokenizer)
    rows = [Encoding(*template.around([i])) for i in range(tokenizer.vocabulary_size)]
    head = VectorHead(("mean",), normalize=False)
    predict = predictor(with_vectors(teacher, head), ("embedding",))
    batches = LengthBatches(
        Encodings.from_list(rows), BATCH_SIZE, pad_token_id=tokenizer.pad_token_id
    )
    return np.stack(predict(batches)["embedding"])


def token_weights(tokenizer, settings, texts=None):
    """Return the weight of each token, (V,); 0 of special tokens and of the unknown one.

    Arora et al. 2017, algorithm 1: a / (a + p) for a token of the probability p. By Zipf's law
    that of the i-th token, from 0, is proportional to 1 / (i + 2), as model2vec has it.
    """
    size = tokenizer.vocabulary_size
    if settings.weights == "none":
        weights = np.ones(size)
    else:
        counts = 1 / np.arange(2, size + 2)
        if settings.weights == "sif":
            counts = np.bincount(tokenizer.encode(texts).token_ids, minlength=size)
            counts[_silent(tokenizer)] = 0
            if not counts.any():
                raise InputError("The texts for weights=sif have no known token; give others.")
        weights = settings.sif_coefficient / (settings.sif_coefficient + counts / counts.sum())
    weights[_silent(tokenizer)] = 0
    return weights


def _silent(tokenizer):
    """Return the ids of tokens that say nothing of a text."""
    unknown = tokenizer.unknown_token_id
    return [*tokenizer.special_token_ids, *([] if unknown is None else [unknown])]

"""Generator and discriminator of replaced-token detection.

Clark et al. 2020, 'ELECTRA', section 3.2, and He et al. 2021, 'DeBERTaV3', section 3.
"""

import dataclasses

import numpy as np

from tfnlp.configs import family_name
from tfnlp.layers import GradientDisentangledEmbedding
from tfnlp.models import DebertaConfig, build_model, config_of
from tfnlp.utils.errors import InputError

# The generator's share of the width in ELECTRA's code, and of the layers in the paper of DeBERTa
# v3.
WIDTH_SHARE, LAYER_SHARE = 0.25, 0.5


def build_pair(config, generator_size=None, discriminator=None, generator=None, **options):
    """Build both models as in `ReplacedTokens.build`.

    Args:
        config, discriminator, generator, options: as in `ReplacedTokens.build`.
        generator_size: as in `generator_config`.
    """
    if generator is None:
        smaller = generator_config(config, generator_size)
    else:
        check_discriminator_config(config)
        smaller = config_of(generator)
    models = {"generator": build_model(smaller, "masked_lm", name="generator", **options)}
    models["discriminator"] = build_model(
        config,
        "discriminator",
        shared_embeddings=models["generator"],
        name="discriminator",
        **options,
    )
    for name, source in (("discriminator", discriminator), ("generator", generator)):
        if source is not None:
            _take_weights(models[name], source)
    if discriminator is not None and generator is not None:
        _set_tables(models["discriminator"], discriminator)
    return {name: models[name] for name in ("discriminator", "generator")}


def check_discriminator_config(config):
    """Raise an InputError for a family without a generator and a discriminator."""
    if not config.shares_embeddings:
        raise InputError(
            f"Replaced-token detection does not fit the family {family_name(config)!r}; give an "
            "ELECTRA or a DeBERTa, or another objective."
        )


def _take_weights(model, source):
    """Copy the weights of a model with the same config, by their paths."""
    values = {weight.path: weight for weight in source.weights}
    for weight in model.weights:
        if weight.path in values:
            weight.assign(values[weight.path])


def _set_tables(model, source):
    """Set a discriminator's embedding tables to those of `source`.

    The generator shares part of them.
    """
    embeddings, source_embeddings = model.get_layer("embeddings"), source.get_layer("embeddings")
    if isinstance(embeddings, GradientDisentangledEmbedding):
        embeddings.set_sums({name: getattr(source_embeddings, name) for name in embeddings.sums()})
    elif not np.array_equal(embeddings.token_table, source_embeddings.token_table):
        raise InputError(
            "The generator and the discriminator have other embeddings, so that they were not "
            "trained together; give the generator of this discriminator, or none."
        )


def generator_config(config, size=None):
    """Return the config of the generator for a discriminator.

    An ELECTRA generator has a share of the width, heads and feed-forward size, and the same number
    of layers (Clark et al. 2020, section 3.2). Its tables have the same width. A DeBERTa generator
    has a share of the layers, and the width of the tables (He et al. 2021, section 3.1). It
    predicts from absolute positions (`decode_masks`) if the embeddings have none, as in
    Microsoft's code.

    Args:
        config: an `ElectraConfig`, `DebertaConfig` or `DebertaV2Config`.
        size: the share, above 0 and at most 1; where None, 0.25 for ELECTRA and 0.5 for DeBERTa.

    Raises:
        InputError: if the family is another one.
    """
    check_discriminator_config(config)
    if isinstance(config, DebertaConfig):
        return dataclasses.replace(
            config,
            num_layers=max(1, round(config.num_layers * (size or LAYER_SHARE))),
            enhanced_mask_decoder=not config.absolute_positions,
            tie_embeddings=True,
        )
    size = size or WIDTH_SHARE
    width = max(1, round(config.hidden_dim * size))
    heads = max(1, round(config.num_heads * size))
    while config.head_dim is None and width % heads:
        heads -= 1
    return dataclasses.replace(
        config,
        hidden_dim=width,
        num_heads=heads,
        intermediate_dim=max(1, round(config.intermediate_dim * size)),
    )

"""Conversion of models that earlier versions saved."""

import copy

import keras

from tfnlp.layers import TwoStreamBlock


@keras.saving.register_keras_serializable("tfnlp", "OldTwoStreamBlock")
class EncoderBlock(TwoStreamBlock):
    """`TwoStreamBlock` with its old name, by which Keras finds its weights in a file."""


def upgraded(config):
    """Return a functional model's config, with its blocks' calls in today's form.

    `EncoderBlock` took XLNet's query stream among its `attention_arguments`; a `TwoStreamBlock`
    does so now. It took the queries of DeBERTa's mask decoder as `query_states`, beside the
    states that they attend to, which are the `value` now.
    """
    config = copy.deepcopy(config)
    for layer in config["layers"]:
        if layer["registered_name"] == "tfnlp>EncoderBlock":
            for node in layer["inbound_nodes"]:
                _upgrade(layer, node["args"], node["kwargs"])
    return config


def _upgrade(layer, args, kwargs):
    if kwargs.get("query_states") is not None:
        kwargs["value"], args[0] = args[0], kwargs.pop("query_states")
    further = kwargs.get("attention_arguments") or {}
    if "query_stream" in further:
        kwargs.update(further)
        del kwargs["attention_arguments"], layer["build_config"]
        layer["registered_name"] = "tfnlp>OldTwoStreamBlock"

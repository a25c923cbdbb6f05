"""Layouts of a model over several devices, for `keras.distribution` on JAX."""

import keras

from tfnlp.utils.errors import InputError

_HEADS = r"(query|key|value|joint|position|position_key|position_query)"
# Variables by path, with what each of their axes is split among.
_AXES = {
    # Columns, which are heads or units: no device needs another's until the output's product.
    rf".*attention/{_HEADS}/kernel": ("data", "model"),
    rf".*attention/{_HEADS}/bias": ("model",),
    r".*attention/(query|value)_bias": ("model",),  # of a joint projection, (N H,)
    r".*attention/(content|position|segment)_bias": ("model", None),  # (N, H)
    r".*attention/segment_table": (None, "model", None),  # (2, N, H)
    r".*feed_forward/intermediate/kernel": ("data", "model"),
    r".*feed_forward/intermediate/bias": ("model",),
    # Rows: each device has its part of every sum, and all add theirs. The bias is added once.
    r".*attention/output/kernel": ("model", "data"),
    r".*feed_forward/output/kernel": ("model", "data"),
    # Tokens, of embeddings and of logits, which share the table.
    r".*embeddings/(token_table|table_0)": ("model", "data"),
    r".*lm_bias/bias": ("model",),
}


def get_layout_map(
    device_mesh, model_parallel_dim_name="model", data_parallel_dim_name=None, vocabulary=True
):
    """Return the layout of a transformer's variables, as `Backbone.get_layout_map` of keras-hub.

    Shoeybi et al. 2019, 'Megatron-LM', section 3: attention is split by heads and the
    feed-forward network by units, so that a block adds over devices twice in its forward pass
    and twice in its backward one. Variables that are not in the map are whole on each device::

        mesh = keras.distribution.DeviceMesh((2, 2), ("batch", "model"))
        layout_map = get_layout_map(mesh)
        distribution = keras.distribution.ModelParallel(
            layout_map=layout_map, batch_dim_name="batch"
        )
        with distribution.scope():
            model = build_model(config, "masked_lm")

    Args:
        device_mesh: a `keras.distribution.DeviceMesh`.
        model_parallel_dim_name: its axis among which heads, units and tokens are split.
        data_parallel_dim_name: its axis among which the other axis of each matrix is split too, so
            that no device holds more of a matrix, its gradient and its optimizer's state than its
            own part, and all gather the matrix for each product (Rajbhandari et al. 2020,
            'ZeRO', stage 3). None for whole ones, as in Megatron.
        vocabulary: whether tokens are split; the mesh's axis then has to divide their number.

    Raises:
        InputError: on another backend than JAX, and for an axis that the mesh does not have.
    """
    if keras.backend.backend() != "jax":
        raise InputError(
            f"layouts are for Keras' JAX backend, but this is {keras.backend.backend()}, which "
            "would leave every variable whole; set the environment variable KERAS_BACKEND=jax."
        )
    names = {"model": model_parallel_dim_name, "data": data_parallel_dim_name}
    for name in filter(None, names.values()):
        if name not in device_mesh.axis_names:
            raise InputError(f"the mesh has axes {device_mesh.axis_names}, but no {name!r}.")
    layout_map = keras.distribution.LayoutMap(device_mesh)
    for path, axes in _AXES.items():
        if vocabulary or "attention" in path or "feed_forward" in path:
            layout_map[path] = tuple(names.get(axis) for axis in axes)
    return layout_map

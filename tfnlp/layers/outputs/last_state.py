"""The state of the last real token."""

import keras

from tfnlp.functional.poolings import last_state
from tfnlp.layers.core.base_layer import BaseLayer


@keras.saving.register_keras_serializable("tfnlp")
class LastState(BaseLayer):
    """The states (B, D) of each row's last real token.

    Call arguments:
        inputs: (B, L, D).
        padding_mask: (B, L), 1 at real tokens; the Keras mask of the inputs if None. A row
            without any real token gives its first state.

    Returns:
        (B, D).
    """

    keeps_positions = False

    def call(self, inputs, padding_mask=None, mask=None, inputs_mask=None):
        # Keras passes a mask on as `mask` beside one tensor, as `inputs_mask` beside several.
        if padding_mask is None:
            padding_mask = inputs_mask if mask is None else mask
        if padding_mask is None:
            return inputs[:, -1]
        return last_state(inputs, padding_mask)

    def compute_output_spec(self, inputs, padding_mask=None, **kwargs):
        return self._specs((inputs.shape[0], inputs.shape[2]))

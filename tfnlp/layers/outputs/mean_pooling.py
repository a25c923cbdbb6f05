"""The mean of the states of real tokens."""

import keras
from keras import ops

from tfnlp.functional.masks import masked_mean
from tfnlp.layers.core.base_layer import BaseLayer


@keras.saving.register_keras_serializable("tfnlp")
class MeanPooling(BaseLayer):
    """The mean (B, D) of the states of each row's real tokens.

    Reimers & Gurevych 2019, 'Sentence-BERT', section 3.

    Call arguments:
        inputs: (B, L, D).
        padding_mask: (B, L), 1 at real tokens; the Keras mask of the inputs if None. A row
            without any real token gives zeros.

    Returns:
        (B, D).
    """

    keeps_positions = False

    def call(self, inputs, padding_mask=None, mask=None, inputs_mask=None):
        # Keras passes a mask on as `mask` beside one tensor, as `inputs_mask` beside several.
        if padding_mask is None:
            padding_mask = inputs_mask if mask is None else mask
        return ops.cast(masked_mean(inputs, padding_mask), inputs.dtype)

    def compute_output_spec(self, inputs, padding_mask=None, **kwargs):
        return self._specs((inputs.shape[0], inputs.shape[2]))

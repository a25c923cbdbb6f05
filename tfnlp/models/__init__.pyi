"""Functional models: a config in, a `keras.Model` from named inputs to a dict out."""

from . import deberta as deberta
from . import elmo as elmo
from . import recurrent_translator as recurrent_translator
from .build import build_model as build_model
from .kagnet import build_kagnet as build_kagnet
from .knowledge_bert import with_entities as with_entities
from .text_model import TextModel as TextModel
from .text_model import check_lengths as check_lengths
from .text_model import check_vocabulary as check_vocabulary
from .text_model import config_of as config_of
from .text_model import max_positions as max_positions
from .text_model import num_classes as num_classes
from .text_model import reads_choices as reads_choices
from .text_model import reads_pooled_states as reads_pooled_states
from .text_model import scale_logits as scale_logits
from .text_model import seed_variables as seed_variables
from .text_model import start_output_bias as start_output_bias
from .text_model import submodel as submodel
from .text_model import token_axes as token_axes
from .vector_start import share_of_tokens as share_of_tokens
from .vector_start import start_from_vectors as start_from_vectors
from .vectors import projections as projections
from .vectors import vector_head as vector_head
from .vectors import with_vectors as with_vectors

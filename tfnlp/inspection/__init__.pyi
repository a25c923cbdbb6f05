"""Numbers of what a model does inside: attention, alignments, activations, gradients over time."""

from .internals import activations as activations
from .internals import alignments as alignments
from .internals import check_attends as check_attends
from .internals import gradient_norms as gradient_norms
from .internals import running_texts as running_texts
from .internals import states_over_text as states_over_text
from .internals import token_texts as token_texts
from .internals import windows as windows
from .position_tables import PositionTable as PositionTable
from .position_tables import position_tables as position_tables
from .text_attention import LayerAttention as LayerAttention
from .text_attention import TextAttention as TextAttention
from .text_attention import attention_of as attention_of

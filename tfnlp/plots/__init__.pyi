"""Pictures: PNGs of logs, sweeps and models, and HTML pages that need no network."""

from . import figures as figures
from .attention import AttentionPage as AttentionPage
from .attention import attention_page as attention_page
from .figures import draw_activations as draw_activations
from .figures import draw_alignments as draw_alignments
from .figures import draw_curves as draw_curves
from .figures import draw_gradient_norms as draw_gradient_norms
from .figures import draw_hidden_states as draw_hidden_states
from .figures import draw_layer_shares as draw_layer_shares
from .figures import draw_paths as draw_paths
from .figures import draw_variants as draw_variants
from .figures import draw_word_map as draw_word_map
from .figures import font_families as font_families
from .figures import plot_activations as plot_activations
from .figures import plot_alignments as plot_alignments
from .figures import plot_curves as plot_curves
from .figures import plot_gradient_norms as plot_gradient_norms
from .figures import plot_hidden_states as plot_hidden_states
from .figures import plot_layer_shares as plot_layer_shares
from .figures import plot_paths as plot_paths
from .figures import plot_variants as plot_variants
from .figures import plot_word_map as plot_word_map
from .html_page import html_page as html_page
from .html_page import html_table as html_table
from .html_page import svg_of as svg_of

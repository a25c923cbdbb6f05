"""Runtime for devices: exported .tflite files, without TensorFlow and Keras.

This package ships with the parts of tfnlp that it imports, `tfnlp.pipelines.pipeline`,
`tfnlp.text` and `tfnlp.utils`; `runtime/requirements.txt` lists all that these need.
`StringClassifier` alone needs `tensorflow_text` too.
"""

from tfnlp.generation.continuations import Generated, forbidden_ids
from tfnlp.generation.generation_settings import Beam, Constraints, Greedy, Sample
from tfnlp.pipelines.pipeline import Choice, Classification, Labels
from tfnlp.text.decoding.answers import Answer
from tfnlp.text.decoding.tags import Entity
from tfnlp.utils.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
__all__ += ["Answer", "Beam", "Choice", "Classification", "Constraints", "Entity", "Generated"]
__all__ += ["Greedy", "Labels", "Sample", "forbidden_ids"]

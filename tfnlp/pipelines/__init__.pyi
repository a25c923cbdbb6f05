"""Pipelines for fine-tuned models: texts in, answers out."""

from .inputs import Columns as Columns
from .inputs import Inputs as Inputs
from .keras_backend import KerasBackend as KerasBackend
from .keras_backend import load_runner as load_runner
from .keras_backend import read_kind as read_kind
from .pipeline import PIPELINES as PIPELINES
from .pipeline import Answerer as Answerer
from .pipeline import Chooser as Chooser
from .pipeline import Classifier as Classifier
from .pipeline import Embedder as Embedder
from .pipeline import MultiLabelClassifier as MultiLabelClassifier
from .pipeline import Pipeline as Pipeline
from .pipeline import Scorer as Scorer
from .pipeline import Tagger as Tagger
from .pipeline import pipeline_of as pipeline_of
from .prediction_tables import check_table as check_table
from .prediction_tables import input_table as input_table
from .prediction_tables import write_table as write_table
from .prediction_tasks import prediction_task as prediction_task
from .prediction_tasks import task_of as task_of
from .predictions import predict_inputs as predict_inputs
from .predictions import print_predictions as print_predictions
from .predictions import print_summary as print_summary
from .predictions import summarise as summarise
from .predictions import write_predictions as write_predictions

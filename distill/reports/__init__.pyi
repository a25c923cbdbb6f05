"""Comparison of files: predictions, latency, operators, Pareto frontier."""

from . import frontier_page as frontier_page
from . import pareto_frontier as pareto_frontier
from .latency import benchmark_file as benchmark_file
from .latency import print_benchmark as print_benchmark
from .onnx_baseline import benchmark_onnx as benchmark_onnx
from .operator_profile import print_operators as print_operators
from .operator_profile import profile_operators as profile_operators
from .predictions import Columns as Columns
from .predictions import Inputs as Inputs
from .predictions import check_positive_label as check_positive_label
from .predictions import given_inputs as given_inputs
from .predictions import predict_inputs as predict_inputs
from .predictions import print_predictions as print_predictions
from .predictions import read_inputs as read_inputs
from .predictions import write_predictions as write_predictions

"""A training is the same, bit for bit, however threads run: no sum depends on what is ready first.

TensorFlow's AddN adds into the first of its inputs that nothing else reads any more, and begins
with that one. Which it is may depend on the threads where several inputs have other readers; of
three inputs and more the order shows in the last bits.
"""

import pytest
from tensorflow.python.eager import context

from tests.training.pretrain_runs import OBJECTIVES, make_pretraining
from tfnlp.objectives import ReplacedTokens
from tfnlp.training import make_optimizer

CASES = OBJECTIVES | {"replaced_tokens": (ReplacedTokens(), "deberta_v3", {})}
# What gives its input, or may: by shapes that are known when it runs.
SAME_MEMORY = (
    *("BroadcastTo", "Cast", "ExpandDims", "Identity", "Mean", "Pad", "PadV2", "Reshape", "Slice"),
    *("Squeeze", "StopGradient", "StridedSlice", "Sum", "Tile", "Transpose"),
)


def unordered_sums(graph):
    """The names of sums in a graph, and how many, whose order may differ from run to run."""
    nodes = {node.name: node for node in graph.node}
    readers = {}
    for node in graph.node:
        for name in data_inputs(node):
            readers.setdefault(name, []).append(node.name)

    def is_read_by_others(name):
        while len(readers[name]) == 1:
            node = nodes[name.partition(":")[0]]
            if node.op not in SAME_MEMORY:
                return node.op in ("Const", "ReadVariableOp", "_Arg")
            name = data_inputs(node)[0]
        return True

    sums = [node for node in graph.node if node.op == "AddN" and len(data_inputs(node)) > 2]
    return len(sums), [
        node.name for node in sums if sum(map(is_read_by_others, data_inputs(node))) > 1
    ]


def data_inputs(node):
    return [name.removesuffix(":0") for name in node.input if not name.startswith("^")]


@pytest.mark.parametrize("name", CASES)
def test_no_sum_depends_on_which_gradient_is_ready_first(name):
    pretrainer, batches = make_pretraining(*CASES[name], num_layers=2)
    pretrainer.compile(make_optimizer(pretrainer, 3e-3, clip_norm=1.0), jit_compile=False)
    # With what TensorFlow's optimizer makes of the graph: it joins sums.
    context.enable_run_metadata()
    try:
        pretrainer.train_on_batch(*next(iter(batches.epoch())))
        graphs = context.export_run_metadata().function_graphs
    finally:
        context.disable_run_metadata()
    found = [unordered_sums(graph.post_optimization_graph) for graph in graphs]
    assert sum(number for number, _ in found) >= 2
    assert not [names for _, names in found if names]

"""Mapping of DistilBERT between tfnlp and Hugging Face."""

from tfnlp.checkpoints.bert_map import embeddings
from tfnlp.checkpoints.family import (
    COMMON_FIXED,
    COMMON_HARMLESS,
    HEAD_FIELDS,
    Family,
    Weight,
    architectures,
    because,
    dense,
    norm,
    output_table,
    token_heads,
)
from tfnlp.configs import DistilBertConfig

FIELDS = HEAD_FIELDS | {
    "vocab_size": "vocabulary_size",
    "n_layers": "num_layers",
    "n_heads": "num_heads",
    "dim": "hidden_dim",
    "hidden_dim": "intermediate_dim",
    "activation": "activation",
    "dropout": "dropout",
    "attention_dropout": "attention_dropout",
    "seq_classif_dropout": "classifier_dropout",
    "qa_dropout": "answerer_dropout",
    "max_position_embeddings": "max_length",
    "initializer_range": "initializer_range",
    "pad_token_id": "pad_token_id",
    "tie_word_embeddings": "tie_embeddings",
}


def weights(config, head):
    yield from embeddings(config)
    for i in range(config.num_layers):
        ours, theirs = f"encoder_{i}", f"transformer.layer.{i}"
        parts = {"query": "q_lin", "key": "k_lin", "value": "v_lin", "output": "out_lin"}
        for part, name in parts.items():
            yield from dense(f"{ours}/attention/{part}", f"{theirs}.attention.{name}")
        yield from norm(f"{ours}/attention_norm", f"{theirs}.sa_layer_norm")
        yield from dense(f"{ours}/feed_forward/intermediate", f"{theirs}.ffn.lin1")
        yield from dense(f"{ours}/feed_forward/output", f"{theirs}.ffn.lin2")
        yield from norm(f"{ours}/feed_forward_norm", f"{theirs}.output_layer_norm")
    if head in ("classifier", "chooser"):
        yield from dense("pooler", "pre_classifier", head=True)
        yield from dense("classifier", "classifier", head=True)
    yield from token_heads(head)
    if head == "masked_lm":
        yield from dense("lm_transform", "vocab_transform", head=True)
        yield from norm("lm_norm", "vocab_layer_norm", head=True)
        yield from output_table(config, "vocab_projector.weight")
        yield Weight("lm_bias/bias", "vocab_projector.bias", head=True)


DISTILBERT = Family(
    model_type="distilbert",
    config=DistilBertConfig,
    prefix="distilbert.",
    fields=FIELDS,
    weights=weights,
    architectures=architectures("DistilBert"),
    fixed=COMMON_FIXED | {"tie_weights_": True},
    harmless=COMMON_HARMLESS
    | because("how the position table was started, which is stored", "sinusoidal_pos_embds"),
    aliases={
        "hidden_size": "dim",
        "num_attention_heads": "n_heads",
        "num_hidden_layers": "n_layers",
    },
)

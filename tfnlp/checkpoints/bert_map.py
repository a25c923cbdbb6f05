"""Mapping of BERT and RoBERTa between tfnlp and Hugging Face."""

from tfnlp.checkpoints.family import (
    COMMON_FIELDS,
    COMMON_FIXED,
    COMMON_HARMLESS,
    HEAD_FIELDS,
    Family,
    Weight,
    architectures,
    because,
    dense,
    norm,
    output_bias,
    output_table,
    token_heads,
)
from tfnlp.configs import MASKED_LMS, BertConfig, RobertaConfig

FIXED = COMMON_FIXED | {"position_embedding_type": "absolute"}
SELF_ATTENTION = {part: f"attention.self.{part}" for part in ("query", "key", "value")}


def embeddings(config):
    """Yield the `Weight`s of BERT-like embeddings and their layer norm."""
    yield Weight("embeddings/token_table", "embeddings.word_embeddings.weight")
    yield Weight("embeddings/position_table", "embeddings.position_embeddings.weight")
    if config.num_segments:
        yield Weight("embeddings/segment_table", "embeddings.token_type_embeddings.weight")
    yield from norm("embeddings/norm", "embeddings.LayerNorm")


def layer_rest(ours, theirs):
    """Yield the `Weight`s after self-attention in a BERT-like layer."""
    yield from dense(f"{ours}/attention/output", f"{theirs}.attention.output.dense")
    yield from norm(f"{ours}/attention_norm", f"{theirs}.attention.output.LayerNorm")
    yield from dense(f"{ours}/feed_forward/intermediate", f"{theirs}.intermediate.dense")
    yield from dense(f"{ours}/feed_forward/output", f"{theirs}.output.dense")
    yield from norm(f"{ours}/feed_forward_norm", f"{theirs}.output.LayerNorm")


def layers(config):
    """Yield the `Weight`s of all BERT-like layers."""
    for i in range(config.num_layers):
        ours, theirs = f"encoder_{i}", f"encoder.layer.{i}"
        for part, name in SELF_ATTENTION.items():
            yield from dense(f"{ours}/attention/{part}", f"{theirs}.{name}")
        yield from layer_rest(ours, theirs)


def bert_lm_head(config):
    """Yield the `Weight`s of BERT's masked LM head."""
    stem = "cls.predictions"
    yield from lm_transform(f"{stem}.transform")
    yield from output_table(config, f"{stem}.decoder.weight")
    yield from output_bias(config, f"{stem}.bias", f"{stem}.decoder.bias")


def lm_transform(name):
    """Yield the `Weight`s before the output layer of a BERT-like masked LM head."""
    yield from dense("lm_transform", f"{name}.dense", head=True)
    yield from norm("lm_norm", f"{name}.LayerNorm", head=True)


def bert_weights(config, head):
    yield from embeddings(config)
    yield from layers(config)
    if head in (None, "classifier", "chooser", "pretraining"):
        yield from dense("pooler", "pooler.dense")
    if head in ("classifier", "chooser"):
        yield from dense("classifier", "classifier", head=True)
    yield from token_heads(head)
    if head in MASKED_LMS:
        yield from bert_lm_head(config)
    if head == "pretraining":
        yield from dense("pair_classifier", "cls.seq_relationship", head=True)


def roberta_weights(config, head):
    yield from embeddings(config)
    yield from layers(config)
    if head in (None, "chooser"):
        yield from dense("pooler", "pooler.dense")
    if head == "classifier":
        yield from dense("pooler", "classifier.dense", head=True)
        yield from dense("classifier", "classifier.out_proj", head=True)
    if head == "chooser":
        yield from dense("classifier", "classifier", head=True)
    yield from token_heads(head)
    if head == "masked_lm":
        yield from dense("lm_transform", "lm_head.dense", head=True)
        yield from norm("lm_norm", "lm_head.layer_norm", head=True)
        yield from output_table(config, "lm_head.decoder.weight")
        yield from output_bias(config, "lm_head.bias", "lm_head.decoder.bias")


def _count_positions(ours, fields):
    """Return our fields with `max_length` less the rows before the first position."""
    offset = ours.get("pad_token_id", 1) + 1
    return ours | {"max_length": ours["max_length"] - offset}


def _count_rows(theirs, config):
    return theirs | {"max_position_embeddings": config.max_length + config.pad_token_id + 1}


BERT = Family(
    model_type="bert",
    config=BertConfig,
    prefix="bert.",
    fields=COMMON_FIELDS | HEAD_FIELDS | {"classifier_dropout": "classifier_dropout"},
    weights=bert_weights,
    architectures=architectures("Bert", pretraining="BertForPreTraining"),
    fixed=FIXED,
    harmless=COMMON_HARMLESS
    | because(
        "in Google's multilingual files; no code reads it",
        *("directionality", "pooler_fc_size", "pooler_num_attention_heads"),
        *("pooler_num_fc_layers", "pooler_size_per_head", "pooler_type"),
    ),
)
ROBERTA = Family(
    model_type="roberta",
    config=RobertaConfig,
    prefix="roberta.",
    fields=COMMON_FIELDS | HEAD_FIELDS | {"classifier_dropout": "classifier_dropout"},
    weights=roberta_weights,
    architectures=architectures("Roberta"),
    fixed=FIXED,
    defaults={"layer_norm_eps": 1e-12, "type_vocab_size": 2, "max_position_embeddings": 512},
    decode=_count_positions,
    encode=_count_rows,
)

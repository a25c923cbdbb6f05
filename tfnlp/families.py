"""Families of models: a record for each of what is built, read and trained by its name.

The parts of a family lie on several floors. A record has their places, which are imported when
they are asked for, so that a run loads its own family alone.
"""

import dataclasses
import pkgutil

from tfnlp.utils.errors import InputError


@dataclasses.dataclass(frozen=True, eq=False)
class Family:
    """Family of models.

    Args:
        name: of the family.
        config: place of the class of its configs, such as "tfnlp.configs:BertConfig".
        build: place of the function from a config and inputs to an encoder's states, or to an
            encoder-decoder's outputs.
        maps: {model_type in config.json: place of its `CheckpointMap` in `tfnlp.checkpoints`}.
        tokenizer: kind of its own, as in `tfnlp.text.train_tokenizer`; None for none that tfnlp
            has, so that WordPiece is trained for it.
        any_tokenizer: whether its released models have tokenizers of any kind.
        objectives: the names of those that it is pretrained by.
        names: by which one asks for it; its own where None.
        sizes: {name: layers, heads, width, feed-forward width, {other fields}}; the config's
            defaults where left out.
        translates: whether it is an encoder-decoder.
    """

    name: str
    config: str
    build: str
    maps: dict
    tokenizer: str | None = None
    any_tokenizer: bool = False
    objectives: tuple = ()
    names: tuple | None = None
    sizes: dict = dataclasses.field(default_factory=dict)
    translates: bool = False

    def __post_init__(self):
        if self.names is None:
            object.__setattr__(self, "names", (self.name,))

    @property
    def model_type(self):
        """The first name of the family in config.json."""
        return next(iter(self.maps))

    def load(self, part):
        """Return the "config" class or the "build" function."""
        return pkgutil.resolve_name(getattr(self, part))


MASKED_PAIRS = ("masked_lm", "next_sentence", "sentence_order")

_FAMILIES = (
    Family(
        "bert",
        "tfnlp.configs:BertConfig",
        "tfnlp.models.bert:encode_bert",
        {"bert": "tfnlp.checkpoints.bert_map:BERT"},
        tokenizer="wordpiece",
        objectives=(*MASKED_PAIRS, "denoising_entities"),
        sizes={
            "bert_base": (),
            "bert_large": (24, 16, 1024, 4096),
            "bert_tiny": (2, 2, 128, 512),
            "bert_mini": (4, 4, 256, 1024),
            "bert_small": (4, 8, 512, 2048),
            "bert_medium": (8, 8, 512, 2048),
            "tinybert_4l_312": (4, 12, 312, 1200),
            "tinybert_6l_768": (6,),
            "minilm_6l_384": (6, 12, 384, 1536),
            "minilm_12l_384": (12, 12, 384, 1536),
        },
    ),
    # ERNIE (Zhang et al. 2019), which `tfnlp.models.with_entities` makes of a BERT.
    Family(
        "knowledge_bert",
        "tfnlp.configs:KnowledgeBertConfig",
        "tfnlp.models.knowledge_bert:encode_knowledge_bert",
        {"knowledge_bert": "tfnlp.checkpoints.knowledge_bert_map:KNOWLEDGE_BERT"},
        tokenizer="wordpiece",
        names=(),
    ),
    Family(
        "roberta",
        "tfnlp.configs:RobertaConfig",
        "tfnlp.models.bert:encode_roberta",
        {"roberta": "tfnlp.checkpoints.bert_map:ROBERTA"},
        tokenizer="bpe",
        objectives=("masked_lm",),
        sizes={"roberta_base": (), "roberta_large": (24, 16, 1024, 4096)},
    ),
    Family(
        "distilbert",
        "tfnlp.configs:DistilBertConfig",
        "tfnlp.models.bert:encode_bert",
        {"distilbert": "tfnlp.checkpoints.distilbert_map:DISTILBERT"},
        tokenizer="wordpiece",
        objectives=("masked_lm",),
        sizes={"distilbert_base": ()},
    ),
    Family(
        "albert",
        "tfnlp.configs:AlbertConfig",
        "tfnlp.models.albert:encode_albert",
        {"albert": "tfnlp.checkpoints.albert_map:ALBERT"},
        tokenizer="unigram",
        objectives=MASKED_PAIRS,
        sizes={
            "albert_base": (),
            "albert_large": (24, 16, 1024, 4096),
            "albert_xlarge": (24, 16, 2048, 8192),
            "albert_xxlarge": (12, 64, 4096, 16384, {"activation": "gelu"}),
        },
    ),
    # A RoBERTa of a hundred languages (Conneau et al. 2020).
    Family(
        "xlm_roberta",
        "tfnlp.configs:XlmRobertaConfig",
        "tfnlp.models.bert:encode_roberta",
        {"xlm-roberta": "tfnlp.checkpoints.bert_map:XLM_ROBERTA"},
        tokenizer="unigram",
        objectives=("masked_lm",),
        sizes={"xlm_roberta_base": (), "xlm_roberta_large": (24, 16, 1024, 4096)},
    ),
    Family(
        "electra",
        "tfnlp.configs:ElectraConfig",
        "tfnlp.models.bert:encode_electra",
        {"electra": "tfnlp.checkpoints.electra_map:ELECTRA"},
        tokenizer="wordpiece",
        objectives=("masked_lm", "replaced_tokens"),
        sizes={
            "electra_small": (),
            # The generator is narrower than the discriminator (Clark et al. 2020, section 3.2).
            "electra_small_generator": (),
            "electra_base": (12, 12, 768, 3072, {"embedding_dim": 768}),
            "electra_base_generator": (12, 4, 256, 1024, {"embedding_dim": 768}),
            "electra_large": (24, 16, 1024, 4096, {"embedding_dim": 1024}),
        },
    ),
    Family(
        "deberta",
        "tfnlp.configs:DebertaConfig",
        "tfnlp.models.deberta:encode_deberta",
        {"deberta": "tfnlp.checkpoints.deberta_map:DEBERTA"},
        tokenizer="bpe",
        objectives=("masked_lm", "replaced_tokens"),
        sizes={"deberta_base": (), "deberta_large": (24, 16, 1024, 4096)},
    ),
    Family(
        "deberta_v2",
        "tfnlp.configs:DebertaV2Config",
        "tfnlp.models.deberta:encode_deberta_v2",
        {"deberta-v2": "tfnlp.checkpoints.deberta_map:DEBERTA_V2"},
        tokenizer="unigram",
        objectives=("masked_lm", "replaced_tokens"),
        names=("deberta_v2", "deberta_v3"),
        sizes={
            "deberta_v2_xlarge": (
                *(24, 24, 1536, 6144),
                {"convolution_size": 3, "convolution_activation": "gelu"},
            ),
            "deberta_v3_xsmall": (12, 6, 384, 1536),
            "deberta_v3_small": (6,),
            "deberta_v3_base": (),
            "deberta_v3_large": (24, 16, 1024, 4096),
        },
    ),
    Family(
        "modernbert",
        "tfnlp.configs:ModernBertConfig",
        "tfnlp.models.modernbert:encode_modernbert",
        {"modernbert": "tfnlp.checkpoints.modernbert_map:MODERNBERT"},
        tokenizer="bpe",
        objectives=("masked_lm",),
        sizes={
            "modernbert_base": (),
            "modernbert_large": (28, 16, 1024, 2624),
            # Weller et al. 2025, table 1.
            "ettin_17m": (7, 4, 256, 384),
            "ettin_32m": (10, 6, 384, 576),
            "ettin_68m": (19, 8, 512, 768),
            "ettin_150m": (),
            "ettin_400m": (28, 16, 1024, 2624),
        },
    ),
    Family(
        "xlnet",
        "tfnlp.configs:XLNetConfig",
        "tfnlp.models.xlnet:encode_xlnet",
        {"xlnet": "tfnlp.checkpoints.xlnet_map:XLNET"},
        tokenizer="unigram",
        objectives=("permutation_lm",),
        sizes={"xlnet_base": (), "xlnet_large": (24, 16, 1024, 4096)},
    ),
    Family(
        "transformer_xl",
        "tfnlp.configs:TransformerXLConfig",
        "tfnlp.models.transformer_xl:encode_transformer_xl",
        {"transfo-xl": "tfnlp.checkpoints.transformer_xl_map:TRANSFORMER_XL"},
        any_tokenizer=True,
        objectives=("causal_lm",),
        sizes={
            "transformer_xl_wt103": (),
            # Trained on the characters of enwik8 (Dai et al. 2019, section 4.1).
            "transformer_xl_enwik8": (
                *(12, 8, 512, 2048),
                {"vocabulary_size": 204, "cutoffs": (), "div_value": 1}
                | {"memory_length": 512, "clamp_length": 820},
            ),
        },
    ),
    Family(
        "gpt",
        "tfnlp.configs:GptConfig",
        "tfnlp.models.gpt:encode_gpt",
        {"openai-gpt": "tfnlp.checkpoints.gpt_map:GPT"},
        any_tokenizer=True,
        objectives=("causal_lm",),
        sizes={"gpt": ()},
    ),
    Family(
        "gpt2",
        "tfnlp.configs:Gpt2Config",
        "tfnlp.models.gpt:encode_gpt2",
        {"gpt2": "tfnlp.checkpoints.gpt_map:GPT2"},
        tokenizer="bpe",
        objectives=("causal_lm",),
        sizes={
            "gpt2": (),
            "gpt2_medium": (24, 16, 1024, 4096),
            "gpt2_large": (36, 20, 1280, 5120),
            "gpt2_xl": (48, 25, 1600, 6400),
        },
    ),
    Family(
        "recurrent",
        "tfnlp.configs:RecurrentConfig",
        "tfnlp.models.recurrent:encode_recurrent",
        {"recurrent": "tfnlp.checkpoints.recurrent_map:RECURRENT"},
        any_tokenizer=True,
        objectives=("causal_lm",),
        names=("rnn", "lstm", "gru"),
    ),
    Family(
        "textcnn",
        "tfnlp.configs:TextCnnConfig",
        "tfnlp.models.word_models:encode_textcnn",
        {"textcnn": "tfnlp.checkpoints.word_model_map:TEXTCNN"},
        any_tokenizer=True,
    ),
    Family(
        "bag",
        "tfnlp.configs:BagConfig",
        "tfnlp.models.word_models:encode_bag",
        {"bag": "tfnlp.checkpoints.word_model_map:BAG"},
        any_tokenizer=True,
    ),
    # A folder of model2vec, which has no family in config.json, becomes one of these.
    Family(
        "static",
        "tfnlp.configs:StaticConfig",
        "tfnlp.models.word_models:encode_static",
        {"static": "tfnlp.checkpoints.static_map:STATIC"},
        any_tokenizer=True,
    ),
    Family(
        "elmo",
        "tfnlp.configs:ElmoConfig",
        "tfnlp.models.elmo:encode_elmo",
        {"elmo": "tfnlp.checkpoints.elmo_map:ELMO"},
        tokenizer="words",
        objectives=("bidirectional_lm",),
    ),
    # A Pegasus is a Marian whose norms come first.
    Family(
        "transformer",
        "tfnlp.configs:TransformerConfig",
        "tfnlp.models.transformer:run_transformer",
        {
            "marian": "tfnlp.checkpoints.marian_map:MARIAN",
            "pegasus": "tfnlp.checkpoints.marian_map:PEGASUS",
        },
        tokenizer="unigram",
        any_tokenizer=True,
        sizes={
            "transformer_base": (),
            "transformer_big": (6, 16, 1024, 4096, {"dropout": 0.3}),
            # For some 30,000 pairs (Wu et al. 2021, 'Good for Misconceived Reasons', section 4.1).
            "transformer_tiny": (4, 4, 128, 256, {"vocabulary_size": 10000, "dropout": 0.3}),
        },
        translates=True,
    ),
    Family(
        "recurrent_translator",
        "tfnlp.configs:RecurrentTranslatorConfig",
        "tfnlp.models.recurrent_translator:run_recurrent_translator",
        {"recurrent_translator": "tfnlp.checkpoints.recurrent_map:RECURRENT_TRANSLATOR"},
        any_tokenizer=True,
        translates=True,
    ),
)
FAMILIES = {family.name: family for family in _FAMILIES}
# By the names in config.json.
MODEL_TYPES = {model_type: family for family in _FAMILIES for model_type in family.maps}


def family_of(config):
    """Return the `Family` of a config.

    Raises:
        InputError: if its class is that of no family, such as a child of one.
    """
    name = type(config).__name__
    for family in _FAMILIES:
        if family.config.endswith(f":{name}"):
            return family
    raise InputError(f"{name} is the config of no family; give one of tfnlp.configs.")

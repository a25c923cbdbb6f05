"""Flags of the pretraining objectives: for each its settings, which build it."""

import dataclasses

from absl import flags

from recipes.flags import dataclass_flags
from recipes.shell.command_line import group, refuse_beside, refuse_without
from tfnlp import objectives
from tfnlp.utils.settings import Settings, setting

FLAGS = flags.FLAGS
PACKING = (
    "Texts of a row: of one document (separate); across documents, which see each other (joined); "
    "or several documents, each of which sees itself alone (masked)."
)


@dataclasses.dataclass(frozen=True)
class Masking(Settings):
    """Settings of objectives that mask tokens."""

    masked_share: float = setting(0.15, "Share of masked tokens.", low=0, high=1)


@dataclasses.dataclass(frozen=True)
class MaskedUnits(Masking):
    """Settings of objectives that mask tokens, words or spans."""

    masked_units: str = setting("tokens", "Unit of masking.", choices=("tokens", "words", "spans"))
    longest_span: int | None = setting(
        None, "Most words in a span; 3 if not given. With --masked_units=spans.", low=1
    )

    def objective(self, **options):
        return objectives.MaskedLM(
            self.masked_units, self.masked_share, longest_span=self.longest_span or 3, **options
        )


@dataclasses.dataclass(frozen=True)
class MaskedLM(MaskedUnits):
    """Settings of the masked LM objective."""

    packing: str = setting("separate", PACKING, choices=("separate", "joined", "masked"))

    def objective(self):
        return super().objective(packing=self.packing)


@dataclasses.dataclass(frozen=True)
class NextSentence(MaskedUnits):
    """Settings of next sentence prediction."""

    def objective(self):
        return objectives.NextSentence(masked_lm=super().objective())


@dataclasses.dataclass(frozen=True)
class DenoisingEntities(MaskedUnits):
    """Settings of the denoising entity auto-encoder."""

    def objective(self):
        return objectives.DenoisingEntities(masked_lm=super().objective())


@dataclasses.dataclass(frozen=True)
class SentenceOrder(MaskedUnits):
    """Settings of sentence order prediction, which masks spans."""

    masked_units: str = setting("spans", "Unit of masking.", choices=("tokens", "words", "spans"))

    def objective(self):
        return objectives.SentenceOrder(masked_lm=super().objective())


@dataclasses.dataclass(frozen=True)
class ReplacedTokens(Masking):
    """Settings of the replaced tokens objective."""

    generator_size: float | None = setting(
        None,
        "Size of the generator, as a share of the width (ELECTRA; 0.25 if not given) or of the "
        "layers (DeBERTa; 0.5).",
        low=0,
        high=1,
    )
    discriminator_weight: float = setting(50.0, "Weight of the discriminator's loss.", low=0)
    generator_dir: str | None = setting(
        None,
        "Folder of the generator that was trained with the discriminator of --model_dir, such as "
        "OUTPUT_DIR/generator of its run; if not given random weights, with embeddings that "
        "start as the discriminator's.",
    )

    packing: str = setting("separate", PACKING, choices=("separate", "joined", "masked"))

    def objective(self):
        return objectives.ReplacedTokens(
            share=self.masked_share,
            generator_size=self.generator_size,
            discriminator_weight=self.discriminator_weight,
            packing=self.packing,
        )


@dataclasses.dataclass(frozen=True)
class Memory(Settings):
    """Settings of objectives whose models may have a memory."""

    memory_length: int | None = setting(
        None,
        "Tokens of the memory that a segment takes over from the one before, with Transformer-XL "
        "and XLNet; no memory if not given. A recurrent network's state is always taken over.",
        low=1,
    )


@dataclasses.dataclass(frozen=True)
class PermutationLM(Memory):
    """Settings of the permutation LM objective."""

    reuse_length: int | None = setting(
        None,
        "Tokens between the starts of segments with a memory; half of --max_length if not given.",
        low=1,
    )
    predict_one_in: int = setting(6, "K: one in K tokens is predicted.", low=1)

    def objective(self):
        reuse_length = self.memory_length and (self.reuse_length or FLAGS.max_length // 2)
        return objectives.PermutationLM(reuse_length, self.predict_one_in)


@dataclasses.dataclass(frozen=True)
class CausalLM(Memory):
    """Settings of the causal LM objective."""

    packing: str = setting("joined", PACKING, choices=("joined", "masked"))

    def objective(self):
        return objectives.CausalLM(self.memory_length is not None, self.packing)


@dataclasses.dataclass(frozen=True)
class BidirectionalLM:
    """Settings of the bidirectional LM objective, which has none."""

    def objective(self):
        return objectives.BidirectionalLM()


OBJECTIVES = {
    "masked_lm": MaskedLM,
    "next_sentence": NextSentence,
    "sentence_order": SentenceOrder,
    "denoising_entities": DenoisingEntities,
    "replaced_tokens": ReplacedTokens,
    "permutation_lm": PermutationLM,
    "causal_lm": CausalLM,
    "bidirectional_lm": BidirectionalLM,
}


@group("Objective")
def define_flags():
    """Define the flags of the objective."""
    flags.DEFINE_enum("objective", "masked_lm", list(OBJECTIVES), "Pretraining objective.")
    dataclass_flags.define_choice(OBJECTIVES)


def read_settings():
    """Return the objective's settings of the flags.

    Raises:
        InputError: for a flag of another objective, or flags that conflict.
    """
    config, where = OBJECTIVES[FLAGS.objective], f"with objective={FLAGS.objective}"
    dataclass_flags.refuse_others(config, OBJECTIVES.values(), where)
    settings = dataclass_flags.read(config)
    if isinstance(settings, MaskedUnits) and settings.masked_units != "spans":
        refuse_beside(["longest_span"], f"masked_units={settings.masked_units}")
    if FLAGS.generator_dir:
        refuse_beside(["generator_size"], f"generator_dir={FLAGS.generator_dir}")
    refuse_without(["generator_dir"], "model_dir")
    refuse_without(["reuse_length"], "memory_length")
    if FLAGS.packing == "masked":
        refuse_beside(["memory_length"], "packing=masked, where documents see themselves alone")
    return settings

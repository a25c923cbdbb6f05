"""Causal decoder with cached keys and values."""

from tfnlp.generation.key_value_cache import CachedDecoder
from tfnlp.models import Gpt2Config, GptConfig


class CausalDecoder(CachedDecoder):
    """Step-by-step decoder of a GPT or a GPT-2."""

    families = (GptConfig, Gpt2Config)

    def __init__(self, model):
        super().__init__(model, "encoder", "final_norm")

    def start(self, token_ids, prompt_mask, beams, steps):
        return self._begin(token_ids, prompt_mask, beams, steps)

    def _embed(self, token_ids, positions):
        return self._embeddings(token_ids, positions=positions)

    def _through(self, number, x, seen, cache, source):
        return self._blocks[number](
            x,
            attention_mask=seen,
            attention_arguments={"cache": cache},
            return_projections=True,
        )

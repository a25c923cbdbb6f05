"""Causal decoder with cached keys and values."""

from tfnlp.generation.key_value_cache import CachedDecoder
from tfnlp.models import Gpt2Config, GptConfig, config_of
from tfnlp.utils.errors import InputError


class CausalDecoder(CachedDecoder):
    """Step-by-step decoder of a GPT or a GPT-2, with the model's layers and weights.

    Args:
        model: from `build_model` or `load_model`, with the head "causal_lm".

    Raises:
        InputError: if the model has another head or family.
    """

    FAMILIES = (GptConfig, Gpt2Config)
    # Texts continue the prompt, without a start token.
    start_token_id = None

    def __init__(self, model):
        config = config_of(model)
        if model.head != "causal_lm" or type(config) not in self.FAMILIES:
            held = f"the head {model.head!r}" if model.head else "no head"
            raise InputError(
                f"A model that writes is needed, but this is a {model.name} with {held}; give a "
                "causal language model, such as a GPT-2 with the head 'causal_lm'."
            )
        blocks = [model.get_layer(f"encoder_{i}") for i in range(config.num_layers)]
        super().__init__(model, blocks, "final_norm")
        self.vocabulary_size = config.vocabulary_size

    def start(self, token_ids, prompt_mask, beams, steps):
        """Process prompts.

        Args:
            token_ids: (B, P) integers, padded at the left.
            prompt_mask: (B, P), 1 or true at real tokens, at least one in each row.
            beams: K, the texts of each prompt.
            steps: the most tokens of each text.

        Returns:
            The logits of the token after the prompts, (B, V) float32, and a `Cached`.
        """
        return self._begin(token_ids, prompt_mask, beams, steps)

    def _embed(self, token_ids, positions):
        return self._embeddings(token_ids, positions=positions)

    def _through(self, block, x, seen, cache, source, number):
        arguments = {"attention_arguments": {"cache": cache}, "return_projections": True}
        return block(x, attention_mask=seen, **arguments)

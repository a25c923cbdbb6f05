// XLM-R's unigram pieces with the ids of Python's `tokenizers`.
//
// Hugging Face's package finds the most probable pieces of a word. It splits no words, and knows
// characters that are newer than the Unicode of Python's engine, which leaves these as they are.

import { MetaspacePreTokenizer, Normalizer, Tokenizer } from "@huggingface/tokenizers";
import { type Pieces, RuleNormalizer, type Rules, type Token } from "./tokens";

/** NFKC of what the rules leave of a text, with one space for several. */
class UnigramNormalizer extends Normalizer {
  private readonly rules: RuleNormalizer;

  constructor(rules: Rules) {
    super({ type: "unigram" } as never);
    this.rules = new RuleNormalizer(rules);
  }

  normalize(text: string): string {
    // The rules give NFKC of each code point, so that composition is what is left.
    return this.rules.normalize(text).normalize("NFC").replace(/ {2,}/g, " ");
  }
}

class WordStarts extends MetaspacePreTokenizer {
  pre_tokenize_text(text: string): string[] {
    return super.pre_tokenize_text(text).flatMap((words) => words.split(/(?=▁)/));
  }
}

export class Unigram implements Pieces {
  readonly first: number;
  readonly between: number[];
  readonly last: number;
  readonly segment = 0;
  private readonly tokenizer: Tokenizer;
  private readonly unknown: number;

  /** `json` is a tokenizer.json of Hugging Face with XLM-R's pieces. */
  constructor(json: { model: { unk_id: number } }, rules: Rules) {
    this.tokenizer = new Tokenizer({ ...json, normalizer: null }, {});
    this.tokenizer.normalizer = new UnigramNormalizer(rules);
    this.tokenizer.pre_tokenizer = new WordStarts({ type: "Metaspace" } as never);
    this.unknown = json.model.unk_id;
    [this.first, this.last] = ["<s>", "</s>"].map((token) => this.id(token));
    this.between = [this.last, this.last];
  }

  /** Return the tokens of a text, whose places are not known: all are 0. */
  tokens(text: string): Token[] {
    return this.tokenizer.tokenize(text).map((piece) => ({ id: this.id(piece), start: 0, end: 0 }));
  }

  private id(piece: string): number {
    return this.tokenizer.token_to_id(piece) ?? this.unknown;
  }
}

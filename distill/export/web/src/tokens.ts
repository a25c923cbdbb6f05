// WordPiece with the ids of Python's `tokenizers`, and the places of tokens in the text.
//
// Hugging Face's package splits words into pieces. It normalises by the browser's own tables of
// Unicode, which are newer than those of Python's engine, and lowercases whole texts (the last
// sigma of a word). So each code point is read by a rule of that engine instead.

import { Normalizer, Tokenizer, WhitespaceSplitPreTokenizer } from "@huggingface/tokenizers";

/** A piece of a text: its id, and its first and end place, in UTF-16 units as in `slice`. */
export interface Token {
  id: number;
  start: number;
  end: number;
}

/** The pieces of texts, and the ids before, between and after the texts of a row. */
export interface Pieces {
  first: number;
  between: number[];
  last: number;
  /** The segment id of a second text. */
  segment: number;
  tokens(text: string): Token[];
}

/**
 * Rules of code points, from `character_rules` of distill/export/web_folder.py.
 *
 * `ranges` is {reading: [first, last, first, last, ...]}, in which "@" stands for the code point
 * and the readings "NFD" and "NFKC" for that form of it; `changed` is {code point: reading}.
 * Spaces in a reading end words. Code points without a rule stay as they are.
 */
export interface Rules {
  ranges: Record<string, number[]>;
  changed: Record<string, string>;
}

export class RuleNormalizer extends Normalizer {
  private readonly readings: Map<string, string>;

  constructor(private readonly rules: Rules) {
    super({ type: "rules" } as never);
    this.readings = new Map(Object.entries(rules.changed));
  }

  normalize(text: string): string {
    return Array.from(text, (character) => this.read(character)).join("");
  }

  /** Return what one code point is read as. */
  read(character: string): string {
    let reading = this.readings.get(character);
    if (reading === undefined) {
      reading = this.readByRange(character);
      this.readings.set(character, reading);
    }
    return reading;
  }

  private readByRange(character: string): string {
    const point = character.codePointAt(0)!;
    for (const [reading, places] of Object.entries(this.rules.ranges)) {
      for (let i = 0; i < places.length; i += 2) {
        if (places[i] <= point && point <= places[i + 1]) {
          if (reading === "NFD" || reading === "NFKC") return character.normalize(reading);
          return reading.replace("@", character);
        }
      }
    }
    return character;
  }
}

export class WordPiece implements Pieces {
  readonly first: number;
  readonly between: number[];
  readonly last: number;
  readonly segment = 1;
  private readonly tokenizer: Tokenizer;
  private readonly normalizer: RuleNormalizer;

  /** `json` is a tokenizer.json of Hugging Face with a WordPiece model. */
  constructor(json: object, rules: Rules) {
    this.tokenizer = new Tokenizer(json, {});
    this.normalizer = new RuleNormalizer(rules);
    this.tokenizer.normalizer = this.normalizer;
    this.tokenizer.pre_tokenizer = new WhitespaceSplitPreTokenizer();
    [this.first, this.last] = ["[CLS]", "[SEP]"].map((token) => this.id(token));
    this.between = [this.last];
  }

  /** Return the tokens of a text, without [CLS] and [SEP]. */
  tokens(text: string): Token[] {
    const letters = this.letters(text);
    let next = 0;
    return this.tokenizer.tokenize(text).map((piece) => {
      while (letters[next].letter === " ") next += 1;
      const first = next;
      if (piece === "[UNK]") {
        while (next < letters.length && letters[next].letter !== " ") next += 1;
      } else {
        const continues = first > 0 && letters[first - 1].letter !== " ";
        next += Array.from(piece).length - (continues ? 2 : 0); // "##"
      }
      return { id: this.id(piece), start: letters[first].start, end: letters[next - 1].end };
    });
  }

  /** Return the code points that a text is read as, each with the place of its source. */
  private letters(text: string): { letter: string; start: number; end: number }[] {
    const letters = [];
    let start = 0;
    for (const character of text) {
      const end = start + character.length;
      for (const letter of this.normalizer.read(character)) letters.push({ letter, start, end });
      start = end;
    }
    return letters;
  }

  private id(token: string): number {
    const id = this.tokenizer.token_to_id(token);
    if (id === undefined) throw new Error(`there is no ${token} in it`);
    return id;
  }
}

// Words of a text as a tagger's training data had them, as `WordSplitter` in Python.

export interface Affixes {
  prefixes?: string[];
  suffixes?: string[];
  whole?: string[];
}

// Python's white space, which JavaScript's \s is not.
const CHUNK = /[^\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/g;
const LONGEST = 8; // code points of a prefix or suffix

/** Return [first place, end place] of each word of a text. */
export function wordSpans(text: string, affixes: Affixes = {}): [number, number][] {
  const [prefixes, suffixes, whole] = [affixes.prefixes, affixes.suffixes, affixes.whole].map(
    (words) => new Set(words),
  );
  const parts = (chunk: string): string[] => {
    let word = Array.from(chunk);
    const [before, after]: string[][] = [[], []];
    while (!whole.has(word.join(""))) {
      const most = Math.min(word.length - 1, LONGEST);
      const sizes = Array.from({ length: Math.max(most, 0) }, (_, i) => most - i);
      const first = sizes.find((size) => prefixes.has(word.slice(0, size).join("")));
      const last = sizes.find((size) => suffixes.has(word.slice(-size).join("")));
      if (first) before.push(word.splice(0, first).join(""));
      else if (last) after.unshift(word.splice(-last).join(""));
      else break;
    }
    return [...before, word.join(""), ...after];
  };
  const spans: [number, number][] = [];
  for (const chunk of text.matchAll(CHUNK)) {
    let start = chunk.index;
    for (const part of parts(chunk[0])) {
      spans.push([start, start + part.length]);
      start += part.length;
    }
  }
  return spans;
}

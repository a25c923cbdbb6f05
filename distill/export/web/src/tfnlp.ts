// Runs a folder of `recipes.export_tflite --web` in a browser: texts in, answers out.

import { type CompiledModel, type LiteRt, loadAndCompile, loadLiteRt, Tensor } from "@litertjs/core";
import { type Answer, bestAnswer } from "./answers";
import { encode, questionWindows, type Row, windows } from "./rows";
import { characterTags, type Matrix, type Tag, wordTags } from "./tags";
import { type Pieces, type Rules, WordPiece } from "./tokens";
import { Unigram } from "./unigram";
import { type Affixes, wordSpans } from "./words";

export { encode, readPieces };

/** What settings.json holds, from distill/export/web_folder.py. */
export interface Settings {
  kind: string;
  name: string;
  labels: string[];
  max_length: number;
  task: {
    pairs?: boolean;
    threshold?: number;
    none_label?: string;
    thresholds?: number[];
    unit?: string;
    words?: Affixes;
    stride?: number;
    max_question_length?: number;
    null_answers?: boolean;
    prompts?: Record<string, string>;
    default_prompt?: string;
  };
  rules: Rules;
}

/** What a reader can mend; its message is a sentence. */
export class ModelError extends Error {}

export type Classification = { label: string; probabilities: number[]; truncated: boolean };
export type Labels = { labels: string[]; probabilities: number[]; truncated: boolean };
export type Tags = { tags: Tag[] };
export type Answered = Answer & { truncated: boolean };
export type Embedding = { embedding: number[]; truncated: boolean };
export type Result = Classification | Labels | Tags | Answered | Embedding;

// i32x4.splat in a module of one function: WebAssembly's first SIMD.
const SIMD = [
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 8, 1, 6, 0, 65, 0, 253, 17,
  11,
];

let runtime: Promise<LiteRt> | undefined;

function litert(folder: string): Promise<LiteRt> {
  if (!WebAssembly.validate(new Uint8Array(SIMD))) {
    throw new ModelError(
      "This browser has no WebAssembly SIMD, which LiteRT needs; take Chrome or Edge 91, " +
        "Firefox 89, Safari 16.4, or a newer one.",
    );
  }
  runtime ??= loadLiteRt(folder).then((loaded) => {
    // The package compares shapes before a run, and takes no length for one that is any (-1);
    // LiteRT itself sizes its tensors to the inputs, though not outputs of any length.
    loaded.liteRtWasm.checkTensorBufferCompatible = () => {};
    return loaded;
  });
  return runtime;
}

async function fetched(url: string): Promise<Response> {
  const response = await fetch(url, { cache: "no-cache" }).catch(() => undefined);
  if (!response?.ok) {
    throw new ModelError(`${url} cannot be read; serve the whole folder of export_tflite --web.`);
  }
  return response;
}

export class TextModel {
  /** {length: signature}; -1 is any length. */
  private readonly signatures: Map<number, string>;

  /** Called by `loadModel`. */
  constructor(
    readonly settings: Settings,
    readonly pieces: Pieces,
    private readonly model: CompiledModel,
  ) {
    const names = Object.keys(model.signatures).filter((name) => name.startsWith("run"));
    this.signatures = new Map(
      names.map((name) => {
        const inputs = model.signatures[name].getInputDetails();
        return [inputs.find((input) => input.name === "ids")!.shape[1], name];
      }),
    );
  }

  /** Return the answer for a text: for a pair's first one, or for a question on the `second`. */
  async run(text: string, second?: string): Promise<Result> {
    return TASKS[this.settings.kind](this, text, second);
  }

  /**
   * Run a row, and return {output: numbers}, without the axis of batches.
   *
   * It runs by the shortest signature that holds it, in which zeros follow, or by that of any
   * length.
   */
  async outputs(row: Row): Promise<Record<string, Float32Array>> {
    const lengths = [...this.signatures.keys()].filter((length) => length >= row.ids.length);
    const length = lengths.length ? Math.min(...lengths) : -1;
    const values = { ids: row.ids, mask: row.ids.map(() => 1), segment_ids: row.segmentIds };
    const inputs = Object.fromEntries(
      Object.entries(values).map(([name, numbers]) => {
        const padded = new Int32Array(length < 0 ? numbers.length : length);
        padded.set(numbers);
        return [name, new Tensor(padded, [1, padded.length])];
      }),
    );
    const outputs = await this.model.run(this.signatures.get(length)!, inputs);
    const numbers: Record<string, Float32Array> = {};
    for (const [name, tensor] of Object.entries(outputs)) {
      numbers[name] = Float32Array.from(await tensor.data());
      tensor.delete();
    }
    for (const tensor of Object.values(inputs)) tensor.delete();
    return numbers;
  }
}

/**
 * Load the files of a folder.
 *
 * @param folder its address, with or without a slash at its end.
 * @throws ModelError where the browser or the folder does not do.
 */
export async function loadModel(folder = "."): Promise<TextModel> {
  const place = folder.endsWith("/") ? folder : `${folder}/`;
  const settings: Settings = await (await fetched(`${place}settings.json`)).json();
  if (!(settings.kind in TASKS)) {
    throw new ModelError(
      `The file is of the kind "${settings.kind}", which this page does not run; it runs ` +
        `${Object.keys(TASKS).join(", ")}.`,
    );
  }
  const loaded = litert(place);
  const json = await (await fetched(`${place}tokenizer.json`)).json();
  let pieces: Pieces;
  try {
    pieces = readPieces(json, settings.rules);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ModelError(`tokenizer.json cannot be read (${why}); export the model again.`);
  }
  await loaded;
  const file = new Uint8Array(await (await fetched(`${place}model.tflite`)).arrayBuffer());
  return new TextModel(settings, pieces, await loadAndCompile(file, { accelerator: "wasm" }));
}

/** Return the pieces of a tokenizer.json, of WordPiece or of XLM-R. */
function readPieces(json: { model: { type: string; unk_id: number } }, rules: Rules): Pieces {
  return json.model.type === "Unigram" ? new Unigram(json, rules) : new WordPiece(json, rules);
}

async function probabilities(model: TextModel, text: string, second?: string) {
  const { pieces, settings } = model;
  if (settings.task.pairs && second === undefined) {
    throw new ModelError("The model reads pairs of texts; give the second text too.");
  }
  const { row, truncated } = encode(pieces, settings.max_length, text, second);
  return { probabilities: [...(await model.outputs(row)).probability], truncated };
}

async function classify(model: TextModel, text: string, second?: string): Promise<Classification> {
  const { labels, task } = model.settings;
  const result = await probabilities(model, text, second);
  const best = result.probabilities.indexOf(Math.max(...result.probabilities));
  const sure = result.probabilities[best] >= (task.threshold ?? 0);
  return { label: sure ? labels[best] : (task.none_label ?? "none of these"), ...result };
}

async function label(model: TextModel, text: string, second?: string): Promise<Labels> {
  const { labels, task } = model.settings;
  const result = await probabilities(model, text, second);
  const apply = (_: string, i: number) => result.probabilities[i] >= (task.thresholds?.[i] ?? 0.5);
  return { labels: labels.filter(apply), ...result };
}

async function tag(model: TextModel, text: string): Promise<Tags> {
  const { pieces, settings } = model;
  const { labels, max_length: longest, task } = settings;
  const spans = wordSpans(text, task.words);
  const byCharacter = task.unit === "character";
  const tokens = byCharacter ? [pieces.tokens(text)]
    : spans.map(([start, end]) => pieces.tokens(text.slice(start, end)));
  const quarter = Math.floor(longest / 4);
  const stride = Math.min(task.stride ?? quarter, quarter);
  const rows = windows(pieces, longest, tokens.flat(), stride);
  const outputs: Matrix[] = [];
  for (const row of rows) {
    const flat = (await model.outputs(row)).probability;
    const part = (i: number) => flat.subarray(i * labels.length, (i + 1) * labels.length);
    outputs.push(row.ids.map((_, i) => part(i)));
  }
  return {
    tags: byCharacter ? characterTags(text, rows, outputs, labels)
      : wordTags(text, spans, tokens, rows, outputs, labels),
  };
}

async function answer(model: TextModel, question: string, text?: string): Promise<Answered> {
  const { pieces, settings } = model;
  const { max_length: longest, task } = settings;
  if (text === undefined) {
    throw new ModelError("The model answers questions on a text; give the text too.");
  }
  const { rows, truncated } = questionWindows(pieces, longest, question, text, {
    stride: task.stride ?? Math.floor(longest / 4),
    longestQuestion: task.max_question_length ?? 64,
  });
  const logits = [];
  for (const row of rows) {
    const { start_logits: starts, end_logits: ends } = await model.outputs(row);
    logits.push({ starts, ends });
  }
  return { ...bestAnswer(text, rows, logits, task.null_answers ?? false), truncated };
}

async function embed(model: TextModel, text: string): Promise<Embedding> {
  const { pieces, settings } = model;
  const { default_prompt: name, prompts } = settings.task;
  const prompted = (name ? (prompts?.[name] ?? "") : "") + text;
  const { row, truncated } = encode(pieces, settings.max_length, prompted);
  return { embedding: [...(await model.outputs(row)).embedding], truncated };
}

type Task = (model: TextModel, text: string, second?: string) => Promise<Result>;

const TASKS: Record<string, Task> = {
  classifier: classify,
  "multi-label classifier": label,
  tagger: tag,
  answerer: answer,
  embedder: embed,
};

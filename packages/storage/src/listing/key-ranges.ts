/**
 * Ranges of keys, by which several processes share a walk. They lie between cuts, so every key is in exactly one of
 * them, whoever stores it and whenever. Where the cuts are decides only how even the ranges are.
 */
import { AgaroseError } from "@agarose/core";
import { keyName, keyOfName } from "@agarose/core/format";
import type { Store } from "../buckets/store.ts";
import type { RegionParts } from "../commit/write-context.ts";
import { keyGroups } from "./key-groups.ts";
import { mapOrdered } from "./adaptive-pool.ts";
import { commonStart } from "../commit/names.ts";

/** The keys behind `after`, up to and with `until`, in order of their names in the buckets. */
export interface KeyRange {
  /** Undefined: from the first key. */
  readonly after?: string;
  /** Undefined: to the last key. */
  readonly until?: string;
}

interface CutOptions {
  readonly ranges: number;
  /** A range with fewer objects than this is not worth another cut. */
  readonly objectsMin: number;
  /** Receives a region that cannot be listed. */
  readonly onWarning: (line: string) => void;
}

/** Keys between two cuts, as far as samples have shown them. All texts are names as `keyName` makes them. */
interface Piece {
  /** The first ones, in order. */
  readonly names: readonly string[];
  /** Whether these are all. */
  readonly isWhole: boolean;
  /** The last name that belongs to it. Undefined: to the end. */
  readonly until: string | undefined;
  /** No name of it is greater, but the last one may be. */
  readonly top: string;
}

/** A page of ListObjectsV2, so that a sample is one request to each region. */
const SAMPLE_NAMES = 1_000;
/** One may have lost what it had. Where one cannot be listed, another takes its place. */
const REGIONS_SAMPLED = 3;
/** Names have characters from `!` to `~`. */
const [LEAST, BASE] = [0x21, 95];
/** Behind all names that begin with the same text. */
const GREATEST = "~~";
/** Digits that a double holds. */
const DIGITS = 8;
/** The most keys of a piece that has all of its sample in one place. */
const OBJECTS_MAX = 1e12;
/** Each halves the room in which the next name is looked for. */
const PROBES_MAX = 200;
/** Six requests of a Worker may wait for their answers. */
const PIECES_AT_A_TIME = 4;

/** Whether a key comes behind another one in listings, which order encoded names. */
export function isBehind(key: string, other: string): boolean {
  return keyName(key) > keyName(other);
}

/** The ranges between cuts. @throws INTERNAL when these are not in order, or one is there twice. */
export function rangesOf(cuts: readonly string[]): KeyRange[] {
  const wrong = cuts.findIndex((cut, at) => at > 0 && !isBehind(cut, cuts[at - 1]!));
  if (wrong > 0) {
    const details = { before: cuts[wrong - 1], cut: cuts[wrong], at: wrong };
    const message = `cut ${wrong} (${details.cut}) is not behind the cut before it (${details.before}): ranges would overlap`;
    throw new AgaroseError("INTERNAL", message, details);
  }
  return [undefined, ...cuts].map((after, at) => ({
    ...(after !== undefined && { after }),
    ...(at < cuts.length && { until: cuts[at]! }),
  }));
}

/**
 * Cuts for ranges of about as many objects, by samples of the listings of some regions. Ranges with too many are cut in
 * the middle of their names, again and again.
 *
 * @throws what the last region threw, when none can be listed.
 */
export async function cutKeys(
  prefix: string,
  { ranges, objectsMin, onWarning }: CutOptions,
  { stores, signal, clock }: RegionParts,
): Promise<string[]> {
  const answering = new Set(stores);
  /** The names behind `from` and up to `until`. */
  const sample = async (from: string, until: string | undefined): Promise<Pick<Piece, "names" | "isWhole">> => {
    const names: string[] = [];
    let isAgain = false;
    const onFailure = (store: Store, error: AgaroseError): void => {
      isAgain = true;
      if (answering.delete(store)) onWarning(`warning: ${store.region.name} is not sampled: ${error.message}`);
      if (answering.size === 0) throw error;
    };
    const groups = keyGroups([...answering].slice(0, REGIONS_SAMPLED), prefix, signal, {
      kinds: ["manifests"],
      from,
      clock,
      onFailure,
    });
    for await (const { key } of groups) {
      const name = keyName(key);
      if (until !== undefined && name > until) break;
      if (names.push(name) === Math.min(SAMPLE_NAMES, objectsMin)) return { names, isWhole: false };
    }
    return isAgain ? sample(from, until) : { names, isWhole: true };
  };
  /** A text that at most one name of the piece is behind, with as much of `last` as it can have. */
  const topAbove = async (last: string, { top, until }: Piece): Promise<string> => {
    let [low, high] = [commonStart(last, top).length, last.length];
    while (low < high) {
      const length = Math.ceil((low + high) / 2);
      const { names } = await sample(`${last.slice(0, length)}${GREATEST}`, until);
      if (names.length < 2) low = length;
      else high = length - 1;
    }
    return low === commonStart(last, top).length ? top : `${last.slice(0, low)}${GREATEST}`;
  };
  const split = async (piece: Piece): Promise<Piece[]> => {
    const last = piece.names.at(-1)!;
    let { top } = piece;
    for (let probe = 0; probe < PROBES_MAX; probe++) {
      const middle = between(last, top);
      if (middle === undefined) break;
      const { names, isWhole } = await sample(middle, piece.until);
      const [cut, ...behind] = names;
      if (cut !== undefined && behind.length > 0)
        return [
          { ...piece, until: cut, top: cut },
          { names: behind, isWhole, until: piece.until, top },
        ];
      // Keys often have long beginnings in common.
      top = probe === 0 ? await topAbove(last, { ...piece, top: middle }) : middle;
    }
    return [{ ...piece, isWhole: true }];
  };
  let pieces: Piece[] = [{ ...(await sample("", undefined)), until: undefined, top: GREATEST }];
  for (;;) {
    const share = Math.max(objectsMin, pieces.reduce((sum, piece) => sum + objectsOf(piece), 0) / ranges);
    let room = ranges - pieces.length;
    const isCut = pieces.map((piece) => !piece.isWhole && objectsOf(piece) > share && room-- > 0);
    if (!isCut.includes(true)) break;
    const next: Piece[] = [];
    const act = async (piece: Piece, at: number): Promise<Piece[]> => (isCut[at] ? split(piece) : [piece]);
    for await (const parts of mapOrdered(pieces.entries(), PIECES_AT_A_TIME, ([at, piece]) => act(piece, at))) {
      next.push(...parts);
    }
    pieces = next;
  }
  return pieces.flatMap(({ until }) => (until === undefined ? [] : keyOfName(until)!));
}

/** How many objects a piece may hold: as dense as in its sample. */
function objectsOf({ names, isWhole, top }: Piece): number {
  if (isWhole) return names.length;
  const [first, last] = [names[0]!, names.at(-1)!];
  const from = commonStart(first, top).length;
  const [a, b, end] = [first, last, top].map((name) => numberOf(name.slice(from))) as [number, number, number];
  if (b <= a) return OBJECTS_MAX;
  return Math.min(OBJECTS_MAX, (names.length * (end - a)) / (b - a));
}

/** A text between two others, near the middle. Undefined when they are too near. */
function between(a: string, b: string): string | undefined {
  const from = commonStart(a, b).length;
  let rest = (numberOf(a.slice(from)) + numberOf(b.slice(from))) / 2;
  let middle = a.slice(0, from);
  for (let digit = 0; digit < DIGITS; digit++) {
    rest *= BASE;
    const value = Math.floor(rest);
    middle += String.fromCharCode(LEAST + Math.min(value, BASE - 2));
    rest -= value;
  }
  return middle > a && middle < b ? middle : undefined;
}

/** A fraction that orders texts as listings do. */
function numberOf(text: string): number {
  let sum = 0;
  for (let at = Math.min(text.length, DIGITS) - 1; at >= 0; at--) sum = (sum + text.charCodeAt(at) - LEAST) / BASE;
  return sum;
}

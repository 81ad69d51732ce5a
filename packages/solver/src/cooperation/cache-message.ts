/**
 * What caches tell one another (C2P, ICDCN 2015, section 3.2), and its checks.
 *
 * Departure: the paper's events are changes (add, hit, miss, replace, delete) over a reliable broker. Ours are statements of
 * how things are now, so that one that is lost is made good by the next, and one that comes late or twice changes nothing.
 */

import { solverError } from "../errors.ts";

/** What one node (a PoP) holds of one object, and how it was read there. */
export interface CacheStatement {
  readonly key: string;
  /** Indices of the chunks held now, ascending; none when the object has left the cache. */
  readonly chunks: readonly number[];
  /** Reads at this node, decayed, as of `readMs`. */
  readonly hits: number;
  /** When it was last read there, by the node's clock. */
  readonly readMs: number;
}

/** At most one statement about each object. */
export interface CacheMessage {
  readonly node: string;
  /** Grows when the node has lost its memory or its cache: everything it said before is void then. */
  readonly epoch: number;
  /** The node's clock, and above that of every message it sent before in this epoch: the later statement stands. */
  readonly statedMs: number;
  /** Whether the node holds nothing but what is stated here: whatever else it said before is void then. */
  readonly isComplete: boolean;
  readonly statements: readonly CacheStatement[];
}

const CHUNK_MAX = 2 ** 31 - 1;

/** Turns unknown JSON into a message. Throws REQUEST_INVALID, so that a peer that sends garbage changes nothing. */
export function parseCacheMessage(input: unknown): CacheMessage {
  const { node, epoch, statedMs, isComplete, statements } = asRecord(input, "message");
  if (typeof node !== "string" || node === "") return fail("node", "a name", node);
  if (typeof isComplete !== "boolean") return fail("isComplete", "true or false", isComplete);
  if (!Array.isArray(statements)) return fail("statements", "a list", statements);
  const seen = new Set<string>();
  return {
    node,
    epoch: asNumber(epoch, "epoch", { min: 0, isInteger: true }),
    statedMs: asNumber(statedMs, "statedMs"),
    isComplete,
    statements: statements.map((statement, i) => parseStatement(statement, `statements[${i}]`, seen)),
  };
}

function parseStatement(input: unknown, at: string, seen: Set<string>): CacheStatement {
  const { key, chunks, hits, readMs } = asRecord(input, at);
  if (typeof key !== "string" || seen.has(key)) return fail(`${at}.key`, "a key that comes once", key);
  seen.add(key);
  return {
    key,
    chunks: asChunks(chunks, `${at}.chunks`),
    hits: asNumber(hits, `${at}.hits`, { min: 0 }),
    readMs: asNumber(readMs, `${at}.readMs`),
  };
}

/** Different chunk indices in ascending order. Throws REQUEST_INVALID. */
export function asChunks(input: unknown, field: string): readonly number[] {
  if (!Array.isArray(input)) return fail(field, "a list", input);
  const chunks = input.map((chunk, i) =>
    asNumber(chunk, `${field}[${i}]`, { min: i === 0 ? 0 : (input[i - 1] as number) + 1, isInteger: true }),
  );
  const last = chunks.at(-1) ?? 0;
  return last <= CHUNK_MAX ? chunks : fail(field, `indices up to ${CHUNK_MAX}`, last);
}

/** A finite number, 2^53 at most when an integer is wanted. Throws REQUEST_INVALID. */
export function asNumber(value: unknown, field: string, limits: { min?: number; isInteger?: boolean } = {}): number {
  const { min = -Infinity, isInteger = false } = limits;
  const isSound = isInteger ? Number.isSafeInteger(value) : Number.isFinite(value);
  if (isSound && (value as number) >= min) return value as number;
  return fail(field, `${isInteger ? "an integer" : "a finite number"}${min > -Infinity ? ` >= ${min}` : ""}`, value);
}

function asRecord(input: unknown, at: string): Readonly<Record<string, unknown>> {
  if (typeof input === "object" && input !== null && !Array.isArray(input)) return input as Record<string, unknown>;
  return fail(at, "an object", input);
}

function fail(field: string, wanted: string, got: unknown): never {
  const told = typeof got === "object" && got !== null ? "a list or object" : String(got).slice(0, 60);
  throw solverError("REQUEST_INVALID", `cache events: ${field} must be ${wanted}, got ${told}`, { field });
}

/**
 * The messages by which caches inform each other (C2P, ICDCN 2015, section 3.2), and their checks.
 *
 * Departure: the paper's events are changes (add, hit, miss, replace, delete) over a reliable broker. Our messages
 * state how things are now. The next message repairs a lost one, and a late or repeated one changes nothing.
 */
import { asChunks, asInteger, asList, asNumber, asObject, fail } from "./checks.ts";

/** What one node (a PoP) holds of one object, and how it was read there. */
export interface CacheStatement {
  readonly key: string;
  /** Indices of the chunks held now, ascending; none when the object has left the cache. */
  readonly chunks: readonly number[];
  /** Reads at this node, decayed until `readMs`; >= 0. */
  readonly hits: number;
  /** Time of the last read there, in ms of the node's clock. */
  readonly readMs: number;
}

/** What one node states at one moment: at most one statement about each object. */
export interface CacheMessage {
  readonly node: string;
  /** Grows when the node has lost its memory or its cache, which voids its earlier messages. An integer >= 0. */
  readonly epoch: number;
  /** Milliseconds of the node's clock, above those of its earlier messages in this epoch: the later statement wins. */
  readonly statedMs: number;
  /** Whether the node holds nothing but what is stated here, which voids all its earlier statements. */
  readonly isComplete: boolean;
  readonly statements: readonly CacheStatement[];
}

/** Turns unknown JSON into a message. Throws REQUEST_INVALID with the field's name for anything else. */
export function parseCacheMessage(input: unknown): CacheMessage {
  const { node, epoch, statedMs, isComplete, statements } = asObject(input, "message");
  if (typeof node !== "string" || node === "") return refuse("node", "a name", node);
  if (typeof isComplete !== "boolean") return refuse("isComplete", "true or false", isComplete);
  const seen = new Set<string>();
  return {
    node,
    epoch: asInteger(epoch, "epoch", 0),
    statedMs: asNumber(statedMs, "statedMs"),
    isComplete,
    statements: asList(statements, "statements").map((statement, i) =>
      parseStatement(statement, `statements[${i}]`, seen),
    ),
  };
}

function parseStatement(input: unknown, at: string, seen: Set<string>): CacheStatement {
  const { key, chunks, hits, readMs } = asObject(input, at);
  if (typeof key !== "string" || seen.has(key)) return refuse(`${at}.key`, "a key that comes once", key);
  seen.add(key);
  return {
    key,
    chunks: asChunks(chunks, `${at}.chunks`),
    hits: asNumber(hits, `${at}.hits`, 0),
    readMs: asNumber(readMs, `${at}.readMs`),
  };
}

function refuse(field: string, wanted: string, got: unknown): never {
  return fail(field, `must be ${wanted}, got ${String(JSON.stringify(got)).slice(0, 60)}`);
}

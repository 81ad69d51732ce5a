/**
 * The messages by which caches inform each other (C2P, ICDCN 2015, section 3.2), and their checks.
 *
 * Departure: the paper's events are changes (add, hit, miss, replace, delete) over a reliable broker. Our messages
 * state how things are now. The next message repairs a lost one, and a late or repeated one changes nothing.
 */
import * as v from "valibot";
import { integer, number } from "../checked.ts";

/** The chunks of one object at one node (a PoP), and its reads there. */
export interface CacheStatement {
  readonly key: string;
  /** Indices of the chunks held now, ascending; none when the object has left the cache. */
  readonly chunks: readonly number[];
  /** Reads at this node, decayed until `readMs`; >= 0. */
  readonly hits: number;
  /** Time of the last read there, in ms of the node's clock. */
  readonly readMs: number;
}

/** The statements of one node at one moment, at most one about each object. */
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

const CHUNK_MAX = 2 ** 31 - 1;

/** Different indices of chunks, ascending. */
export const chunksSchema = v.pipe(
  v.array(v.pipe(integer(0), v.maxValue(CHUNK_MAX))),
  v.check((chunks) => chunks.every((chunk, i) => i === 0 || chunk > chunks[i - 1]!), "must be ascending"),
);

const statementSchema = v.object({ key: v.string(), chunks: chunksSchema, hits: number(0), readMs: number() });

/** Bounds of another node's message. */
export const cacheMessageSchema: v.GenericSchema<unknown, CacheMessage> = v.object({
  node: v.pipe(v.string(), v.nonEmpty()),
  epoch: integer(0),
  statedMs: number(),
  isComplete: v.boolean(),
  statements: v.pipe(
    v.array(statementSchema),
    v.check((all) => new Set(all.map(({ key }) => key)).size === all.length, "names a key twice"),
  ),
});

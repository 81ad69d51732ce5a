/**
 * The messages by which caches inform each other (C2P, ICDCN 2015, section 3.2), and their checks.
 *
 * Departure: the paper's events are changes (add, hit, miss, replace, delete) over a reliable broker. Our messages
 * state how things are now. The next message repairs a lost one, and a late or repeated one changes nothing.
 */
import * as v from "valibot";
import { integer, number, type Immutable } from "../checked.ts";

const CHUNK_MAX = 2 ** 31 - 1;

/** Different indices of chunks, ascending. */
export const chunksSchema = v.pipe(
  v.array(v.pipe(integer(0), v.maxValue(CHUNK_MAX))),
  v.check((chunks) => chunks.every((chunk, i) => i === 0 || chunk > chunks[i - 1]!), "must be ascending"),
);

const statementSchema = v.object({
  key: v.string(),
  /** The chunks held now; none when the object has left the cache. */
  chunks: chunksSchema,
  /** Reads at this node, decayed until `readMs`. */
  hits: number(0),
  /** Time of the last read there, in ms of the node's clock. */
  readMs: number(),
});

/** The chunks of one object at one node (a PoP), and its reads there. */
export type CacheStatement = Immutable<v.InferOutput<typeof statementSchema>>;

/** The statements of one node at one moment, at most one about each object. */
export const cacheMessageSchema = v.object({
  node: v.pipe(v.string(), v.nonEmpty()),
  /** Grows when the node has lost its memory or its cache, which voids its earlier messages. */
  epoch: integer(0),
  /** Milliseconds of the node's clock, above those of its earlier messages in this epoch: the later statement wins. */
  statedMs: number(),
  /** Whether the node holds nothing but what is stated here, which voids all its earlier statements. */
  isComplete: v.boolean(),
  statements: v.pipe(
    v.array(statementSchema),
    v.check((all) => new Set(all.map(({ key }) => key)).size === all.length, "names a key twice"),
  ),
});

/** A message that the schema accepts. */
export type CacheMessage = Immutable<v.InferOutput<typeof cacheMessageSchema>>;

/** The messages between PoPs as they come over the network: their limits, and their checks. Pure. */
import { AgaroseError } from "@agarose/core";
import {
  cacheMessageSchema,
  type CacheMessage,
  type PeerMessage,
  type PopularityDigest,
} from "@agarose/solver/cooperation";
import * as v from "valibot";
import { problemOf } from "../runtime/variables.ts";

/** A digest of 5,000 objects and 500 keys is half as large. */
export const MESSAGE_BYTES_MAX = 1024 * 1024;
/** Popular keys in a message. */
export const POPULAR_MAX = 500;
/** Statements in a message. */
export const STATEMENTS_MAX = 5_000;
const PLACES_MAX = 256;
const MS_MAX = 600_000;
/** Distinct chunk indices of a code. */
const CHUNK_INDICES = 256;
const REQUESTS_MAX = 1e9;
/** A quarter of a message's bytes, because a character of a key may take four. */
const KEY_CHARACTERS_MAX = 64 * 1024;

/** Returns as much of a period's message as one may hold. A shortened digest does not claim to be complete. */
export function boundedDigest(digest: CacheMessage): CacheMessage {
  if (digest.statements.length <= STATEMENTS_MAX) return digest;
  return { ...digest, isComplete: false, statements: digest.statements.slice(0, STATEMENTS_MAX) };
}

/** Returns the most popular keys that fit in a message. */
export function boundedKeys(popular: PopularityDigest["popular"]): PopularityDigest["popular"] {
  let free = KEY_CHARACTERS_MAX;
  return popular.slice(0, POPULAR_MAX).filter(([key]) => (free -= key.length) >= 0);
}

const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
const ms = v.pipe(v.number(), v.minValue(0), v.maxValue(MS_MAX));
const places = v.pipe(
  v.array(
    v.object({ name: v.string(), meanMs: ms, sdMs: ms, msPerByte: v.optional(v.number(), 0), down: v.boolean() }),
  ),
  v.maxLength(PLACES_MAX),
);
const messageSchema = v.object({
  to: v.string(),
  turn: count,
  configuration: count,
  cache: v.pipe(
    cacheMessageSchema,
    v.check(({ statements }) => statements.length <= STATEMENTS_MAX, `has more than ${STATEMENTS_MAX} statements`),
    v.check(
      ({ statements }) => statements.every(({ chunks }) => (chunks.at(-1) ?? 0) < CHUNK_INDICES),
      `has a chunk beyond ${CHUNK_INDICES - 1}`,
    ),
  ),
  base: v.optional(v.pipe(v.number(), v.finite())),
  lacksDigest: v.optional(v.boolean()),
  isNear: v.optional(v.boolean()),
  popularity: v.optional(
    v.object({
      popular: v.pipe(
        v.array(v.strictTuple([v.string(), v.pipe(v.number(), v.minValue(0), v.maxValue(REQUESTS_MAX))])),
        v.maxLength(POPULAR_MAX),
      ),
      regions: places,
      peers: places,
    }),
  ),
});

/** Returns the text as a message. Throws REQUEST_INVALID, which names the wrong field. */
export function parsePeerMessage(text: string): PeerMessage {
  const result = v.safeParse(v.pipe(v.string(), v.parseJson(undefined, "is not JSON"), messageSchema), text);
  if (result.success) return result.output;
  const problem = problemOf(result.issues[0]);
  throw new AgaroseError("REQUEST_INVALID", `message of a peer ${problem}: nothing of it is accepted`);
}

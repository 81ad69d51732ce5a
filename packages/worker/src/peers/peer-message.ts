/**
 * What PoPs tell each other: what they hold (C2P, ICDCN'15, section 3.2), and once a period what is asked for at them and how
 * far they are from everything else. Pure.
 */
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { parseCacheMessage, type CacheMessage } from "@agarose/solver";
import type { RegionEstimate } from "../state/configuration.ts";

export interface PeerMessage {
  /** Names of PoPs; the sender is `cache.node`. */
  readonly to: string;
  /** The sender's ticket (`turns.ts`). */
  readonly turn: number;
  /** Number of the configuration that the sender last published. */
  readonly configuration: number;
  /** Versions and their chunks; `isComplete` in the digest of each period. */
  readonly cache: CacheMessage;
  /** With a digest. */
  readonly outlook?: Outlook | undefined;
}

/** How the world looks from a PoP. */
export interface Outlook {
  /** Requests per period of the most popular keys. */
  readonly popular: readonly (readonly [key: string, requests: number])[];
  readonly regions: readonly RegionEstimate[];
  /** Its peers, as sources of chunks. */
  readonly peers: readonly RegionEstimate[];
}

/** A digest of 5,000 objects and 500 keys is half of it. */
export const MESSAGE_BYTES_MAX = 1024 * 1024;
export const POPULAR_MAX = 500;
export const STATEMENTS_MAX = 5_000;
const PLACES_MAX = 256;
const MS_MAX = 600_000;
/** Distinct chunk indices there are. */
const CHUNKS_MAX = 256;
const REQUESTS_MAX = 1e9;
/** A quarter of what a message may have, as a key may take four bytes a character. */
const KEY_CHARACTERS_MAX = 64 * 1024;

/** As much of a digest as a message may hold; then it does not say that this is all. */
export function boundedDigest(digest: CacheMessage): CacheMessage {
  if (digest.statements.length <= STATEMENTS_MAX) return digest;
  return { ...digest, isComplete: false, statements: digest.statements.slice(0, STATEMENTS_MAX) };
}

/** The most popular keys that fit in a message. */
export function boundedKeys(popular: Outlook["popular"]): Outlook["popular"] {
  let free = KEY_CHARACTERS_MAX;
  return popular.slice(0, POPULAR_MAX).filter(([key]) => (free -= key.length) >= 0);
}

/** The text as a message. Throws REQUEST_INVALID, saying which field is wrong. */
export function parsePeerMessage(text: string): PeerMessage {
  let json: Record<keyof PeerMessage, unknown>;
  try {
    json = JSON.parse(text) as Record<keyof PeerMessage, unknown>;
  } catch (error) {
    throw invalid("is not JSON", error);
  }
  if (typeof json !== "object" || json === null) throw invalid("is not an object");
  const { to, turn, configuration, cache, outlook } = json;
  if (typeof to !== "string") throw invalid("has no name of its receiver");
  if (!isCount(turn)) throw invalid(`has turn ${String(turn)}: a whole number is expected`);
  if (!isCount(configuration)) throw invalid("has no number of a configuration");
  return {
    to,
    turn,
    configuration,
    cache: parseCache(cache),
    ...(outlook === undefined ? {} : { outlook: parseOutlook(outlook) }),
  };
}

function parseCache(input: unknown): CacheMessage {
  let cache: CacheMessage;
  try {
    cache = parseCacheMessage(input);
  } catch (error) {
    throw toAgaroseError(error);
  }
  const { statements } = cache;
  if (statements.length > STATEMENTS_MAX) {
    throw invalid(`has ${statements.length} statements: at most ${STATEMENTS_MAX} are taken`);
  }
  const beyond = statements.find(({ chunks }) => (chunks.at(-1) ?? 0) >= CHUNKS_MAX);
  if (beyond) throw invalid(`has chunk ${beyond.chunks.at(-1)}: there are ${CHUNKS_MAX}`);
  return cache;
}

function parseOutlook(input: unknown): Outlook {
  const { popular, regions, peers } = (input ?? {}) as Record<keyof Outlook, unknown>;
  if (!Array.isArray(popular) || popular.length > POPULAR_MAX || !popular.every(isPopular)) {
    throw invalid(`has no list of at most ${POPULAR_MAX} popular keys, each with its requests`);
  }
  return { popular, regions: parsePlaces(regions, "regions"), peers: parsePlaces(peers, "peers") };
}

function parsePlaces(input: unknown, what: string): RegionEstimate[] {
  if (!Array.isArray(input) || input.length > PLACES_MAX || !input.every(isPlace)) {
    throw invalid(`has no list of at most ${PLACES_MAX} ${what} with their latencies`);
  }
  return input.map(({ name, meanMs, sdMs, msPerByte = 0, down }) => ({ name, meanMs, sdMs, msPerByte, down }));
}

function isPlace(place: RegionEstimate | null): place is RegionEstimate {
  return typeof place?.name === "string" && isMs(place.meanMs) && isMs(place.sdMs) && typeof place.down === "boolean";
}

function isPopular(entry: unknown): entry is [string, number] {
  if (!Array.isArray(entry) || entry.length !== 2) return false;
  const [key, requests] = entry as unknown[];
  return typeof key === "string" && isWithin(requests, REQUESTS_MAX);
}

function isMs(ms: unknown): ms is number {
  return isWithin(ms, MS_MAX);
}

function isWithin(value: unknown, max: number): value is number {
  return typeof value === "number" && value >= 0 && value <= max;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function invalid(problem: string, cause?: unknown): AgaroseError {
  return new AgaroseError("REQUEST_INVALID", `message of a peer ${problem}: nothing of it is taken`, {}, cause);
}

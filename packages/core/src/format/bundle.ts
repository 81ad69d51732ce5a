/**
 * The bundle: one response that carries a read plan and the chunks a PoP has cached (docs/reference/format.md,
 * "Bundle").
 *
 * A bundle is a sequence of frames. A frame is 12 bytes of header (type u8, format u8 = 1, chunk u16, stripe u32,
 * length u32, little-endian) and `length` bytes of payload. The plan comes first, then chunks and misses in stripe
 * order, then the end; a bundle without its end frame is truncated. A Workers KV value is a sequence of chunk frames,
 * so that a PoP passes it on as it is.
 */
import { AgaroseError, HAS_MESSAGES } from "../errors.ts";
import { HAS_ENCRYPTION } from "../features.ts";
import { areTexts, decodeUtf8, isCount, isListOf, isText } from "./shape.ts";
import { concat } from "./hash-tree.ts";
import { checkManifest, CHUNKS_MAX, STRIPE_BYTES_MAX, type ExpectedManifest, type Manifest } from "./manifest/index.ts";

/** The media type of a bundle. */
export const BUNDLE_CONTENT_TYPE = "application/vnd.agarose.bundle";
/** Length of a frame's header. */
export const FRAME_HEADER_BYTES = 12;
const FRAME_FORMAT = 1;
/** The largest payload: a chunk of a (1, m) code. A plan, with a manifest of at most 64 KiB, is smaller. */
const PAYLOAD_BYTES_MAX = STRIPE_BYTES_MAX;

const FRAME_TYPES = ["plan", "chunk", "miss", "end"] as const;

/** One frame of a bundle. */
export interface Frame {
  readonly type: (typeof FRAME_TYPES)[number];
  readonly stripe: number;
  readonly chunk: number;
  readonly payload: Uint8Array;
}

/** The message of a PoP before the first chunk: how to read the object from here. */
export interface Plan {
  readonly pop: string;
  /** Number of the PoP's configuration. It grows with each period. */
  readonly epoch: number;
  readonly version: string;
  /** Absent if the client named this version in its request. */
  readonly manifest?: Manifest;
  /** Chunks that this PoP sends for every stripe asked for, functional ones (index n and above) included. */
  readonly cached: readonly number[];
  /** Those of `cached` that the PoP may have forgotten: then a `miss` takes the chunk's place. */
  readonly probable?: readonly number[];
  /** May be empty for an inline object, of which nothing is read from a region. */
  readonly regions: readonly PlanRegion[];
  /** Other PoPs that hold chunks of the object. */
  readonly peers?: readonly PlanPeer[];
  /** How many requests beyond k the PoP advises. */
  readonly delta: number;
  /** Base64 of the 32 bytes of an encrypted object's data key. Only a plan that is `private` has it. */
  readonly dataKey?: string;
  /** Whether the read needed a token or a signature: a client must not store such an object. */
  readonly private?: boolean;
}

/** Another PoP. A client reads from it if its own configuration has the address. */
export interface PlanPeer {
  readonly name: string;
  /** Chunks that it holds of every stripe. */
  readonly chunks: readonly number[];
  /** Mean latency, measured from the PoP. */
  readonly meanMs: number;
  readonly sdMs: number;
}

/** A region as the PoP sees it. */
export interface PlanRegion {
  readonly name: string;
  /** Public base URL of the bucket. */
  readonly url: string;
  readonly meanMs: number;
  readonly sdMs: number;
  /** Whether it is down: a client asks it last. */
  readonly down?: boolean;
  /** Presigned queries, which a private bucket needs. */
  readonly signed?: SignedChunks;
}

/** Presigned reads of one object's chunks in one region. */
export interface SignedChunks {
  /** How long they are valid, from the arrival of the plan. */
  readonly seconds: number;
  /** By chunk: the query of its URL, without `?`. */
  readonly queries: Readonly<Record<string, string>>;
}

/** Base64 of 32 bytes. */
const DATA_KEY = /^[A-Za-z0-9+/]{43}=$/;

/** Returns the header of a frame whose payload has `bytes` bytes. The payload follows it unchanged. */
export function encodeFrameHeader(type: Frame["type"], stripe: number, chunk: number, bytes: number): Uint8Array {
  const header = new Uint8Array(FRAME_HEADER_BYTES);
  const view = new DataView(header.buffer);
  header[0] = FRAME_TYPES.indexOf(type) + 1;
  header[1] = FRAME_FORMAT;
  view.setUint16(2, chunk, true);
  view.setUint32(4, stripe, true);
  view.setUint32(8, bytes, true);
  return header;
}

/** Returns a whole frame in one array. */
export function encodeFrame(type: Frame["type"], stripe: number, chunk: number, payload: Uint8Array): Uint8Array {
  const frame = new Uint8Array(FRAME_HEADER_BYTES + payload.length);
  frame.set(encodeFrameHeader(type, stripe, chunk, payload.length));
  frame.set(payload, FRAME_HEADER_BYTES);
  return frame;
}

/** JSON has no line break of its own unless somebody indents it. */
const LINE_BREAK = 10;

/**
 * Returns the frame of a plan. An inline object follows the JSON as raw bytes, because base64 is longer by a third.
 *
 * @param chunks the number of data chunks of which everything that was asked for follows, cached or not.
 * @param index the place of the key in the request, if that has several.
 */
export function encodePlan(plan: Plan, chunks = 0, index = 0): Uint8Array {
  const { manifest } = plan;
  const { inline } = manifest ?? {};
  const json = inline ? { ...plan, manifest: { ...manifest, inline: "" } } : plan;
  const line = new TextEncoder().encode(`${JSON.stringify(json)}\n`);
  return encodeFrame("plan", index, chunks, inline ? concat([line, inline]) : line);
}

/** A plan frame's payload, checked. Throws BUNDLE_INVALID, or what `checkManifest` throws. */
export async function parsePlan(payload: Uint8Array, expected: ExpectedManifest): Promise<Plan> {
  let plan: Plan & { readonly manifest?: { inline?: string | Uint8Array } };
  try {
    const end = payload.indexOf(LINE_BREAK);
    plan = JSON.parse(decodeUtf8(payload.subarray(0, end))) as Plan;
    if (plan.manifest?.inline === "") plan.manifest.inline = payload.slice(end + 1);
  } catch (error) {
    throw bundleError(HAS_MESSAGES && "has a plan that is not JSON", error);
  }
  const isSound =
    isText(plan?.pop) &&
    isText(plan.version) &&
    isCount(plan.epoch) &&
    isCount(plan.delta, CHUNKS_MAX) &&
    isFlag(plan.private) &&
    (!HAS_ENCRYPTION || plan.dataKey === undefined || isText(plan.dataKey, DATA_KEY)) &&
    areChunks(plan.cached) &&
    isListOf(plan.regions, isPlanRegion) &&
    (plan.manifest?.inline !== undefined || plan.regions.length > 0) &&
    isListOf(plan.peers ?? [], isPeer);
  if (!isSound) throw bundleError(HAS_MESSAGES && "has a plan with a field that is missing or out of range");
  if (plan.manifest === undefined) return plan;
  const manifest = await checkManifest(plan.manifest, expected);
  if (manifest.version === plan.version) return { ...plan, manifest };
  throw bundleError(
    HAS_MESSAGES && `has a plan of version ${plan.version} with a manifest of version ${manifest.version}`,
  );
}

/** Returns the frames in `bytes`, which must be whole frames: a KV value. Throws BUNDLE_INVALID. */
export function parseFrames(bytes: Uint8Array): Frame[] {
  const frames: Frame[] = [];
  let at = 0;
  while (at < bytes.length) {
    if (bytes.length - at < FRAME_HEADER_BYTES)
      throw bundleError(HAS_MESSAGES && `ends inside a frame header, at byte ${bytes.length}`);
    const { frame, length } = parseFrameHeader(bytes.subarray(at, at + FRAME_HEADER_BYTES));
    const end = at + FRAME_HEADER_BYTES + length;
    if (end > bytes.length) throw bundleError(HAS_MESSAGES && `ends inside a frame: ${bytes.length} bytes of ${end}`);
    frames.push({ ...frame, payload: bytes.subarray(at + FRAME_HEADER_BYTES, end) });
    at = end;
  }
  return frames;
}

/** The frame that `header` (FRAME_HEADER_BYTES bytes) begins, and the length of its payload. Throws BUNDLE_INVALID. */
export function parseFrameHeader(header: Uint8Array): { frame: Omit<Frame, "payload">; length: number } {
  const view = new DataView(header.buffer, header.byteOffset, FRAME_HEADER_BYTES);
  const type = FRAME_TYPES[header[0]! - 1];
  const length = view.getUint32(8, true);
  if (!type || header[1] !== FRAME_FORMAT)
    throw bundleError(HAS_MESSAGES && `has a frame of type ${header[0]} and format ${header[1]}`);
  if (length > PAYLOAD_BYTES_MAX)
    throw bundleError(HAS_MESSAGES && `has a frame of ${length} bytes, at most ${PAYLOAD_BYTES_MAX} may be`);
  return { frame: { type, chunk: view.getUint16(2, true), stripe: view.getUint32(4, true) }, length };
}

/** Whether `region` has all that a plan must say of a region. */
export function isPlanRegion(region: PlanRegion): boolean {
  return (
    isEstimated(region) &&
    isText(region.url, /^https?:\/\//) &&
    isFlag(region.down) &&
    (region.signed === undefined || isSigned(region.signed))
  );
}

function isSigned(signed: SignedChunks | null): boolean {
  return isDuration(signed?.seconds) && areTexts(Object.values(signed!.queries ?? {}));
}

function isPeer(peer: PlanPeer): boolean {
  return isEstimated(peer) && areChunks(peer.chunks);
}

function isEstimated(source: PlanRegion | PlanPeer | null): boolean {
  return isText(source?.name) && isDuration(source.meanMs) && isDuration(source.sdMs);
}

function areChunks(chunks: unknown): boolean {
  return isListOf(chunks, (chunk) => isCount(chunk, CHUNKS_MAX - 1));
}

function isFlag(value: unknown): boolean {
  return value === undefined || typeof value === "boolean";
}

function isDuration(ms: unknown): boolean {
  return Number.isFinite(ms) && (ms as number) >= 0;
}

/** The error that refuses a bundle: BUNDLE_INVALID with the message `bundle <problem>: it is discarded`. */
export function bundleError(problem: string | false, cause?: unknown): AgaroseError {
  return new AgaroseError("BUNDLE_INVALID", HAS_MESSAGES && `bundle ${problem}: it is discarded`, {}, cause);
}

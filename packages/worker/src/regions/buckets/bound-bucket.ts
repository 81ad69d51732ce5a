/**
 * R2 buckets that are bound to the Worker. Reads through a binding need neither a public bucket nor a signature, and do
 * not leave Cloudflare's network.
 */
import { AgaroseError } from "@agarose/core";
import type { ConfiguredRegion } from "../region-settings.ts";
import { isBelow } from "./bucket-signer.ts";

/** The part of an R2 binding that reads use. */
export type BoundBucket = Pick<R2Bucket, "get" | "head">;

/** R2's error for a range that begins at or after the end of the object. */
const RANGE_UNSATISFIABLE = /\(10039\)/;

/**
 * Returns the bindings of `regions`, by the base URL that the PoP knows each bucket by. Throws CONFIG_INVALID for a
 * region whose `binding` the Worker lacks.
 */
export function boundBuckets(regions: readonly ConfiguredRegion[], env: object): ReadonlyMap<string, BoundBucket> {
  const bindings = env as Readonly<Record<string, BoundBucket | undefined>>;
  const bound = new Map<string, BoundBucket>();
  for (const { name, popUrl, binding } of regions) {
    if (binding === undefined) continue;
    const bucket = bindings[binding];
    if (typeof bucket?.get !== "function") {
      throw new AgaroseError(
        "CONFIG_INVALID",
        `REGIONS reads region ${name} through the R2 binding ${binding}, which this PoP lacks: add it to r2_buckets in ` +
          `wrangler.toml, or remove "binding" from the region`,
        { region: name, binding },
      );
    }
    bound.set(popUrl, bucket);
  }
  return bound;
}

/** Reads `url` from the bucket that it is below, or returns undefined where that bucket is not bound. */
export function fetchBound(
  url: string,
  init: RequestInit,
  bound: ReadonlyMap<string, BoundBucket>,
): Promise<Response> | undefined {
  for (const [base, bucket] of bound) if (isBelow(url, base)) return readBucket(bucket, nameOf(url, base), init);
  return undefined;
}

/**
 * Reads object `name` with the method, range and conditions of `init`. The answers are those of R2's S3 endpoint: 200,
 * 206, 304, 404, 412, 416. Rejects with R2's error, and with the signal's reason once that aborts.
 */
export async function readBucket(bucket: BoundBucket, name: string, init: RequestInit): Promise<Response> {
  const signal = init.signal ?? undefined;
  signal?.throwIfAborted();
  const headers = new Headers(init.headers);
  const isHead = init.method === "HEAD";
  const reading = isHead ? bucket.head(name) : bucket.get(name, { range: headers, onlyIf: headers });
  // The binding takes no signal: what arrives after an abort is cancelled.
  const found = await untilAborted(reading, signal, (late) => void bodyOf(late)?.cancel()).catch((error: unknown) => {
    if (RANGE_UNSATISFIABLE.test(String(error))) return "unsatisfiable" as const;
    throw error;
  });
  if (found === "unsatisfiable") return new Response(null, { status: 416 });
  if (!found) return new Response(null, { status: 404 });
  const [, first] = /^bytes=(\d+)-/.exec(headers.get("range") ?? "") ?? [];
  if (first !== undefined && Number(first) >= found.size) {
    // The local R2 ignores such a range.
    await bodyOf(found)?.cancel();
    return new Response(null, { status: 416 });
  }
  const answer = new Headers({ etag: found.httpEtag, "last-modified": found.uploaded.toUTCString() });
  found.writeHttpMetadata(answer);
  const body = bodyOf(found);
  if (!body && !isHead)
    return new Response(null, { status: headers.has("if-none-match") ? 304 : 412, headers: answer });
  const part = headers.has("range") && found.range ? partOf(found.range, found.size) : undefined;
  const { start, end } = part ?? { start: 0, end: found.size };
  answer.set("content-length", String(end - start));
  if (part) answer.set("content-range", `bytes ${start}-${end - 1}/${found.size}`);
  return new Response(body ? withSignal(body, signal) : null, { status: part ? 206 : 200, headers: answer });
}

/** The name of an object, as in `objectUrl`. */
function nameOf(url: string, base: string): string {
  const path = url.slice(base.replace(/\/$/, "").length + 1).replace(/\?.*$/s, "");
  return path.split("/").map(decodeURIComponent).join("/");
}

function bodyOf(found: R2Object | R2ObjectBody | null): ReadableStream<Uint8Array> | undefined {
  return found && "body" in found ? (found.body as ReadableStream<Uint8Array> | undefined) : undefined;
}

/** The bytes that `range` means of an object of `size` bytes. */
function partOf(range: R2Range, size: number): { readonly start: number; readonly end: number } {
  if ("suffix" in range) return { start: Math.max(0, size - range.suffix), end: size };
  const { offset = 0, length = size - offset } = range;
  return { start: offset, end: Math.min(size, offset + length) };
}

/** Settles as `promise`, or rejects when `signal` aborts before it; `onLate` then gets what comes after all. */
function untilAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined, onLate: (late: T) => void): Promise<T> {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const leave = (): void => {
      reject(signal.reason);
      promise.then(onLate, () => {});
    };
    signal.addEventListener("abort", leave, { once: true });
    promise.finally(() => signal.removeEventListener("abort", leave)).then(resolve, reject);
  });
}

function withSignal(body: ReadableStream<Uint8Array>, signal: AbortSignal | undefined): ReadableStream<Uint8Array> {
  return signal ? body.pipeThrough(new TransformStream<Uint8Array, Uint8Array>(), { signal }) : body;
}

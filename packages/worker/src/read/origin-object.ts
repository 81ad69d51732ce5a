/**
 * Plain objects of the origin, for keys of which the regions know nothing. A server of files may lie, change and hang,
 * so nothing of an object is sent before it has a length and a strong ETag, and nothing of a small one before all of it
 * has come. Small ones are kept for as long as a manifest may be: in the Cache API, or in memory where there is none.
 */
import { AgaroseError, toAgaroseError, type FetchInit } from "@agarose/core";
import { streamOf } from "@agarose/core/async";
import { encodeKey, mayKeepHeader, objectUrl, type Manifest } from "@agarose/core/format";
import type { ByteRange } from "@agarose/core/http";
import { readChecked } from "@agarose/core/sources";
import { withTimeout } from "../runtime/async.ts";
import type { Invocation } from "../runtime/invocation.ts";
import type { Isolate } from "../runtime/isolate.ts";

/** The origin's object of a key. */
interface OriginObject {
  /** Its length, type, headers and times, as if it were an object of the regions. */
  readonly shown: Manifest;
  /** The bytes of a range. The body errors where the origin does not send exactly these. */
  open(range: ByteRange): Promise<ReadableStream<Uint8Array>>;
}

/** Objects of at most this length are read whole, and kept in the Cache API. */
const CACHED_BYTES_MAX = 4 * 1024 * 1024;
/** A copy in memory takes about so much beside its bytes and its key: many files of a site are tiny. */
const ENTRY_BYTES = 500;
/** How long the origin has for the head of an answer, all of a small object, and the next part of a large one. */
const PATIENCE_MS = 30_000;

/** The kept facts of an object besides its bytes. */
type Head = Pick<Manifest, "bytes" | "contentType" | "headers" | "version" | "modified">;

/**
 * The object of the origin; undefined where this PoP has no origin, or that has no such object.
 *
 * @param isHead whether only its description is wanted.
 * @throws SOURCE_FAILED where the origin does not answer, or not as it must, and BUSY without memory for it.
 */
async function originObject(
  key: string,
  isHead: boolean,
  client: { readonly signal: AbortSignal; readonly client: string | undefined },
  invocation: Invocation,
): Promise<OriginObject | undefined> {
  const { settings, frontCache, originCopies, memory, clock } = invocation.isolate;
  if (settings.origin === undefined) return undefined;
  const url = objectUrl(settings.origin, key);
  // A server of files cannot have a key that a URL cannot name, such as a segment `.`.
  if (new URL(url).href !== url) return undefined;
  invocation.subrequests.spend(2);
  const own = originCopies.get(key);
  const isFresh = own !== undefined && clock.now() < own.untilMs;
  const kept = unpacked(isFresh ? own.copy : await frontCache.get(cacheName(key)));
  if (kept) return inMemory(key, kept.head, kept.content);
  const stop = new AbortController();
  const signal = AbortSignal.any([client.signal, stop.signal]);
  const within = <T>(work: Promise<T>): Promise<T> =>
    withTimeout(work, PATIENCE_MS, clock, `reading ${JSON.stringify(key)} at the origin`).catch((cause: unknown) => {
      stop.abort();
      client.signal.throwIfAborted();
      throw toAgaroseError(cause, "SOURCE_FAILED");
    });
  const ask = (init: FetchInit): Promise<Response> =>
    within(
      invocation.fetch(url, {
        ...init,
        headers: { "accept-encoding": "identity", ...init.headers },
        signal,
      }) as Promise<Response>,
    );
  const response = await ask({ method: isHead ? "HEAD" : "GET" });
  if (response.status === 404 || response.status === 410) {
    await response.body?.cancel();
    invocation.noteMiss();
    return undefined;
  }
  const head = await within((async () => headOf(key, response))());
  const { bytes, version } = head;
  if (!isHead && bytes <= CACHED_BYTES_MAX) {
    const lease = await memory.acquire({ version, bytes: 2 * bytes, client: client.client }, signal);
    try {
      const content = await within(contentOf(key, response, bytes));
      const mayCache = !/\b(no-store|private)\b/i.test(head.headers["cache-control"] ?? "");
      if (mayCache) {
        const { manifestTtlSeconds: seconds } = settings;
        const copy = packed(head, content);
        const entryBytes = copy.length + key.length + ENTRY_BYTES;
        originCopies.set(key, { bytes: entryBytes, copy, untilMs: clock.now() + seconds * 1000 });
        invocation.waitUntil(frontCache.put(cacheName(key), copy, seconds));
      }
      return inMemory(key, head, content);
    } finally {
      lease.release();
    }
  }
  return {
    shown: shownOf(key, head),
    async open({ start, end }) {
      if (start === 0 && end === bytes) return exactly(response.body!, bytes, key, within);
      await response.body?.cancel();
      const headers = { range: `bytes=${start}-${end - 1}`, "if-match": `"${version}"` };
      const part = await ask({ headers });
      const isSame = part.headers.get("etag") === `"${version}"`;
      if (part.status === 206 && isSame && part.headers.get("content-range") === `bytes ${start}-${end - 1}/${bytes}`) {
        return exactly(part.body!, end - start, key, within);
      }
      await part.body?.cancel();
      throw failed(key, `answered ${part.status} to a range of an object that it has just announced`);
    },
  };
}

/**
 * `originObject` of a key of which the regions know nothing, by the error that its look-up was rejected with. Rejects
 * with that error where they know it, also as removed, or where the origin does not have it, either.
 */
export async function insteadOfUnknown(
  error: unknown,
  ...asked: Parameters<typeof originObject>
): Promise<OriginObject> {
  const { code, details } = toAgaroseError(error);
  const found = code === "OBJECT_NOT_FOUND" && !("generation" in details) ? await originObject(...asked) : undefined;
  if (!found) throw error;
  return found;
}

/** Drops the copies of matching keys from memory, and of `keys` from the Cache API of this data center. */
export async function forgetOriginObjects(
  matches: (key: string) => boolean,
  keys: readonly string[],
  { settings, frontCache, originCopies }: Pick<Isolate, "settings" | "frontCache" | "originCopies">,
): Promise<void> {
  for (const key of originCopies.names().filter(matches)) originCopies.delete(key);
  if (settings.origin !== undefined) await Promise.all(keys.map((key) => frontCache.delete(cacheName(key))));
}

function cacheName(key: string): string {
  return `origin/${encodeKey(key)}`;
}

async function contentOf(key: string, response: Response, bytes: number): Promise<Uint8Array> {
  const content = await readChecked(response, (length) => {
    if (length > bytes) throw failed(key, `sends more than the ${bytes} bytes that it announced`);
  });
  if (content.length < bytes) throw failed(key, `sent ${content.length} of ${bytes} bytes`);
  return content;
}

function headOf(key: string, { status, headers }: Response): Head {
  if (status !== 200) throw failed(key, `answered ${status}`);
  const bytes = Number(headers.get("content-length") ?? "none");
  if (!Number.isSafeInteger(bytes)) throw failed(key, "sends no length");
  if (headers.has("content-encoding")) throw failed(key, `codes the content as ${headers.get("content-encoding")}`);
  const version = /^"([\x21\x23-\x7e]+)"$/.exec(headers.get("etag") ?? "")?.[1];
  if (version === undefined) throw failed(key, "has no strong ETag, by which it could be known to be the same");
  const kept = [...headers].filter(([name]) => mayKeepHeader(name));
  return {
    bytes,
    version,
    contentType: headers.get("content-type") ?? "application/octet-stream",
    headers: Object.fromEntries(kept),
    modified: new Date(Date.parse(headers.get("last-modified") ?? "") || 0).toISOString(),
  };
}

function shownOf(key: string, head: Head): Manifest {
  return { key, ...head } as Manifest;
}

function inMemory(key: string, head: Head, content: Uint8Array): OriginObject {
  const bodyOf = ({ start, end }: ByteRange): ReadableStream<Uint8Array> =>
    new Blob([content.subarray(start, end) as Uint8Array<ArrayBuffer>]).stream();
  return { shown: shownOf(key, head), open: (range) => Promise.resolve(bodyOf(range)) };
}

/**
 * `body`, if it has exactly so many bytes. It errors otherwise, so that the answer is cut off and never ends early.
 *
 * @param within limits how long the origin may be silent; what the client takes between two parts does not count.
 */
function exactly(
  body: ReadableStream<Uint8Array>,
  bytes: number,
  key: string,
  within: <T>(work: Promise<T>) => Promise<T>,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let left = bytes;
  const next = async (): Promise<ReadableStreamReadResult<Uint8Array>> => {
    const result = await within(reader.read());
    left -= result.value?.length ?? 0;
    if (left < 0 || (result.done && left > 0))
      throw failed(key, `sent other than the ${bytes} bytes that it announced`);
    return result;
  };
  return streamOf(next, (reason) => reader.cancel(reason));
}

/** The length of the head as JSON in four bytes, the head, and the content. */
function packed(head: Head, content: Uint8Array): Uint8Array {
  const text = new TextEncoder().encode(JSON.stringify(head));
  const all = new Uint8Array(4 + text.length + content.length);
  new DataView(all.buffer).setUint32(0, text.length);
  all.set(text, 4);
  all.set(content, 4 + text.length);
  return all;
}

function unpacked(all: Uint8Array | undefined): { readonly head: Head; readonly content: Uint8Array } | undefined {
  if (!all) return undefined;
  const start = 4 + new DataView(all.buffer, all.byteOffset).getUint32(0);
  const head = JSON.parse(new TextDecoder().decode(all.subarray(4, start))) as Head;
  const content = all.subarray(start);
  return content.length === head.bytes ? { head, content } : undefined;
}

function failed(key: string, problem: string): AgaroseError {
  const message = `the origin ${problem} for ${JSON.stringify(key)}: look at the object there`;
  return new AgaroseError("SOURCE_FAILED", message, { key });
}

/**
 * Plain objects of the bucket that a deployment begins with. A bucket may change, lie and hang, so nothing of an object
 * counts before all of it has come, with the length and the ETag that were listed.
 */
import { createHash } from "node:crypto";
import { open, rm } from "node:fs/promises";
import { AgaroseError, toAgaroseError, type FetchedResponse } from "@agarose/core";
import { mayKeepHeader } from "@agarose/core/format";
import { S3Store } from "../buckets/s3-store.ts";
import type { Origin } from "./http-origin.ts";
import type { ListedObject } from "../buckets/store.ts";
import { replacedMeanwhile } from "../commit/commit.ts";
import { tempError } from "../files/file-errors.ts";
import { writeAll } from "../files/whole-file.ts";
import { headerOfEtag, headerText, type Described } from "../upload/object-headers.ts";

/** By which `agarose release` knows what it has written: the SHA-256 of the content, in hex. */
export const SHA256_MARK = "x-amz-meta-agarose-sha256";

interface CopyHow {
  readonly signal: AbortSignal;
  /** Waits until so many bytes more may come. */
  readonly pass: (bytes: number) => Promise<void>;
}

/**
 * The entry of a name in the origin's listing now, or what a server of files says of it; undefined if there is none.
 * Throws as `Store.list` and `HttpOrigin.look` do.
 */
export async function listedNow(name: string, origin: Origin, signal: AbortSignal): Promise<ListedObject | undefined> {
  if (!origin.list) return origin.look(name, signal);
  // It is the first of those that begin with it.
  for await (const object of origin.list(name, signal, undefined, 1)) return object.name === name ? object : undefined;
  return undefined;
}

/** Throws as `copyOfOrigin` does where the origin has an object other than the listed one by now, or none. */
export async function requireUnchanged(listed: ListedObject, origin: Origin, signal: AbortSignal): Promise<void> {
  const now = await origin.look(listed.name, signal);
  if (!now) throw absent(listed);
  if (now.bytes !== listed.bytes || isOther(now.etag, listed)) throw changed(listed);
}

/** A store that says no ETag does not say that it is another. */
function isOther(etag: string | null | undefined, listed: ListedObject): boolean {
  return listed.etag !== undefined && typeof etag === "string" && etag !== listed.etag;
}

/**
 * Writes a listed object into a new file at `path`, and returns its content type and headers. It leaves no file when it
 * throws.
 *
 * @throws REPLACED_MEANWHILE where the origin has another object by now, OBJECT_NOT_FOUND where it has none,
 *   SOURCE_FAILED where it does not answer, ends short or sends anything else, CREDENTIALS_REFUSED, and DISK_FULL.
 */
export async function copyOfOrigin(
  listed: ListedObject,
  path: string,
  origin: Origin,
  { signal, pass }: CopyHow,
): Promise<Described> {
  const left = new AbortController();
  const own = AbortSignal.any([signal, left.signal]);
  const file = await open(path, "wx", 0o600).catch((error: unknown) => {
    throw tempError(error);
  });
  try {
    const response = await origin.get(listed.name, { signal: own, ...(listed.etag && { ifMatch: listed.etag }) });
    checkHeaders(response, listed);
    const md5 = createHash("md5");
    let bytes = 0;
    for await (const part of response.body ?? []) {
      bytes += part.length;
      if (bytes > listed.bytes) break;
      md5.update(part);
      await writeAll(part, path, (rest) => file.write(rest));
      await pass(part.length);
    }
    if (bytes !== listed.bytes) {
      const sent = bytes > listed.bytes ? "more" : bytes;
      throw failed(listed, `sent ${sent} of ${listed.bytes} bytes`, { expected: listed.bytes, actual: bytes });
    }
    const etag = checkedEtag(md5.digest("hex"), response, origin instanceof S3Store ? listed : { ...listed, etag: "" });
    return describedBy(response, etag);
  } catch (error) {
    left.abort();
    await rm(path, { force: true });
    signal.throwIfAborted();
    throw toAgaroseError(error, "SOURCE_FAILED");
  } finally {
    await file.close();
  }
}

function checkHeaders({ status, headers }: FetchedResponse, listed: ListedObject): void {
  if (status === 412) throw changed(listed);
  if (status === 404) throw absent(listed);
  if (status !== 200) throw failed(listed, `answered ${status}`, { status });
  if (isOther(headers.get("etag"), listed)) throw changed(listed);
  const length = headers.get("content-length");
  if (length === null || Number(length) === listed.bytes) return;
  throw failed(listed, `lists ${listed.bytes} bytes and sends ${length}`, { expected: listed.bytes, actual: length });
}

const ETAG = /^"?([\da-f]{32})(-\d+)?"?$/;

/**
 * The ETag of what was put at once is its MD5, unless the store has encrypted it by keys of its user. Returns the one
 * that the object may keep.
 */
function checkedEtag(md5: string, { headers }: FetchedResponse, { etag = "", ...listed }: ListedObject): string {
  const [, expected, parts] = ETAG.exec(etag) ?? [];
  if (parts !== undefined || expected === md5) return etag;
  const encryption = headers.get("x-amz-server-side-encryption") ?? "AES256";
  if (expected === undefined || encryption !== "AES256") return md5;
  throw failed(listed, `sent bytes with the MD5 ${md5}, not ${expected}`, { expected, actual: md5 });
}

function describedBy({ headers }: Awaited<ReturnType<S3Store["get"]>>, etag: string): Described {
  const kept = [...headers].filter(([name]) => mayKeepHeader(name) && name !== SHA256_MARK);
  return {
    contentType: headerText(headers.get("content-type") ?? "application/octet-stream"),
    headers: { ...headerOfEtag(etag), ...Object.fromEntries(kept.map(([name, value]) => [name, headerText(value)])) },
  };
}

function absent({ name: key }: ListedObject): AgaroseError {
  return new AgaroseError("OBJECT_NOT_FOUND", `the origin answered 404 for ${JSON.stringify(key)}`, { key });
}

function changed({ name }: ListedObject): AgaroseError {
  return replacedMeanwhile(name, {}, "the origin has another object by now");
}

function failed({ name }: ListedObject, problem: string, details: Record<string, unknown>): AgaroseError {
  const message = `the origin ${problem} for ${JSON.stringify(name)}: run the command again, or look at the object`;
  return new AgaroseError("SOURCE_FAILED", message, { key: name, ...details });
}

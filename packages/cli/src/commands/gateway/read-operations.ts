/** GetObject and HeadObject, with Range and conditions. */
import { hash } from "node:crypto";
import { once } from "node:events";
import {
  algorithmOfHeader,
  answeredHeaders,
  checksumHeader,
  notModified,
  notModifiedHeaders,
  partAsked,
  rangeAsked,
  S3Error,
  type Validators,
} from "@agarose/s3-server";
import { contentRange, parseRange, toAgaroseError, type ByteRange, type Manifest } from "@agarose/core";
import { shownManifest } from "@agarose/storage/encryption/opened";
import { EarlyRead, getObject } from "@agarose/storage/objects/get-object";
import { readManifest } from "@agarose/storage/objects/manifests";
import type { Exchange } from "./exchange.ts";
import { isImpossibleKey } from "./s3-error-of.ts";

/** Where an object keeps its ETag, in base64, as S3 spells the checksum. */
const MD5 = checksumHeader("MD5");

type Tagged = Pick<Manifest, "version"> & { readonly headers?: Manifest["headers"] };

/** Returns the ETag and time of an object. */
export function validatorsOf(manifest: Tagged & Pick<Manifest, "modified">): Validators {
  return { etag: etagOf(manifest), modifiedMs: Date.parse(manifest.modified) };
}

/**
 * Returns the ETag of an object, with its quotes: as in S3 the MD5 of the bytes, or that of the MD5 of the parts with
 * their number. Of what is encrypted, or another command has put, it is the version with the suffix of an upload in
 * parts, so that no client takes it for the MD5.
 */
export function etagOf({ version, headers = {} }: Tagged): string {
  const [md5, ...parts] = headers[MD5]?.split("-") ?? [];
  if (md5 === undefined) return `"${version}-1"`;
  return `"${[Buffer.from(md5, "base64").toString("hex"), ...parts].join("-")}"`;
}

/** Returns the header by which an object keeps the MD5 of its bytes, or of those of its parts, given in hex. */
export function keptMd5(md5s: readonly string[], isInParts: boolean): Record<string, string> {
  if (!isInParts) return { [MD5]: Buffer.from(md5s[0]!, "hex").toString("base64") };
  const all = hash("md5", Buffer.from(md5s.join(""), "hex"), "base64");
  return { [MD5]: `${all}-${md5s.length}` };
}

/** Without the MD5 of an object whose client has not asked for that checksum. */
function withoutOwnMd5(headers: Manifest["headers"]): Manifest["headers"] {
  const algorithms = Object.keys(headers).filter((name) => algorithmOfHeader(name) !== undefined);
  if (algorithms.length === 1 && headers["x-amz-checksum-type"] !== undefined) return headers;
  const { [MD5]: _md5, ...others } = headers;
  return others;
}

/** GetObject and HeadObject. A read that fails once bytes are sent cuts the connection before the last of them. */
export async function readObject(exchange: Exchange): Promise<void> {
  const early = new EarlyRead();
  try {
    await answer(exchange, early);
  } finally {
    early.stop();
  }
}

async function answer(exchange: Exchange, early: EarlyRead): Promise<void> {
  const { response, method } = exchange;
  const manifest = await currentManifest(exchange, early);
  const shown = await shownManifest(manifest, exchange.context.config);
  const validators = validatorsOf(manifest);
  const headers: Record<string, string> = {
    "accept-ranges": "bytes",
    etag: validators.etag,
    "last-modified": new Date(validators.modifiedMs).toUTCString(),
    ...answeredHeaders({ ...shown, headers: withoutOwnMd5(shown.headers) }, exchange),
  };
  if (notModified(validators, exchange.headers)) {
    response.writeHead(304, notModifiedHeaders(headers)).end();
    return;
  }
  const range = rangeOf(rangeAsked(validators, exchange.headers), shown.bytes);
  const part = partAsked(exchange, validators.etag);
  // No range can say that it is all of nothing.
  const sent = part && shown.bytes > 0 ? { start: 0, end: shown.bytes } : range;
  headers["content-length"] = String(sent ? sent.end - sent.start : shown.bytes);
  if (sent) headers["content-range"] = contentRange(sent, shown.bytes);
  const begin = () => response.writeHead(sent ? 206 : 200, { ...headers, ...part });
  if (method === "HEAD") begin().end();
  else await send(manifest, range, begin, early, exchange);
}

/** The manifest of the key. A key that no object can have is as absent as any other. */
async function currentManifest(exchange: Exchange, early: EarlyRead): Promise<Manifest> {
  const { key, context, left, nowMs, method, headers } = exchange;
  // A condition may make the answer a 304.
  const isPlain = method === "GET" && !("if-none-match" in headers) && !("if-modified-since" in headers);
  const onFirst = (first: Manifest): void => {
    const range = (): ByteRange | undefined => rangeOf(rangeAsked(validatorsOf(first), headers), first.bytes);
    early.begin(first, range, { ...context, signal: left });
  };
  try {
    return await readManifest(key, { ...context, signal: left, nowMs, ...(isPlain && { onFirst }) });
  } catch (error) {
    if (isImpossibleKey(error)) throw new S3Error("NoSuchKey", "The specified key does not exist.");
    throw error;
  }
}

/** Sends each part when the next one is there, and the last one when all are verified. */
async function send(
  manifest: Manifest,
  range: ByteRange | undefined,
  begin: () => unknown,
  early: EarlyRead,
  { response, context, left }: Exchange,
): Promise<void> {
  let last: Uint8Array | undefined;
  const write = async (part: Uint8Array): Promise<void> => {
    const before = last;
    last = part;
    if (before === undefined) return;
    if (!response.headersSent) begin();
    if (!response.write(before)) await once(response, "drain", { signal: left });
  };
  await getObject(manifest, range, write, { ...context, signal: left, early });
  if (!response.headersSent) begin();
  response.end(last);
}

function rangeOf(header: string | undefined, bytes: number): ByteRange | undefined {
  try {
    return parseRange(header, bytes);
  } catch (error) {
    throw new S3Error("InvalidRange", toAgaroseError(error).message, { "content-range": `bytes */${bytes}` });
  }
}

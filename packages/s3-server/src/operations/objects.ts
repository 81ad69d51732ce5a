/** GetObject, HeadObject, PutObject, DeleteObject and DeleteObjects. */
import { toAgaroseError } from "@agarose/core";
import { contentRange, parseRange, type ByteRange } from "@agarose/core/http";
import type { CurrentObject, WriteCondition } from "../backend.ts";
import { errorOf, inTurn, tellVersion, type Exchange } from "../exchange.ts";
import { checkKey } from "../rights.ts";
import { answeredHeaders, keptHeaders, notModifiedHeaders, type KeptHeaders } from "../wire/answered-object.ts";
import { sendEmpty, sendXmlOnceDone } from "../wire/answers.ts";
import { receiveText, type Received } from "../wire/body.ts";
import { WHOLE } from "../wire/checksum.ts";
import { checkPut, checkRemoval, notModified, rangeAsked, type Validators } from "../wire/conditions.ts";
import { DELETE_XML_BYTES_MAX, readDeletion, type Removal } from "../wire/deletion.ts";
import { partAsked } from "../wire/parts.ts";
import { S3Error } from "../wire/s3-error.ts";
import { element, xmlDocument } from "../wire/xml.ts";

const REMOVALS_AT_A_TIME = 16;

/** GetObject and HeadObject, with Range and conditions. */
export async function readObject(exchange: Exchange): Promise<void> {
  const { backend, method, headers, left } = exchange;
  // A condition may make the answer a 304, and where a part is says only the manifest that is confirmed.
  const isPart = exchange.query.has("partNumber");
  const isPlain = method === "GET" && !isPart && !("if-none-match" in headers) && !("if-modified-since" in headers);
  const rangeOf = (object: CurrentObject): ByteRange | undefined => rangeIn(object, exchange);
  const { bucket, key, query } = exchange;
  const name = { bucket, key, versionId: query.get("versionId") ?? undefined };
  const object = await backend.open(name, { left, ...(isPlain && { rangeOf }) });
  try {
    tellVersion(exchange, object);
    const answered: Record<string, string> = {
      "accept-ranges": "bytes",
      etag: object.etag,
      "last-modified": new Date(object.modifiedMs).toUTCString(),
      ...answeredHeaders(object, exchange),
    };
    if (notModified(object, headers)) {
      exchange.response.writeHead(304, notModifiedHeaders(answered)).end();
      return;
    }
    const part = partAsked(exchange, object);
    const range = part ? part.range : rangeIn(object, exchange);
    // No range can say that it is all of nothing.
    const sent = object.bytes > 0 ? range : undefined;
    const bytes = sent ? sent.end - sent.start : object.bytes;
    answered["content-length"] = String(bytes);
    if (sent && bytes > 0) answered["content-range"] = contentRange(sent, object.bytes);
    const begin = () => exchange.response.writeHead(sent ? 206 : 200, { ...answered, ...part?.headers });
    if (method === "HEAD" || bytes === 0) begin().end();
    else await object.send(sent, begin, exchange.response);
  } finally {
    await object.close();
  }
}

function rangeIn(object: CurrentObject, { headers }: Exchange): ByteRange | undefined {
  try {
    return parseRange(rangeAsked(object, headers), object.bytes);
  } catch (error) {
    throw new S3Error("InvalidRange", toAgaroseError(error).message, { "content-range": `bytes */${object.bytes}` });
  }
}

/** PutObject, with If-Match and If-None-Match. */
export async function putObject(exchange: Exchange): Promise<void> {
  sendEmpty(exchange, 200, await storeObject(exchange, exchange.request));
}

/**
 * Stores `request` as the object of the exchange, with its headers and conditions. A client that leaves once its body
 * is here does not end the put. Returns the headers of the answer.
 */
export async function storeObject(
  exchange: Exchange,
  request: Received["request"],
): Promise<Readonly<Record<string, string>>> {
  const { backend, bucket, key } = exchange;
  const onlyIf = writeConditionOf(exchange);
  backend.checkWrite(exchange, onlyIf);
  const { contentType, headers } = describedBy(exchange);
  const body = await backend.receive(bucket, { ...exchange, request });
  const checksums = { ...body.checksums, ...(Object.keys(body.checksums).length > 0 && WHOLE) };
  const object = { bucket, key, etag: body.md5, contentType, headers: { ...headers, ...checksums }, onlyIf };
  let stored: Validators;
  try {
    stored = await inTurn(exchange, key, () => backend.put(object, body));
  } catch (error) {
    await backend.discard(body);
    throw error;
  }
  tellVersion(exchange, stored);
  return { etag: stored.etag, ...checksums };
}

/** Returns the condition of a write; undefined for one that has none. */
export function writeConditionOf({ headers }: Exchange): WriteCondition | undefined {
  const isConditional = headers["if-match"] !== undefined || headers["if-none-match"] !== undefined;
  return isConditional ? (current) => checkPut(current, headers) : undefined;
}

/** Returns the type and the headers that the object keeps. Throws S3Error. */
export function describedBy(exchange: Exchange): KeptHeaders {
  const kept = keptHeaders(exchange);
  return exchange.backend.describe?.(kept) ?? kept;
}

/** DeleteObject, with its conditions. An object that is not there counts as deleted. */
export async function deleteObject(exchange: Exchange): Promise<void> {
  const { headers, key, query } = exchange;
  const versionId = query.get("versionId") ?? undefined;
  const conditions = {
    etag: headers["if-match"],
    modified: headers["x-amz-if-match-last-modified-time"],
    bytes: headers["x-amz-if-match-size"],
  };
  await remove({ key, versionId, ...conditions }, exchange);
  tellVersion(exchange, { versionId });
  sendEmpty(exchange, 204);
}

/** DeleteObjects. */
export async function deleteObjects(exchange: Exchange): Promise<void> {
  const { objects, isQuiet } = readDeletion(await receiveText(exchange, DELETE_XML_BYTES_MAX));
  await sendXmlOnceDone(exchange, deleted(objects, isQuiet, exchange), (cause) => errorOf(exchange, cause));
}

/** Removes some objects at a time, and answers in the order of the request. */
async function deleted(objects: readonly Removal[], isQuiet: boolean, exchange: Exchange): Promise<string> {
  const outcomes: string[] = [];
  const waiting = objects.entries();
  const work = async (): Promise<void> => {
    for (const [at, object] of waiting) outcomes[at] = await outcomeOf(object, isQuiet, exchange);
  };
  await Promise.all(Array.from({ length: REMOVALS_AT_A_TIME }, work));
  return xmlDocument("DeleteResult", outcomes.join(""));
}

async function outcomeOf(object: Removal, isQuiet: boolean, exchange: Exchange): Promise<string> {
  const { key, versionId } = object;
  const named = element("Key", key, "text") + (versionId === undefined ? "" : element("VersionId", versionId, "text"));
  try {
    checkKey(exchange.rights, key);
    await remove(object, exchange);
    return isQuiet ? "" : element("Deleted", named);
  } catch (cause) {
    const { code, message } = errorOf(exchange, cause);
    return element("Error", named + element("Code", code) + element("Message", message, "text"));
  }
}

/** Removes an object if it is as `conditions` say. Throws S3Error NotImplemented for one of several versions. */
async function remove({ key, versionId, ...conditions }: Removal, exchange: Exchange): Promise<void> {
  const { backend, bucket } = exchange;
  if (versionId !== undefined && !(versionId === "null" && backend.hasOneVersion?.({ bucket, key }))) {
    throw new S3Error("NotImplemented", "One version of an object cannot be deleted here.");
  }
  const isConditional = Object.values(conditions).some((condition) => condition !== undefined);
  const onlyIf = isConditional ? (current: CurrentObject) => checkRemoval(current, conditions) : undefined;
  await inTurn(exchange, key, () => backend.remove({ bucket, key }, onlyIf));
}

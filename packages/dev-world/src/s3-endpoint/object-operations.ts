/** GET, HEAD, PUT and DELETE of one object, and its multipart uploads. */
import type { FileHandle } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { contentRange, parseRange, toAgaroseError, type ByteRange } from "@agarose/core";
import { answeredHeaders, keptHeaders, notModifiedHeaders } from "@agarose/s3-server/wire/answered-object";
import { receiveBody, receiveText, type ReceivedBody } from "@agarose/s3-server/wire/body";
import type { ChecksumAlgorithm } from "@agarose/s3-server/wire/checksum";
import {
  checkCompletion,
  checkPartAlgorithm,
  namedParts,
  partAsked,
  partNumberOf,
  readCompletion,
  uploadChecksumOf,
} from "@agarose/s3-server/wire/completion";
import type { Exchange } from "./exchange.ts";
import { sendEmpty, sendXml } from "@agarose/s3-server/wire/answers";
import { checkPut, checkRemoval, notModified, rangeAsked } from "@agarose/s3-server/wire/conditions";
import * as lists from "@agarose/s3-server/wire/list";
import { readPart, type Upload } from "./multipart.ts";
import type { StoredObject } from "./object-store.ts";
import { S3Error } from "@agarose/s3-server/wire/s3-error";
import { element, xmlDocument } from "@agarose/s3-server/wire/xml";

const KEY_BYTES_MAX = 1024;
const COMPLETE_XML_BYTES_MAX = 2 * 1024 * 1024;
/** The endpoint reads a body up to this length at once and sends it in one write. */
const BUFFERED_BYTES_MAX = 1024 * 1024;

/** GetObject and HeadObject, with Range and conditional headers. */
export async function getObject(exchange: Exchange): Promise<void> {
  const { request, response, headers, store, bucket, key } = exchange;
  const { object, file } = await store.openBytes(bucket, key);
  try {
    const answered = answerHeaders(object, exchange);
    if (notModified(object, headers)) {
      response.writeHead(304, notModifiedHeaders(answered)).end();
      return;
    }
    const part = partAsked(exchange, object.etag);
    const all = { start: 0, end: object.bytes };
    // No range can say that it is all of nothing.
    const range = part && object.bytes > 0 ? all : rangeOf(rangeAsked(object, headers), object.bytes);
    const { start, end } = range ?? all;
    for (const [name, value] of Object.entries({ ...answered, ...part })) response.setHeader(name, value);
    response.setHeader("content-length", String(end - start));
    if (range) response.setHeader("content-range", contentRange(range, object.bytes));
    response.writeHead(range ? 206 : 200);
    if (request.method === "HEAD") response.end();
    else await sendBytes(exchange, file, { start, end });
  } finally {
    await file.close();
  }
}

/** PutObject, with If-Match and If-None-Match. */
export async function putObject(exchange: Exchange): Promise<void> {
  const { headers, bucket, key, store, locks } = exchange;
  checkKey(key);
  checkPut(store.find(bucket, key), headers);
  const kept = keptOf(exchange);
  const { name, body } = await receive(exchange);
  const checksums = { ...body.checksums, ...(Object.keys(body.checksums).length > 0 && WHOLE) };
  const object = {
    key,
    bytes: body.bytes,
    etag: `"${body.md5}"`,
    modifiedMs: exchange.nowMs(),
    headers: { ...kept, ...checksums },
    file: name,
  };
  await locks.run(`${bucket}/${key}`, () => commit(exchange, object));
  sendEmpty(exchange, 200, { etag: object.etag, ...checksums });
}

/** The checksum of a put is always of the whole object. */
const WHOLE = { "x-amz-checksum-type": "FULL_OBJECT" };

/** DeleteObject, with its conditions. */
export async function deleteObject(exchange: Exchange): Promise<void> {
  const { headers, bucket, key, store, locks } = exchange;
  await locks.run(`${bucket}/${key}`, async () => {
    const current = store.find(bucket, key);
    if (current) {
      checkRemoval(current, {
        etag: headers["if-match"],
        modified: headers["x-amz-if-match-last-modified-time"],
        bytes: headers["x-amz-if-match-size"],
      });
    }
    await store.delete(bucket, key);
  });
  sendEmpty(exchange, 204);
}

/** CreateMultipartUpload. */
export async function createUpload(exchange: Exchange): Promise<void> {
  const { bucket, key, store, uploads } = exchange;
  checkKey(key);
  store.find(bucket, key);
  const checksum = uploadChecksumOf(exchange);
  const upload = uploads.create({ bucket, key, headers: keptOf(exchange), startedMs: exchange.nowMs(), checksum });
  const fields = element("Bucket", bucket, "text") + element("Key", key, "text") + element("UploadId", upload.id);
  const answered = checksum && {
    "x-amz-checksum-algorithm": checksum.algorithm,
    "x-amz-checksum-type": checksum.type,
  };
  for (const [name, value] of Object.entries(answered ?? {})) exchange.response.setHeader(name, value);
  sendXml(exchange, xmlDocument("InitiateMultipartUploadResult", fields));
}

/** UploadPart. */
export async function uploadPart(exchange: Exchange): Promise<void> {
  const { store, uploads } = exchange;
  const upload = uploadOf(exchange);
  const number = partNumberOf(exchange);
  checkPartAlgorithm(exchange, upload.checksum);
  const { name, body } = await receive(exchange, upload.checksum?.algorithm);
  await uploads.addPart(store, upload, { number, ...body, file: name, modifiedMs: exchange.nowMs() });
  sendEmpty(exchange, 200, { etag: `"${body.md5}"`, ...body.checksums });
}

/** CompleteMultipartUpload. */
export async function completeUpload(exchange: Exchange): Promise<void> {
  const { bucket, key, store, uploads, locks } = exchange;
  const named = readCompletion(await receiveText(exchange, COMPLETE_XML_BYTES_MAX, false));
  const asked = JSON.stringify([bucket, key, exchange.query.get("uploadId"), named]);
  const before = uploads.answered(asked);
  if (before !== undefined) return sendXml(exchange, before);
  const upload = uploadOf(exchange);
  const parts = namedParts(upload.parts, named);
  const read = (part: (typeof parts)[number]) => readPart(store, upload, part);
  const checksums = await checkCompletion(exchange, upload.checksum, { named, parts }, read);
  const object = await uploads.join(store, upload, parts, { checksums, nowMs: exchange.nowMs() });
  await locks.run(`${bucket}/${key}`, () => commit(exchange, object));
  await uploads.abort(store, upload);
  const { "x-amz-checksum-type": type } = checksums;
  const fields = [
    element("Bucket", bucket, "text"),
    element("Key", key, "text"),
    element("ETag", object.etag, "text"),
    lists.checksumElements(checksums),
    type === undefined ? "" : element("ChecksumType", type),
  ];
  const xml = xmlDocument("CompleteMultipartUploadResult", fields.join(""));
  uploads.keepAnswer(asked, xml);
  sendXml(exchange, xml);
}

/** AbortMultipartUpload. */
export async function abortUpload(exchange: Exchange): Promise<void> {
  const { headers, store, uploads } = exchange;
  const upload = uploadOf(exchange);
  checkRemoval(
    { etag: "", bytes: 0, modifiedMs: upload.startedMs },
    { etag: undefined, bytes: undefined, modified: headers["x-amz-if-match-initiated-time"] },
  );
  await uploads.abort(store, upload);
  sendEmpty(exchange, 204);
}

/** ListParts. */
export async function listParts(exchange: Exchange): Promise<void> {
  const upload = uploadOf(exchange);
  sendXml(exchange, lists.listParts(exchange, exchange.query, upload, [...upload.parts.values()]));
}

function uploadOf({ bucket, key, query, uploads }: Exchange): Upload {
  return uploads.get(query.get("uploadId") ?? "", bucket, key);
}

/** Receives the body into a new file. Removes the file when the body is not what the request says. */
async function receive(exchange: Exchange, also?: ChecksumAlgorithm): Promise<{ name: string; body: ReceivedBody }> {
  const { bucket, store } = exchange;
  const { name, file } = await store.createFile(bucket);
  try {
    return { name, body: await receiveBody(exchange, file, also) };
  } catch (error) {
    await store.removeFile(bucket, name);
    throw error;
  } finally {
    await file.close();
  }
}

async function commit({ store, bucket, headers }: Exchange, object: StoredObject): Promise<void> {
  try {
    checkPut(store.find(bucket, object.key), headers);
    await store.commit(bucket, object);
  } catch (error) {
    await store.removeFile(bucket, object.file);
    throw error;
  }
}

async function sendBytes({ response }: Exchange, file: FileHandle, { start, end }: ByteRange): Promise<void> {
  if (end === start) {
    response.end();
  } else if (end - start <= BUFFERED_BYTES_MAX) {
    const { buffer } = await file.read(Buffer.allocUnsafe(end - start), 0, end - start, start);
    response.end(buffer);
  } else {
    const bytes = file.createReadStream({ start, end: end - 1, autoClose: false, highWaterMark: 256 * 1024 });
    await pipeline(bytes, response);
  }
}

function answerHeaders(object: StoredObject, exchange: Exchange): Record<string, string> {
  const { "content-type": contentType = "", ...headers } = object.headers;
  return {
    "accept-ranges": "bytes",
    etag: object.etag,
    "last-modified": new Date(object.modifiedMs).toUTCString(),
    ...answeredHeaders({ contentType, headers }, exchange),
  };
}

function rangeOf(header: string | undefined, bytes: number): ByteRange | undefined {
  try {
    return parseRange(header, bytes);
  } catch (error) {
    throw new S3Error("InvalidRange", toAgaroseError(error).message, { "content-range": `bytes */${bytes}` });
  }
}

function keptOf(exchange: Exchange): Record<string, string> {
  const { contentType, headers } = keptHeaders(exchange);
  return { "content-type": contentType, ...headers };
}

function checkKey(key: string): void {
  if (Buffer.byteLength(key) > KEY_BYTES_MAX) throw new S3Error("KeyTooLongError", "Your key is too long.");
}

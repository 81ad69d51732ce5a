/** GET, HEAD, PUT and DELETE of one object, and its multipart uploads. */
import type { FileHandle } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { contentRange, parseRange, toAgaroseError, type ByteRange } from "@agarose/core";
import { receiveBody, receiveText, type ReceivedBody } from "./wire/body.ts";
import type { Exchange } from "./exchange.ts";
import { sendEmpty, sendXml } from "./wire/answers.ts";
import { checkPut, notModified } from "./wire/conditions.ts";
import { PARTS_MAX } from "./multipart.ts";
import type { StoredObject } from "./object-store.ts";
import { S3Error } from "./wire/s3-error.ts";
import { element, xmlDocument } from "./wire/xml.ts";

const KEY_BYTES_MAX = 1024;
const COMPLETE_XML_BYTES_MAX = 2 * 1024 * 1024;
/** The endpoint reads a body up to this length at once and sends it in one write. */
const BUFFERED_BYTES_MAX = 1024 * 1024;
const KEPT_HEADERS = [
  "content-type",
  "content-encoding",
  "content-disposition",
  "content-language",
  "cache-control",
  "expires",
];

/** GetObject and HeadObject, with Range and conditional headers. */
export async function getObject(exchange: Exchange): Promise<void> {
  const { request, response, store, bucket, key } = exchange;
  const { object, file } = await store.openBytes(bucket, key);
  try {
    for (const [name, value] of Object.entries(answerHeaders(object, exchange))) response.setHeader(name, value);
    if (notModified(object, request.headers)) {
      response.writeHead(304).end();
      return;
    }
    const range = rangeOf(request.headers.range, object.bytes);
    const { start, end } = range ?? { start: 0, end: object.bytes };
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
  const { request, bucket, key, store, locks } = exchange;
  if (request.headers["x-amz-copy-source"] !== undefined)
    throw new S3Error("NotImplemented", "CopyObject is not supported.");
  checkKey(key);
  checkPut(store.find(bucket, key), request.headers);
  const { name, body } = await receive(exchange);
  const object = {
    key,
    bytes: body.bytes,
    etag: `"${body.md5}"`,
    modifiedMs: exchange.nowMs(),
    headers: { ...keptHeaders(exchange), ...body.checksums },
    file: name,
  };
  await locks.run(`${bucket}/${key}`, () => commit(exchange, object));
  sendEmpty(exchange, 200, { etag: object.etag, ...body.checksums });
}

/** DeleteObject, with If-Match. */
export async function deleteObject(exchange: Exchange): Promise<void> {
  const { request, bucket, key, store, locks } = exchange;
  await locks.run(`${bucket}/${key}`, async () => {
    checkPut(store.find(bucket, key), { "if-match": request.headers["if-match"] });
    await store.delete(bucket, key);
  });
  sendEmpty(exchange, 204);
}

/** CreateMultipartUpload. */
export async function createUpload(exchange: Exchange): Promise<void> {
  const { bucket, key, store, uploads } = exchange;
  checkKey(key);
  store.find(bucket, key);
  const upload = uploads.create(bucket, key, keptHeaders(exchange), exchange.nowMs());
  const fields = element("Bucket", bucket, "text") + element("Key", key, "text") + element("UploadId", upload.id);
  sendXml(exchange, xmlDocument("InitiateMultipartUploadResult", fields));
}

/** UploadPart. */
export async function uploadPart(exchange: Exchange): Promise<void> {
  const { bucket, key, query, store, uploads } = exchange;
  const upload = uploads.get(query.get("uploadId") ?? "", bucket, key);
  const number = Number(query.get("partNumber"));
  if (!Number.isInteger(number) || number < 1 || number > PARTS_MAX) {
    throw new S3Error("InvalidArgument", `Part number must be an integer between 1 and ${PARTS_MAX}.`);
  }
  const { name, body } = await receive(exchange);
  await uploads.addPart(store, upload, { number, ...body, file: name, modifiedMs: exchange.nowMs() });
  sendEmpty(exchange, 200, { etag: `"${body.md5}"`, ...body.checksums });
}

/** CompleteMultipartUpload. */
export async function completeUpload(exchange: Exchange): Promise<void> {
  const { request, bucket, key, query, store, uploads, locks } = exchange;
  const upload = uploads.get(query.get("uploadId") ?? "", bucket, key);
  const xml = await receiveText(request, exchange.signing, COMPLETE_XML_BYTES_MAX);
  const object = await uploads.join(store, upload, xml, exchange.nowMs());
  await locks.run(`${bucket}/${key}`, () => commit(exchange, object));
  await uploads.abort(store, upload);
  const fields = element("Bucket", bucket, "text") + element("Key", key, "text") + element("ETag", object.etag, "text");
  sendXml(exchange, xmlDocument("CompleteMultipartUploadResult", fields));
}

/** AbortMultipartUpload. */
export async function abortUpload(exchange: Exchange): Promise<void> {
  const { bucket, key, query, store, uploads } = exchange;
  await uploads.abort(store, uploads.get(query.get("uploadId") ?? "", bucket, key));
  sendEmpty(exchange, 204);
}

/** ListParts. */
export async function listParts(exchange: Exchange): Promise<void> {
  const { bucket, key, query, uploads } = exchange;
  const upload = uploads.get(query.get("uploadId") ?? "", bucket, key);
  const parts = [...upload.parts.values()].toSorted((a, b) => a.number - b.number);
  const fields = parts.map(({ number, md5, bytes, modifiedMs }) =>
    element(
      "Part",
      element("PartNumber", String(number)) +
        element("LastModified", new Date(modifiedMs).toISOString()) +
        element("ETag", `"${md5}"`, "text") +
        element("Size", String(bytes)),
    ),
  );
  const head = element("Bucket", bucket, "text") + element("Key", key, "text") + element("UploadId", upload.id);
  sendXml(exchange, xmlDocument("ListPartsResult", `${head}${fields.join("")}${element("IsTruncated", "false")}`));
}

/** Receives the body into a new file. Removes the file when the body is not what the request says. */
async function receive(exchange: Exchange): Promise<{ name: string; body: ReceivedBody }> {
  const { request, bucket, store, signing } = exchange;
  const { name, file } = await store.createFile(bucket);
  try {
    return { name, body: await receiveBody(request, signing, file) };
  } catch (error) {
    await store.removeFile(bucket, name);
    throw error;
  } finally {
    await file.close();
  }
}

async function commit({ store, bucket, request }: Exchange, object: StoredObject): Promise<void> {
  try {
    checkPut(store.find(bucket, object.key), request.headers);
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

function answerHeaders(object: StoredObject, { request, query }: Exchange): Record<string, string> {
  const wantsChecksum = String(request.headers["x-amz-checksum-mode"]).toUpperCase() === "ENABLED";
  // The stored checksum covers the whole object, so a range response leaves it out.
  const sendsChecksum = wantsChecksum && request.headers.range === undefined;
  const kept = Object.entries(object.headers).filter(([name]) => sendsChecksum || !name.startsWith("x-amz-checksum-"));
  const headers: Record<string, string> = {
    "accept-ranges": "bytes",
    etag: object.etag,
    "last-modified": new Date(object.modifiedMs).toUTCString(),
    ...Object.fromEntries(kept),
  };
  for (const [name, value] of query) {
    if (name.startsWith("response-")) headers[name.slice("response-".length)] = value;
  }
  return headers;
}

function rangeOf(header: string | undefined, bytes: number): ByteRange | undefined {
  try {
    return parseRange(header, bytes);
  } catch (error) {
    throw new S3Error("InvalidRange", toAgaroseError(error).message);
  }
}

function keptHeaders({ request }: Exchange): Record<string, string> {
  const headers: Record<string, string> = { "content-type": "application/octet-stream" };
  for (const [name, value] of Object.entries(request.headers)) {
    if (KEPT_HEADERS.includes(name) || name.startsWith("x-amz-meta-")) headers[name] = String(value);
  }
  // `aws-chunked` describes the transfer, not the object.
  const encodings = (headers["content-encoding"] ?? "").split(",").map((encoding) => encoding.trim());
  const encoding = encodings.filter((name) => name !== "" && name !== "aws-chunked").join(",");
  if (encoding) headers["content-encoding"] = encoding;
  else delete headers["content-encoding"];
  return headers;
}

function checkKey(key: string): void {
  if (Buffer.byteLength(key) > KEY_BYTES_MAX) throw new S3Error("KeyTooLongError", "Your key is too long.");
}

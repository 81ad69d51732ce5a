/** Multipart uploads. Their parts wait in files, and one put stores them when the upload completes. */
import { hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { errorOf, inTurn, tellVersion, type Exchange } from "../exchange.ts";
import { noSuchUpload, type Completed, type Upload, type UploadedPart } from "../uploads.ts";
import { sendEmpty, sendXml, sendXmlOnceDone } from "../wire/answers.ts";
import { receiveText } from "../wire/body.ts";
import {
  checkCompletion,
  checkPartAlgorithm,
  namedParts,
  partNumberOf,
  readCompletion,
  uploadChecksumOf,
  type NamedPart,
} from "../wire/completion.ts";
import { checkRemoval } from "../wire/conditions.ts";
import * as lists from "../wire/list.ts";
import { keptParts } from "../wire/parts.ts";
import { element, xmlDocument } from "../wire/xml.ts";
import { describedBy, writeConditionOf } from "./objects.ts";

const COMPLETE_XML_BYTES_MAX = 4 * 1024 * 1024;

/** CreateMultipartUpload. */
export async function createUpload(exchange: Exchange): Promise<void> {
  const { backend, bucket, key, response } = exchange;
  backend.checkWrite(exchange);
  const checksum = uploadChecksumOf(exchange);
  const id = await backend.uploads.create({ bucket, key, described: describedBy(exchange), checksum });
  if (checksum) {
    response.setHeader("x-amz-checksum-algorithm", checksum.algorithm);
    response.setHeader("x-amz-checksum-type", checksum.type);
  }
  sendXml(exchange, xmlDocument("InitiateMultipartUploadResult", named(exchange) + element("UploadId", id)));
}

/** UploadPart. A part that comes again replaces the one before. */
export async function uploadPart(exchange: Exchange): Promise<void> {
  const { backend, bucket } = exchange;
  const upload = uploadOf(exchange);
  const number = partNumberOf(exchange);
  checkPartAlgorithm(exchange, upload.checksum);
  const body = await backend.receive(bucket, exchange, upload.checksum?.algorithm);
  if (!(await backend.uploads.keep(upload, number, body))) throw noSuchUpload();
  sendEmpty(exchange, 200, { etag: `"${body.md5}"`, ...body.checksums });
}

/** ListParts. */
export async function listParts(exchange: Exchange): Promise<void> {
  const upload = uploadOf(exchange);
  sendXml(exchange, lists.listParts(exchange, exchange.query, upload, [...upload.parts.values()]));
}

/** ListMultipartUploads. */
export async function listUploads(exchange: Exchange): Promise<void> {
  const { backend, bucket, query } = exchange;
  sendXml(exchange, lists.listUploads(exchange, query, backend.uploads.list(bucket)));
}

/**
 * CompleteMultipartUpload, with conditions. An upload that cannot be stored stays, to be completed again. What is asked
 * for a second time, also while the first runs, gets the same answer.
 */
export async function completeUpload(exchange: Exchange): Promise<void> {
  const { backend, bucket, key } = exchange;
  const parts = readCompletion(await receiveText(exchange, COMPLETE_XML_BYTES_MAX, false));
  const asked = { id: idOf(exchange), bucket, key, named: JSON.stringify(parts) };
  const completed = backend.uploads.complete(asked, (upload) => storeParts(upload, parts, exchange));
  const document = completed.then(({ etag, checksums }) => {
    const { "x-amz-checksum-type": type } = checksums;
    const fields = [
      named(exchange),
      element("ETag", etag, "text"),
      lists.checksumElements(checksums),
      type === undefined ? "" : element("ChecksumType", type),
    ];
    return xmlDocument("CompleteMultipartUploadResult", fields.join(""));
  });
  await sendXmlOnceDone(exchange, document, (cause) => errorOf(exchange, cause));
}

async function storeParts(upload: Upload, asked: readonly NamedPart[], exchange: Exchange): Promise<Completed> {
  const { bucket, key, checksum, described } = upload;
  const parts = namedParts(upload.parts, asked);
  const checksums = await checkCompletion(exchange, checksum, { named: asked, parts }, bytesOf);
  const md5s = Buffer.from(parts.map(({ md5 }) => md5).join(""), "hex");
  const object = {
    bucket,
    key,
    etag: `${hash("md5", md5s)}-${parts.length}`,
    contentType: described.contentType,
    headers: { ...described.headers, ...checksums, ...keptParts(parts, checksum?.algorithm) },
    onlyIf: writeConditionOf(exchange),
  };
  const stored = await inTurn(exchange, key, () => exchange.backend.putParts(object, parts));
  tellVersion(exchange, stored);
  return { etag: stored.etag, checksums };
}

/** AbortMultipartUpload. */
export async function abortUpload(exchange: Exchange): Promise<void> {
  const upload = uploadOf(exchange);
  checkRemoval(
    { etag: "", bytes: 0, modifiedMs: upload.startedMs },
    { etag: undefined, bytes: undefined, modified: exchange.headers["x-amz-if-match-initiated-time"] },
  );
  await exchange.backend.uploads.abort(upload);
  sendEmpty(exchange, 204);
}

/** Returns the upload that the request names. Throws S3Error NoSuchUpload. */
export function uploadOf(exchange: Exchange): Upload {
  return exchange.backend.uploads.get(idOf(exchange), exchange);
}

function idOf({ query }: Exchange): string {
  return query.get("uploadId") ?? "";
}

function bytesOf({ path }: UploadedPart): AsyncIterable<Uint8Array> {
  return createReadStream(path) as AsyncIterable<Uint8Array>;
}

function named({ bucket, key }: Exchange): string {
  return element("Bucket", bucket, "text") + element("Key", key, "text");
}

/** Multipart uploads. Their parts wait on disk, and one put stores them when the upload completes. */
import { createReadStream } from "node:fs";
import * as wire from "@agarose/s3-server";
import {
  checkCompletion,
  checkPartAlgorithm,
  checkRemoval,
  element,
  namedParts,
  partNumberOf,
  readCompletion,
  receiveText,
  sendEmpty,
  sendXml,
  sendXmlOnceDone,
  uploadChecksumOf,
  xmlDocument,
} from "@agarose/s3-server";
import { parseKey } from "@agarose/core";
import { BUCKET, type Exchange } from "../exchange.ts";
import { s3ErrorOf } from "../s3-error-of.ts";
import { keptMd5 } from "../read-operations.ts";
import { describedBy, store } from "../write-operations.ts";
import { partsSource } from "./parts-source.ts";
import { noSuchUpload, type Completed, type Upload, type UploadedPart } from "./uploads.ts";

const COMPLETE_XML_BYTES_MAX = 4 * 1024 * 1024;

/** CreateMultipartUpload. */
export async function createUpload(exchange: Exchange): Promise<void> {
  const { key, response, uploads } = exchange;
  parseKey(key);
  const checksum = uploadChecksumOf(exchange);
  const id = await uploads.create({ key, described: describedBy(exchange), checksum });
  if (checksum) {
    response.setHeader("x-amz-checksum-algorithm", checksum.algorithm);
    response.setHeader("x-amz-checksum-type", checksum.type);
  }
  sendXml(exchange, xmlDocument("InitiateMultipartUploadResult", named(key) + element("UploadId", id)));
}

/** UploadPart. A part that comes again takes the place of the one before. */
export async function uploadPart(exchange: Exchange): Promise<void> {
  const { spool, uploads } = exchange;
  const upload = uploadOf(exchange);
  const number = partNumberOf(exchange);
  checkPartAlgorithm(exchange, upload.checksum);
  const body = await spool.receive(exchange, upload.checksum?.algorithm);
  if (!(await uploads.keep(upload, number, body))) throw noSuchUpload();
  sendEmpty(exchange, 200, { etag: `"${body.md5}"`, ...body.checksums });
}

/** ListParts. */
export async function listParts(exchange: Exchange): Promise<void> {
  const upload = uploadOf(exchange);
  sendXml(exchange, wire.listParts(exchange, exchange.query, upload, [...upload.parts.values()]));
}

/** ListMultipartUploads. */
export async function listUploads(exchange: Exchange): Promise<void> {
  sendXml(exchange, wire.listUploads(exchange, exchange.query, exchange.uploads.list()));
}

/**
 * CompleteMultipartUpload, with conditions. An upload that cannot be stored stays, to be completed again. What is asked
 * for a second time, also while the first runs, gets the same answer.
 */
export async function completeUpload(exchange: Exchange): Promise<void> {
  const { key, query, uploads } = exchange;
  const parts = readCompletion(await receiveText(exchange, COMPLETE_XML_BYTES_MAX, false));
  const asked = { id: query.get("uploadId") ?? "", key, named: JSON.stringify(parts) };
  const completed = uploads.complete(asked, (upload) => storeParts(upload, parts, exchange));
  const document = completed.then(({ etag, checksums }) => {
    const { "x-amz-checksum-type": type } = checksums;
    const fields = [
      named(key),
      element("ETag", etag, "text"),
      wire.checksumElements(checksums),
      type === undefined ? "" : element("ChecksumType", type),
    ];
    return xmlDocument("CompleteMultipartUploadResult", fields.join(""));
  });
  await sendXmlOnceDone(exchange, document, s3ErrorOf);
}

async function storeParts(
  { key, parts: arrived, checksum, described }: Upload,
  asked: ReturnType<typeof readCompletion>,
  exchange: Exchange,
): Promise<Completed> {
  const parts = namedParts(arrived, asked);
  const checksums = await checkCompletion(exchange, checksum, { named: asked, parts }, bytesOf);
  const md5s = parts.map(({ md5 }) => md5);
  const headers = { ...described.headers, ...keptMd5(md5s, true), ...checksums };
  const etag = await store({ key, source: partsSource(parts), ...described, headers }, exchange);
  return { etag, checksums };
}

/** AbortMultipartUpload. */
export async function abortUpload(exchange: Exchange): Promise<void> {
  const { headers, uploads } = exchange;
  const upload = uploadOf(exchange);
  checkRemoval(
    { etag: "", bytes: 0, modifiedMs: upload.startedMs },
    { etag: undefined, bytes: undefined, modified: headers["x-amz-if-match-initiated-time"] },
  );
  await uploads.abort(upload);
  sendEmpty(exchange, 204);
}

function uploadOf({ key, query, uploads }: Exchange): Upload {
  return uploads.get(query.get("uploadId") ?? "", key);
}

function bytesOf({ path }: UploadedPart): AsyncIterable<Uint8Array> {
  return createReadStream(path) as AsyncIterable<Uint8Array>;
}

function named(key: string): string {
  return element("Bucket", BUCKET, "text") + element("Key", key, "text");
}

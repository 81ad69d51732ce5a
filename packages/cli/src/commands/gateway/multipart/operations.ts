/** Multipart uploads. Their parts wait on disk, and one put stores them when the upload completes. */
import {
  element,
  namedParts,
  PARTS_MAX,
  receiveText,
  S3Error,
  sendEmpty,
  sendXml,
  xmlDocument,
} from "@agarose/dev-world/s3-wire";
import { parseKey } from "@agarose/core";
import { BUCKET, type Exchange } from "../exchange.ts";
import { describedBy, store } from "../write-operations.ts";
import { partsSource } from "./parts-source.ts";
import type { Upload } from "./uploads.ts";

const COMPLETE_XML_BYTES_MAX = 2 * 1024 * 1024;

/** CreateMultipartUpload. */
export async function createUpload(exchange: Exchange): Promise<void> {
  const { key, request, uploads } = exchange;
  parseKey(key);
  const id = await uploads.create({ key, described: describedBy(request.headers) });
  sendXml(exchange, xmlDocument("InitiateMultipartUploadResult", named(key) + element("UploadId", id)));
}

/** UploadPart. A part that comes again takes the place of the one before. */
export async function uploadPart(exchange: Exchange): Promise<void> {
  const { query, request, signing, spool, uploads } = exchange;
  const { id, upload } = uploadOf(exchange);
  if (request.headers["x-amz-copy-source"] !== undefined) {
    throw new S3Error("NotImplemented", "UploadPartCopy is not supported.");
  }
  const number = Number(query.get("partNumber"));
  if (!Number.isInteger(number) || number < 1 || number > PARTS_MAX) {
    throw new S3Error("InvalidArgument", `Part number must be an integer between 1 and ${PARTS_MAX}.`);
  }
  const body = await spool.receive(request, signing);
  if (!(await uploads.keep(id, upload, number, body))) throw noSuchUpload();
  sendEmpty(exchange, 200, { etag: `"${body.md5}"`, ...body.checksums });
}

/** CompleteMultipartUpload, with conditions. An upload that cannot be stored stays, to be completed again. */
export async function completeUpload(exchange: Exchange): Promise<void> {
  const { key, request, signing, uploads } = exchange;
  const xml = await receiveText(request, signing, COMPLETE_XML_BYTES_MAX);
  const { id, upload } = uploadOf(exchange);
  const parts = namedParts(upload.parts, xml);
  // Parts that come from here on find no upload.
  uploads.take(id);
  let etag: string;
  try {
    etag = await store({ key, source: partsSource(parts), ...upload.described }, exchange);
  } catch (error) {
    uploads.putBack(id, upload);
    throw error;
  }
  await uploads.remove(id, upload);
  sendXml(exchange, xmlDocument("CompleteMultipartUploadResult", named(key) + element("ETag", etag, "text")));
}

/** AbortMultipartUpload. */
export async function abortUpload(exchange: Exchange): Promise<void> {
  const { id, upload } = uploadOf(exchange);
  exchange.uploads.take(id);
  await exchange.uploads.remove(id, upload);
  sendEmpty(exchange, 204);
}

function uploadOf({ key, query, uploads }: Exchange): { id: string; upload: Upload } {
  const id = query.get("uploadId") ?? "";
  const upload = uploads.get(id);
  if (upload?.key !== key) throw noSuchUpload();
  return { id, upload };
}

function noSuchUpload(): S3Error {
  return new S3Error("NoSuchUpload", "The specified multipart upload does not exist.");
}

function named(key: string): string {
  return element("Bucket", BUCKET, "text") + element("Key", key, "text");
}

/** CopyObject and UploadPartCopy. */
import { Readable } from "node:stream";
import type { ObjectCopy, OpenedObject } from "../backend.ts";
import { errorOf, inTurn, tellVersion, type Exchange } from "../exchange.ts";
import { noSuchUpload } from "../uploads.ts";
import { describedAs } from "../wire/answered-object.ts";
import { sendXmlOnceDone } from "../wire/answers.ts";
import { algorithmNamed, checksumHeader, startChecksum, WHOLE } from "../wire/checksum.ts";
import { partNumberOf } from "../wire/completion.ts";
import { checkCopied, type Validators } from "../wire/conditions.ts";
import { copiedRange, copySourceOf, replaces } from "../wire/copy-source.ts";
import { checksumElements } from "../wire/list.ts";
import type { VersionName } from "../wire/request.ts";
import { S3Error } from "../wire/s3-error.ts";
import { TAGGING } from "../wire/tags.ts";
import { element, xmlDocument } from "../wire/xml.ts";
import { uploadOf } from "./multipart.ts";
import { describedBy, writeConditionOf } from "./objects.ts";

/** CopyObject, with conditions on the object that is copied and on the one that the copy replaces. */
export async function copyObject(exchange: Exchange): Promise<void> {
  const { backend, bucket, key } = exchange;
  const source = copySourceOf(exchange);
  const onlyIf = writeConditionOf(exchange);
  backend.checkWrite(exchange, onlyIf);
  const copied = inTurn(exchange, key, () =>
    withSource(source, exchange, async (object) => {
      const described = describedOf({ ...object, ...source }, exchange);
      const checksums = await askedChecksums(object, exchange);
      const copy: ObjectCopy = { bucket, key, onlyIf, described, checksums };
      const stored = await object.copyTo(copy);
      tellVersion(exchange, stored);
      return { ...stored, checksums: checksums ?? object.headers };
    }),
  );
  await sendCopy("CopyObjectResult", exchange, copied);
}

/** UploadPartCopy. The bytes wait in a file, as those of every part do. */
export async function copyPart(exchange: Exchange): Promise<void> {
  const { backend, bucket } = exchange;
  const upload = uploadOf(exchange);
  const number = partNumberOf(exchange);
  const copied = withSource(copySourceOf(exchange), exchange, async (object) => {
    const request = Readable.from(object.content(copiedRange(exchange, object.bytes)), { objectMode: false });
    try {
      const received = { request, headers: {}, signing: undefined };
      const body = await backend.receive(bucket, received, upload.checksum?.algorithm);
      const part = await backend.uploads.keep(upload, number, body);
      if (!part) throw noSuchUpload();
      return { etag: `"${part.md5}"`, modifiedMs: part.modifiedMs, checksums: part.checksums };
    } finally {
      // The rest of it would hold the requests to the regions.
      request.destroy();
    }
  });
  await sendCopy("CopyPartResult", exchange, copied);
}

/** Opens an object, if it is as the request wants what it copies. */
export async function withSource<T>(
  source: VersionName,
  { backend, headers, left }: Exchange,
  copy: (object: OpenedObject) => Promise<T>,
): Promise<T> {
  backend.checkBucket(source.bucket);
  const object = await backend.open(source, { left });
  try {
    checkCopied(object, headers);
    return await copy(object);
  } finally {
    await object.close();
  }
}

/**
 * Returns the type and headers that the copy has in place of those of its source; undefined where it has the same.
 *
 * @throws S3Error InvalidRequest for metadata or tags that S3 would drop, or where nothing would change.
 */
function describedOf(source: VersionName & OpenedObject, exchange: Exchange): ObjectCopy["described"] {
  const asked = describedBy(exchange);
  const { [TAGGING]: tags = "", ...metadata } = asked.headers;
  const [takesMetadata, takesTags] = [replaces("metadata", exchange), replaces("tagging", exchange)];
  refuseDropped(takesMetadata ? [] : Object.keys(metadata), "metadata");
  refuseDropped(takesTags || tags === "" ? [] : [TAGGING], "tagging");
  const own = { [TAGGING]: takesTags ? tags : (source.headers[TAGGING] ?? "") };
  if (takesMetadata) return describedAs({ ...asked, headers: metadata }, own);
  if (takesTags) return describedAs(source, own);
  // An older version changes the object, whatever is asked for beside it.
  if (source.bucket === exchange.bucket && source.key === exchange.key && source.versionId === undefined) {
    const message =
      "This copy request is illegal because it is trying to copy an object to itself without changing the object's " +
      "metadata, storage class, website redirect location or encryption attributes.";
    throw new S3Error("InvalidRequest", message);
  }
  return undefined;
}

function refuseDropped([header]: readonly string[], directive: string): void {
  if (header === undefined) return;
  throw new S3Error("InvalidRequest", `To give the copy ${header}, send x-amz-${directive}-directive: REPLACE.`);
}

/** Returns the checksum that the copy is to have; undefined where its source has it already, or none is asked for. */
async function askedChecksums(
  object: OpenedObject,
  { headers }: Exchange,
): Promise<Readonly<Record<string, string>> | undefined> {
  const named = headers["x-amz-checksum-algorithm"];
  if (named === undefined) return undefined;
  const algorithm = algorithmNamed(named);
  const header = checksumHeader(algorithm);
  if (header in object.headers && object.headers["x-amz-checksum-type"] === "FULL_OBJECT") return undefined;
  const running = await startChecksum(algorithm);
  for await (const part of object.content()) running.update(part);
  return { [header]: running.digest(), ...WHOLE };
}

interface Copied extends Validators {
  readonly checksums: Readonly<Record<string, string>>;
}

/** Answers once the copy is stored, and by white space in the meantime, because it takes as long as a put. */
async function sendCopy(root: string, exchange: Exchange, copied: Promise<Copied>): Promise<void> {
  const document = copied.then(({ etag, modifiedMs, checksums }) => {
    const modified = element("LastModified", new Date(modifiedMs).toISOString());
    return xmlDocument(root, modified + element("ETag", etag, "text") + checksumElements(checksums));
  });
  await sendXmlOnceDone(exchange, document, (cause) => errorOf(exchange, cause));
}

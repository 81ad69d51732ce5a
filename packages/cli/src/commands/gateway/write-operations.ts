/** PutObject with its conditions, DeleteObject and DeleteObjects. */
import {
  checkPut,
  checkRemoval,
  DELETE_XML_BYTES_MAX,
  element,
  keptHeaders,
  readDeletion,
  receiveText,
  sendEmpty,
  sendXmlOnceDone,
  xmlDocument,
  type KeptHeaders,
  type RemovalConditions,
} from "@agarose/s3-server";
import { isTombstone, parseKey, shownBytes, type Manifest, type ManifestRecord } from "@agarose/core";
import { secretsOf } from "@agarose/storage/encryption/secrets-of";
import { putObject, type PutObject } from "@agarose/storage/objects/put-object";
import { removeObject } from "@agarose/storage/objects/remove-object";
import { fileSource } from "@agarose/storage/upload/file-source";
import { describedAsStored, headerText } from "@agarose/storage/upload/object-headers";
import { mapOrdered } from "@agarose/storage/listing/ordered-pool";
import type { Exchange } from "./exchange.ts";
import { etagOf, keptMd5, validatorsOf } from "./read-operations.ts";
import { isImpossibleKey, s3ErrorOf } from "./s3-error-of.ts";

const REMOVALS_AT_A_TIME = 16;
/** The checksum of a put is always of the whole object. */
const WHOLE = { "x-amz-checksum-type": "FULL_OBJECT" };

/** PutObject, with If-Match and If-None-Match. */
export async function writeObject(exchange: Exchange): Promise<void> {
  const { key, spool } = exchange;
  parseKey(key);
  const { contentType, headers } = describedBy(exchange);
  const body = await spool.receive(exchange);
  try {
    const checksums = { ...body.checksums, ...(Object.keys(body.checksums).length > 0 && WHOLE) };
    const kept = { contentType, headers: { ...headers, ...keptMd5([body.md5], false), ...checksums } };
    const etag = await store({ key, source: fileSource(body.path), ...kept }, exchange);
    sendEmpty(exchange, 200, { etag, ...checksums });
  } finally {
    await spool.remove(body);
  }
}

/**
 * Puts an object under the conditions of the request, and returns its ETag. Writers of one key go one after the other.
 * A client that leaves once its body is here does not end the put.
 */
export async function store(
  object: Pick<PutObject, "key" | "source"> & KeptHeaders,
  { headers, context, locks, nowMs }: Exchange,
): Promise<string> {
  const isConditional = headers["if-match"] !== undefined || headers["if-none-match"] !== undefined;
  const onlyIf = (current: Manifest | undefined): void => checkPut(current && validatorsOf(current), headers);
  const put = { ...object, force: false, ...(isConditional && { onlyIf }) };
  const { version } = await locks.run(object.key, () => putObject(put, { ...context, nowMs }));
  const isEncrypted = (await secretsOf(context.config).forWriting(object.key)) !== undefined;
  return etagOf({ version, ...(!isEncrypted && { headers: object.headers }) });
}

/** Returns the type and the headers that the object keeps. Throws S3Error, or USAGE for what no answer can carry. */
export function describedBy(exchange: Exchange): KeptHeaders {
  const { contentType, headers } = keptHeaders(exchange);
  const texts = Object.entries(headers).map(([name, value]) => [name, headerText(value)]);
  return describedAsStored({ contentType: headerText(contentType), headers: Object.fromEntries(texts) });
}

type Removal = RemovalConditions & { readonly key: string };

/** DeleteObject. An object that is not there counts as deleted. */
export async function removeOne(exchange: Exchange): Promise<void> {
  const { headers, key } = exchange;
  const conditions = {
    etag: headers["if-match"],
    modified: headers["x-amz-if-match-last-modified-time"],
    bytes: headers["x-amz-if-match-size"],
  };
  await remove({ key, ...conditions }, exchange);
  sendEmpty(exchange, 204);
}

/** DeleteObjects. */
export async function removeMany(exchange: Exchange): Promise<void> {
  const { objects, isQuiet } = readDeletion(await receiveText(exchange, DELETE_XML_BYTES_MAX));
  await sendXmlOnceDone(exchange, removeAll(objects, isQuiet, exchange), s3ErrorOf);
}

async function removeAll(objects: readonly Removal[], isQuiet: boolean, exchange: Exchange): Promise<string> {
  const outcomes: string[] = [];
  const removed = mapOrdered(objects, REMOVALS_AT_A_TIME, async (object) => {
    const named = element("Key", object.key, "text");
    try {
      await remove(object, exchange);
      return isQuiet ? "" : element("Deleted", named);
    } catch (cause) {
      const { code, message } = s3ErrorOf(cause);
      return element("Error", named + element("Code", code) + element("Message", message, "text"));
    }
  });
  for await (const outcome of removed) outcomes.push(outcome);
  return xmlDocument("DeleteResult", outcomes.join(""));
}

/** Removes an object if it is the one that `conditions` name, also when another writer comes between. */
async function remove({ key, ...conditions }: Removal, { context, locks, nowMs }: Exchange): Promise<void> {
  const isConditional = Object.values(conditions).some((condition) => condition !== undefined);
  const check = (newest: ManifestRecord | undefined): void => {
    if (!newest || isTombstone(newest)) return;
    checkRemoval({ bytes: shownBytes(newest), ...validatorsOf(newest) }, conditions);
  };
  try {
    await locks.run(key, () => removeObject(key, { ...context, nowMs }, isConditional ? check : undefined));
  } catch (error) {
    if (!isImpossibleKey(error)) throw error;
  }
}

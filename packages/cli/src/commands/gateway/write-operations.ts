/** PutObject with its conditions, DeleteObject and DeleteObjects. */
import type { IncomingHttpHeaders } from "node:http";
import {
  checkPut,
  element,
  elementsOf,
  receiveText,
  S3Error,
  sendEmpty,
  sendXml,
  textsOf,
  xmlDocument,
} from "@agarose/dev-world/s3-wire";
import { HEADERS_ALLOWED, parseKey, type Manifest } from "@agarose/core";
import { putObject, type PutObject } from "../../lib/objects/put-object.ts";
import { removeObject } from "../../lib/objects/remove-object.ts";
import { fileSource } from "../../lib/objects/upload/file-source.ts";
import { describedAsStored, headerText } from "../../lib/objects/upload/object-headers.ts";
import { mapOrdered } from "../../lib/walk/ordered-pool.ts";
import type { Exchange } from "./exchange.ts";
import type { Upload } from "./multipart/uploads.ts";
import { etagOf, validatorsOf } from "./read-operations.ts";
import { isImpossibleKey, s3ErrorOf } from "./s3-error-of.ts";

const DELETE_KEYS_MAX = 1000;
const DELETE_XML_BYTES_MAX = 4 * 1024 * 1024;
const REMOVALS_AT_A_TIME = 4;
/** Headers that ask for what an object of ours cannot have. To ignore them would be a lie. */
const UNSUPPORTED =
  /^x-amz-(copy-source|grant-|object-lock-|server-side-encryption|tagging|website-redirect-location|write-offset)/;
/** Headers with the one value that is true of every object here. */
const ONLY_VALUES = { "x-amz-acl": "private", "x-amz-storage-class": "STANDARD" };

/** PutObject, with If-Match and If-None-Match. */
export async function writeObject(exchange: Exchange): Promise<void> {
  const { request, key, signing, spool } = exchange;
  parseKey(key);
  const described = describedBy(request.headers);
  const body = await spool.receive(request, signing);
  try {
    const etag = await store({ key, source: fileSource(body.path), ...described }, exchange);
    sendEmpty(exchange, 200, { etag, ...body.checksums });
  } finally {
    await spool.remove(body);
  }
}

/**
 * Puts an object under the conditions of the request, and returns its ETag. Writers of one key go one after the other.
 * A client that leaves once its body is here does not end the put.
 */
export async function store(
  object: Pick<PutObject, "key" | "source"> & Upload["described"],
  { request: { headers }, context, locks, nowMs }: Exchange,
): Promise<string> {
  const isConditional = headers["if-match"] !== undefined || headers["if-none-match"] !== undefined;
  const onlyIf = (current: Manifest | undefined): void => checkPut(current && validatorsOf(current), headers);
  const put = { ...object, force: false, ...(isConditional && { onlyIf }) };
  return etagOf(await locks.run(object.key, () => putObject(put, { ...context, nowMs })));
}

/** Returns the type and the headers that the object keeps. Throws S3Error NotImplemented, or USAGE. */
export function describedBy(headers: IncomingHttpHeaders): Upload["described"] {
  const refused = Object.keys(headers).find((name) => UNSUPPORTED.test(name));
  if (refused !== undefined) throw new S3Error("NotImplemented", `${refused} is not supported.`);
  for (const [name, only] of Object.entries(ONLY_VALUES)) {
    const value = headers[name];
    if (value !== undefined && value !== only) {
      throw new S3Error("NotImplemented", `${name} may only be ${only}, and is ${String(value)}.`);
    }
  }
  const kept = Object.entries(headers).flatMap(([name, value]): [string, string][] => {
    const text = name === "content-encoding" ? ownEncodings(String(value)) : headerText(String(value));
    return HEADERS_ALLOWED.has(name) && text !== "" ? [[name, text]] : [];
  });
  const contentType = headerText(headers["content-type"] ?? "application/octet-stream");
  return describedAsStored({ contentType, headers: Object.fromEntries(kept) });
}

/** DeleteObject. An object that is not there counts as deleted. */
export async function removeOne(exchange: Exchange): Promise<void> {
  if (exchange.request.headers["if-match"] !== undefined) {
    throw new S3Error("NotImplemented", "DeleteObject with If-Match is not supported.");
  }
  await remove(exchange.key, exchange);
  sendEmpty(exchange, 204);
}

/** DeleteObjects. */
export async function removeMany(exchange: Exchange): Promise<void> {
  const xml = await receiveText(exchange.request, exchange.signing, DELETE_XML_BYTES_MAX);
  const objects = elementsOf(xml, "Object");
  const keys = objects.flatMap((object) => textsOf(object, "Key"));
  if (keys.length === 0 || keys.length > DELETE_KEYS_MAX) {
    throw new S3Error("MalformedXML", `A deletion names 1 to ${DELETE_KEYS_MAX} objects, this one ${keys.length}.`);
  }
  if (objects.some((object) => /<(VersionId|ETag)>/.test(object))) {
    throw new S3Error("NotImplemented", "A deletion of a version or by an ETag is not supported.");
  }
  const isQuiet = textsOf(xml, "Quiet")[0] === "true";
  const outcomes: string[] = [];
  const removed = mapOrdered(keys, REMOVALS_AT_A_TIME, async (key) => {
    const named = element("Key", key, "text");
    try {
      await remove(key, exchange);
      return isQuiet ? "" : element("Deleted", named);
    } catch (cause) {
      const { code, message } = s3ErrorOf(cause);
      return element("Error", named + element("Code", code) + element("Message", message, "text"));
    }
  });
  for await (const outcome of removed) outcomes.push(outcome);
  sendXml(exchange, xmlDocument("DeleteResult", outcomes.join("")));
}

async function remove(key: string, { context, locks, nowMs }: Exchange): Promise<void> {
  try {
    await locks.run(key, () => removeObject(key, { ...context, nowMs }));
  } catch (error) {
    if (!isImpossibleKey(error)) throw error;
  }
}

/** `aws-chunked` describes the transfer, not the object. */
function ownEncodings(value: string): string {
  const names = value.split(",").map((name) => name.trim());
  return names.filter((name) => name !== "" && name !== "aws-chunked").join(",");
}

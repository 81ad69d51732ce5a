/** The body of DeleteObjects. */
import type { RemovalConditions } from "./conditions.ts";
import { OPERATIONS } from "./operations.ts";
import { S3Error } from "./s3-error.ts";
import { readXml } from "./xml.ts";

const KEYS_MAX = 1000;
/** The most bytes of the body of DeleteObjects. */
export const DELETE_XML_BYTES_MAX = 4 * 1024 * 1024;

/** An object to remove, or one of its versions. */
export interface Removal extends RemovalConditions {
  readonly key: string;
  readonly versionId: string | undefined;
}

/** The request of DeleteObjects. */
export interface Deletion {
  readonly objects: readonly Removal[];
  /** Whether only failures are answered. */
  readonly isQuiet: boolean;
}

/** Reads the body of DeleteObjects. Throws S3Error MalformedXML. */
export function readDeletion(xml: string): Deletion {
  const { root, elements } = OPERATIONS.DeleteObjects.body;
  const deletion = readXml(xml, root, elements);
  const objects = (deletion.elements.get("Object") ?? []).map(({ texts }) => {
    const key = texts.get("Key");
    if (!key) throw new S3Error("MalformedXML", "An Object has no Key.");
    const conditions = { etag: texts.get("ETag"), modified: texts.get("LastModifiedTime"), bytes: texts.get("Size") };
    return { key, versionId: texts.get("VersionId"), ...conditions };
  });
  if (objects.length === 0 || objects.length > KEYS_MAX) {
    throw new S3Error("MalformedXML", `A deletion names 1 to ${KEYS_MAX} objects, this one ${objects.length}.`);
  }
  const quiet = deletion.texts.get("Quiet");
  if (quiet !== undefined && quiet !== "true" && quiet !== "false") {
    throw new S3Error("MalformedXML", "Quiet is true or false.");
  }
  return { objects, isQuiet: quiet === "true" };
}

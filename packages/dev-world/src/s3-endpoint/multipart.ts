/** Multipart uploads. Each part has a file of its own; completing the upload joins them. */
import { createHash, randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import type { StoredObjects, StoredObject } from "./object-store.ts";
import { S3Error } from "./wire/s3-error.ts";
import { elementsOf, textsOf } from "./wire/xml.ts";

/** The shortest part that S3 accepts, except for the last one. */
export const PART_BYTES_MIN = 5 * 1024 * 1024;
/** The most parts of one upload. */
export const PARTS_MAX = 10_000;

/** An uploaded part. */
export interface Part {
  readonly number: number;
  readonly bytes: number;
  readonly md5: string;
  readonly file: string;
  readonly modifiedMs: number;
}

/** An upload that is neither completed nor aborted. */
export interface Upload {
  readonly id: string;
  readonly bucket: string;
  readonly key: string;
  readonly headers: Record<string, string>;
  readonly startedMs: number;
  readonly parts: Map<number, Part>;
}

/** The uploads in progress. A restart forgets them. */
export class MultipartUploads {
  readonly #uploads = new Map<string, Upload>();

  create(bucket: string, key: string, headers: Record<string, string>, nowMs: number): Upload {
    const upload = { id: randomUUID(), bucket, key, headers, startedMs: nowMs, parts: new Map<number, Part>() };
    this.#uploads.set(upload.id, upload);
    return upload;
  }

  get(id: string, bucket: string, key: string): Upload {
    const upload = this.#uploads.get(id);
    if (!upload || upload.bucket !== bucket || upload.key !== key) {
      throw new S3Error("NoSuchUpload", "The specified multipart upload does not exist.");
    }
    return upload;
  }

  list(bucket: string): Upload[] {
    return [...this.#uploads.values()].filter((upload) => upload.bucket === bucket);
  }

  async addPart(store: StoredObjects, upload: Upload, part: Part): Promise<void> {
    const old = upload.parts.get(part.number);
    upload.parts.set(part.number, part);
    if (old) await store.removeFile(upload.bucket, old.file);
  }

  async abort(store: StoredObjects, upload: Upload): Promise<void> {
    this.#uploads.delete(upload.id);
    await Promise.all([...upload.parts.values()].map(({ file }) => store.removeFile(upload.bucket, file)));
  }

  /** Joins the parts that `xml` (CompleteMultipartUpload) names. The caller commits the object. */
  async join(store: StoredObjects, upload: Upload, xml: string, nowMs: number): Promise<StoredObject> {
    const parts = namedParts(upload.parts, xml);
    const { name, file } = await store.createFile(upload.bucket);
    try {
      for (const part of parts) {
        for await (const bytes of createReadStream(store.dataPath(upload.bucket, part.file))) {
          await file.write(bytes as Uint8Array);
        }
      }
    } finally {
      await file.close();
    }
    const md5 = createHash("md5")
      .update(Buffer.from(parts.map((part) => part.md5).join(""), "hex"))
      .digest("hex");
    return {
      key: upload.key,
      bytes: parts.reduce((sum, part) => sum + part.bytes, 0),
      etag: `"${md5}-${parts.length}"`,
      modifiedMs: nowMs,
      headers: upload.headers,
      file: name,
    };
  }
}

/**
 * Returns the parts that `xml` (CompleteMultipartUpload) names, of those that arrived, by number. Throws S3Error
 * MalformedXML, InvalidPart, InvalidPartOrder or EntityTooSmall.
 */
export function namedParts<T extends Pick<Part, "bytes" | "md5">>(parts: ReadonlyMap<number, T>, xml: string): T[] {
  const named = elementsOf(xml, "Part").map((part) => ({
    number: Number(textsOf(part, "PartNumber")[0]),
    etag: textsOf(part, "ETag")[0]?.replaceAll('"', ""),
  }));
  if (named.length === 0) throw new S3Error("MalformedXML", "The XML you provided names no part.");
  return named.map(({ number, etag }, index) => {
    const part = parts.get(number);
    if (!part || part.md5 !== etag) {
      throw new S3Error("InvalidPart", `Part ${number} could not be found, or its entity tag does not match.`);
    }
    if (index > 0 && number <= named[index - 1]!.number) {
      throw new S3Error("InvalidPartOrder", "The list of parts was not in ascending order.");
    }
    if (index < named.length - 1 && part.bytes < PART_BYTES_MIN) {
      throw new S3Error(
        "EntityTooSmall",
        `Part ${number} has ${part.bytes} bytes, at least ${PART_BYTES_MIN} are needed.`,
      );
    }
    return part;
  });
}

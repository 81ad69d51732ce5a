/** Multipart uploads. Each part has a file of its own; completing the upload joins them. */
import { createHash, randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import type { StoredObjects, StoredObject } from "./object-store.ts";
import { S3Error } from "@agarose/s3-server/wire/s3-error";
import type { UploadChecksum } from "@agarose/s3-server/wire/list";

const ANSWERS_MAX = 1_000;

/** An uploaded part. */
export interface Part {
  readonly number: number;
  readonly bytes: number;
  readonly md5: string;
  /** By header name. */
  readonly checksums: Readonly<Record<string, string>>;
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
  readonly checksum: UploadChecksum | undefined;
  readonly parts: Map<number, Part>;
}

/** The uploads in progress. A restart forgets them. */
export class MultipartUploads {
  readonly #uploads = new Map<string, Upload>();
  /** The answers to uploads that were completed, by what was asked. */
  readonly #answers = new Map<string, string>();

  create(described: Pick<Upload, "bucket" | "key" | "headers" | "startedMs" | "checksum">): Upload {
    const upload = { ...described, id: randomUUID(), parts: new Map<number, Part>() };
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

  /** Returns what the same completion was answered before. */
  answered(asked: string): string | undefined {
    return this.#answers.get(asked);
  }

  /** Keeps the answer to a completion, of the latest of them. */
  keepAnswer(asked: string, xml: string): void {
    this.#answers.set(asked, xml);
    if (this.#answers.size > ANSWERS_MAX) this.#answers.delete(this.#answers.keys().next().value!);
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

  /** Joins parts of the upload. The caller commits the object. */
  async join(
    store: StoredObjects,
    upload: Upload,
    parts: readonly Part[],
    { checksums, nowMs }: { readonly checksums: Record<string, string>; readonly nowMs: number },
  ): Promise<StoredObject> {
    const { name, file } = await store.createFile(upload.bucket);
    try {
      for (const part of parts) for await (const bytes of readPart(store, upload, part)) await file.write(bytes);
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
      headers: { ...upload.headers, ...checksums },
      file: name,
    };
  }
}

/** The bytes of a part. */
export function readPart(store: StoredObjects, { bucket }: Upload, { file }: Part): AsyncIterable<Uint8Array> {
  return createReadStream(store.dataPath(bucket, file)) as AsyncIterable<Uint8Array>;
}

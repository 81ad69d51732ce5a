/** The backend of an S3 server whose buckets are folders of files. */
import { createReadStream } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { basename } from "node:path";
import { pipeline } from "node:stream/promises";
import type { ByteRange } from "@agarose/core/http";
import {
  receiveBody,
  S3Error,
  Uploads,
  type Backend,
  type BodyFile,
  type ChecksumAlgorithm,
  type KeyList,
  type NewObject,
  type ObjectCopy,
  type ObjectName,
  type OpenedObject,
  type Received,
  type RemovalCondition,
  type Validators,
  type VersionName,
  type WriteCondition,
} from "@agarose/s3-server";
import type { StoredObject, StoredObjects } from "./object-store.ts";

const KEY_BYTES_MAX = 1024;
/** The endpoint reads a body up to this length at once and sends it in one write. */
const BUFFERED_BYTES_MAX = 1024 * 1024;

/** Serves the objects of a folder. A restart forgets multipart uploads. */
export class FileBackend implements Backend {
  readonly uploads: Uploads;
  readonly #store: StoredObjects;
  readonly #nowMs: () => number;

  constructor(store: StoredObjects, nowMs: () => number) {
    this.#store = store;
    this.#nowMs = nowMs;
    this.uploads = new Uploads({ discard: (body) => this.discard(body), nowMs });
  }

  buckets(): { name: string; createdMs: number }[] {
    return this.#store.bucketNames.map((name) => ({ name, createdMs: 0 }));
  }

  checkBucket(bucket: string): void {
    if (!this.#store.has(bucket)) throw new S3Error("NoSuchBucket", "The specified bucket does not exist.");
  }

  async createBucket(bucket: string): Promise<void> {
    if (this.#store.has(bucket)) {
      throw new S3Error("BucketAlreadyOwnedByYou", "Your previous request to create the named bucket succeeded.");
    }
    await this.#store.createBucket(bucket);
  }

  deleteBucket(bucket: string): Promise<void> {
    return this.#store.deleteBucket(bucket);
  }

  list(bucket: string, prefix: string): KeyList {
    return {
      behind: (after) => this.#store.keysBehind(bucket, prefix, after),
      describe: (page) => page.map(({ key }) => this.#store.get(bucket, key)),
    };
  }

  async open({ bucket, key, versionId }: VersionName): Promise<OpenedObject> {
    if (versionId !== undefined) throw new S3Error("NotImplemented", "No versions are kept here.");
    const { object, file } = await this.#store.openBytes(bucket, key);
    const { "content-type": contentType = "", ...headers } = object.headers;
    return {
      ...object,
      contentType,
      headers,
      async send(range = { start: 0, end: object.bytes }, begin, response) {
        begin();
        await sendBytes(file, range, response);
      },
      content: (range = { start: 0, end: object.bytes }) => bytesOf(file, range),
      copyTo: (copy) => this.#copy(object, bytesOf(file, { start: 0, end: object.bytes }), copy),
      close: () => file.close(),
    };
  }

  checkWrite({ bucket, key }: ObjectName, onlyIf?: WriteCondition): void {
    if (Buffer.byteLength(key) > KEY_BYTES_MAX) throw new S3Error("KeyTooLongError", "Your key is too long.");
    onlyIf?.(this.#store.find(bucket, key));
  }

  async receive(bucket: string, received: Received, also?: ChecksumAlgorithm): Promise<BodyFile> {
    const { path, file } = await this.#store.createFile(bucket);
    try {
      return { path, ...(await receiveBody(received, file, also)) };
    } catch (error) {
      await this.discard({ path });
      throw error;
    } finally {
      await file.close();
    }
  }

  async discard({ path }: Pick<BodyFile, "path">): Promise<void> {
    await this.#store.removeFile(path);
  }

  async put(object: NewObject, { path, bytes }: Pick<BodyFile, "path" | "bytes">): Promise<Validators> {
    const { bucket, key, contentType, headers, onlyIf } = object;
    onlyIf?.(this.#store.find(bucket, key));
    const stored = { etag: `"${object.etag}"`, modifiedMs: this.#nowMs() };
    const described = { key, bytes, ...stored, file: basename(path) };
    await this.#store.commit(bucket, { ...described, headers: { "content-type": contentType, ...headers } });
    return stored;
  }

  /** Joins the parts in a file of their own. */
  putParts(object: NewObject, parts: readonly BodyFile[]): Promise<Validators> {
    return this.#putAll(
      object,
      parts.map(({ path }) => createReadStream(path) as AsyncIterable<Uint8Array>),
    );
  }

  async #copy(
    { etag, headers }: StoredObject,
    content: AsyncIterable<Uint8Array>,
    { described, checksums, ...copy }: ObjectCopy,
  ): Promise<Validators> {
    const { "content-type": contentType = "", ...own } = headers;
    const [ofBytes, others] = [true, false].map((wanted) =>
      Object.fromEntries(Object.entries(own).filter(([name]) => name.startsWith("x-amz-checksum-") === wanted)),
    );
    const object = {
      ...copy,
      etag: etag.replaceAll('"', ""),
      contentType: described?.contentType ?? contentType,
      headers: { ...(described?.headers ?? others), ...(checksums ?? ofBytes) },
    };
    return this.#putAll(object, [content]);
  }

  async #putAll(object: NewObject, contents: readonly AsyncIterable<Uint8Array>[]): Promise<Validators> {
    const { path, file } = await this.#store.createFile(object.bucket);
    let bytes = 0;
    try {
      for (const content of contents) {
        for await (const part of content) {
          await file.write(part);
          bytes += part.length;
        }
      }
      return await this.put(object, { path, bytes });
    } catch (error) {
      await this.discard({ path });
      throw error;
    } finally {
      await file.close();
    }
  }

  async remove({ bucket, key }: ObjectName, onlyIf: RemovalCondition | undefined): Promise<void> {
    const current = this.#store.find(bucket, key);
    if (current) onlyIf?.(current);
    await this.#store.delete(bucket, key);
  }
}

async function* bytesOf(file: FileHandle, { start, end }: ByteRange): AsyncGenerator<Uint8Array> {
  if (end > start) yield* file.createReadStream({ start, end: end - 1, autoClose: false }) as AsyncIterable<Uint8Array>;
}

async function sendBytes(file: FileHandle, { start, end }: ByteRange, response: ServerResponse): Promise<void> {
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

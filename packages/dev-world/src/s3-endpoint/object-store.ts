/**
 * Buckets and objects on disk, with their index in memory.
 *
 * A put writes the bytes to a new file, then renames the object's meta file into place. After a crash an object is
 * therefore the old one or the new one, never a part of either.
 */
import { createHash, randomUUID } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm, writeFile, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { compareUtf8, S3Error } from "@agarose/s3-server";

/** One stored object, without its bytes. */
export interface StoredObject {
  readonly key: string;
  readonly bytes: number;
  /** Includes its quotes. */
  readonly etag: string;
  readonly modifiedMs: number;
  /** Response headers of the object, by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  /** Name of the file that has the bytes. */
  readonly file: string;
}

interface Bucket {
  readonly objects: Map<string, StoredObject>;
  /** Keys in UTF-8 order. A change of the key set drops it. */
  sorted: string[] | undefined;
}

/** The buckets of one folder. */
export class StoredObjects {
  readonly #dir: string;
  readonly #buckets = new Map<string, Bucket>();

  private constructor(dir: string) {
    this.#dir = dir;
  }

  /** Opens the folder `dir`, or makes it. Removes the half-written files of a crash. */
  static async open(dir: string): Promise<StoredObjects> {
    const store = new StoredObjects(dir);
    await mkdir(dir, { recursive: true });
    for (const entry of await readdir(dir, { withFileTypes: true })) {
      if (entry.isDirectory()) await store.#load(entry.name);
    }
    return store;
  }

  get bucketNames(): string[] {
    return [...this.#buckets.keys()].toSorted();
  }

  async createBucket(name: string): Promise<void> {
    if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(name)) {
      throw new S3Error("InvalidBucketName", "The specified bucket is not valid.");
    }
    await mkdir(join(this.#dir, name, "meta"), { recursive: true });
    await mkdir(join(this.#dir, name, "data"), { recursive: true });
    if (!this.#buckets.has(name)) this.#buckets.set(name, { objects: new Map(), sorted: undefined });
  }

  async deleteBucket(name: string): Promise<void> {
    if (this.#bucket(name).objects.size > 0) throw new S3Error("BucketNotEmpty", "The bucket is not empty.");
    this.#buckets.delete(name);
    await rm(join(this.#dir, name), { recursive: true, force: true });
  }

  has(bucket: string): boolean {
    return this.#buckets.has(bucket);
  }

  find(bucket: string, key: string): StoredObject | undefined {
    return this.#bucket(bucket).objects.get(key);
  }

  get(bucket: string, key: string): StoredObject {
    const object = this.find(bucket, key);
    if (!object) throw new S3Error("NoSuchKey", "The specified key does not exist.");
    return object;
  }

  /** The keys of a bucket behind `after` that begin with `prefix`, in UTF-8 order. Throws S3Error NoSuchBucket. */
  *keysBehind(bucket: string, prefix: string, after: string): Generator<{ key: string }> {
    const found = this.#bucket(bucket);
    const sorted = (found.sorted ??= [...found.objects.keys()].toSorted(compareUtf8));
    const isBehind = (key: string): boolean => compareUtf8(key, prefix) >= 0 && compareUtf8(key, after) > 0;
    let [low, high] = [0, sorted.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (isBehind(sorted[middle]!)) high = middle;
      else low = middle + 1;
    }
    for (; low < sorted.length; low++) {
      const key = sorted[low]!;
      if (!key.startsWith(prefix)) return;
      yield { key };
    }
  }

  /** Opens an object's bytes. They stay readable through the handle when the object changes. */
  async openBytes(bucket: string, key: string): Promise<{ object: StoredObject; file: FileHandle }> {
    for (;;) {
      const object = this.get(bucket, key);
      try {
        return { object, file: await open(this.#dataPath(bucket, object.file)) };
      } catch (error) {
        const replaced = this.find(bucket, key) !== object;
        if ((error as NodeJS.ErrnoException).code !== "ENOENT" || !replaced) throw error;
      }
    }
  }

  /** Creates a file for bytes that belong to no object yet. */
  async createFile(bucket: string): Promise<{ path: string; file: FileHandle }> {
    this.#bucket(bucket);
    const path = this.#dataPath(bucket, randomUUID());
    return { path, file: await open(path, "wx+") };
  }

  async removeFile(path: string): Promise<void> {
    await rm(path, { force: true });
  }

  /** Makes `object` the current object of its key. */
  async commit(bucket: string, object: StoredObject): Promise<void> {
    const found = this.#bucket(bucket);
    const path = this.#metaPath(bucket, object.key);
    await writeFile(`${path}.${object.file}`, JSON.stringify(object));
    await rename(`${path}.${object.file}`, path);
    const old = found.objects.get(object.key);
    found.objects.set(object.key, object);
    if (old) await this.removeFile(this.#dataPath(bucket, old.file));
    else found.sorted = undefined;
  }

  async delete(bucket: string, key: string): Promise<void> {
    const found = this.#bucket(bucket);
    const object = found.objects.get(key);
    if (!object) return;
    found.objects.delete(key);
    found.sorted = undefined;
    await rm(this.#metaPath(bucket, key), { force: true });
    await this.removeFile(this.#dataPath(bucket, object.file));
  }

  #bucket(name: string): Bucket {
    const bucket = this.#buckets.get(name);
    if (!bucket) throw new S3Error("NoSuchBucket", "The specified bucket does not exist.");
    return bucket;
  }

  #dataPath(bucket: string, file: string): string {
    return join(this.#dir, bucket, "data", file);
  }

  #metaPath(bucket: string, key: string): string {
    return join(this.#dir, bucket, "meta", createHash("sha256").update(key).digest("hex"));
  }

  async #load(bucket: string): Promise<void> {
    await this.createBucket(bucket);
    const { objects } = this.#bucket(bucket);
    const metaDir = join(this.#dir, bucket, "meta");
    for (const name of await readdir(metaDir)) {
      if (name.includes(".")) {
        await rm(join(metaDir, name), { force: true });
        continue;
      }
      const object = JSON.parse(await readFile(join(metaDir, name), "utf8")) as StoredObject;
      objects.set(object.key, object);
    }
    const named = new Set([...objects.values()].map(({ file }) => file));
    for (const file of await readdir(join(this.#dir, bucket, "data"))) {
      if (!named.has(file)) await this.removeFile(this.#dataPath(bucket, file));
    }
  }
}

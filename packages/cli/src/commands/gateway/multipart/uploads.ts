/**
 * Multipart uploads that are neither completed nor aborted, and the answers to those that were completed.
 *
 * With a folder they survive the gateway: one subfolder for each, with `upload.json`, and for each part its bytes and a
 * record that names them. A part counts once its record is there, which is after its bytes. Of an upload that was
 * completed only `done.json` stays, which answers a client that asks again.
 */
import { randomUUID } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm, rmdir, stat } from "node:fs/promises";
import { join } from "node:path";
import * as v from "valibot";
import { AgaroseError } from "@agarose/core";
import { KeyLock } from "@agarose/s3-server/key-lock";
import { lockFolder } from "@agarose/pop";
import { syncFolder, writeWholeFile } from "@agarose/storage/files/whole-file";
import {
  CHECKSUM_ALGORITHMS,
  S3Error,
  type ChecksumAlgorithm,
  type KeptHeaders,
  type UploadChecksum,
} from "@agarose/s3-server";
import type { Spool, SpooledBody } from "../spool.ts";

/** A part that has arrived. */
export interface UploadedPart extends SpooledBody {
  readonly number: number;
  readonly modifiedMs: number;
}

/** One upload. */
export interface Upload {
  readonly id: string;
  readonly key: string;
  readonly described: KeptHeaders;
  /** How its parts are checked. */
  readonly checksum: UploadChecksum | undefined;
  readonly startedMs: number;
  /** By part number. */
  readonly parts: Map<number, UploadedPart>;
}

/** How an upload ended: what its client was answered. */
export interface Completed {
  readonly etag: string;
  /** By header name. */
  readonly checksums: Readonly<Record<string, string>>;
}

interface Completion {
  readonly key: string;
  /** The parts that the client has named, as text. Another list is another request. */
  readonly named: string;
  readonly completed: Promise<Completed>;
  isDone: boolean;
}

const DESCRIPTION = "upload.json";
const DONE = "done.json";
/** Answers that are kept for clients that ask again. */
const DONE_MAX = 10_000;
/** An upload to which nothing has come for so long gives its room to others. */
const IDLE_MS = 86_400_000;
/** What a client has left for so long is not completed any more. */
const LIFE_MS = 7 * 86_400_000;

const descriptionSchema = v.object({
  key: v.string(),
  described: v.object({ contentType: v.string(), headers: v.record(v.string(), v.string()) }),
  checksum: v.optional(
    v.object({ algorithm: v.custom<ChecksumAlgorithm>(isAlgorithm), type: v.picklist(["FULL_OBJECT", "COMPOSITE"]) }),
  ),
});
const partSchema = v.object({
  file: v.string(),
  bytes: v.number(),
  md5: v.string(),
  checksums: v.record(v.string(), v.string()),
  modifiedMs: v.number(),
});
const doneSchema = v.object({
  key: v.string(),
  named: v.string(),
  etag: v.string(),
  checksums: v.record(v.string(), v.string()),
});

function isAlgorithm(value: unknown): boolean {
  return CHECKSUM_ALGORITHMS.some((algorithm) => algorithm === value);
}

type Described = v.InferOutput<typeof descriptionSchema> & Pick<Upload, "checksum">;

/** The uploads of a gateway, by id. */
export class Uploads {
  readonly #spool: Spool;
  readonly #dir: string | undefined;
  readonly #nowMs: () => number;
  readonly #uploads = new Map<string, Upload>();
  /** Uploads that are being completed, or were. */
  readonly #completions = new Map<string, Completion>();
  /** Two bodies of one part come one after the other, so that its record names the one that counts. */
  readonly #locks = new KeyLock();

  private constructor(spool: Spool, dir: string | undefined, nowMs: () => number) {
    this.#spool = spool;
    this.#dir = dir;
    this.#nowMs = nowMs;
    spool.whenFull(() => this.#removeAged(IDLE_MS));
  }

  /**
   * Opens what an earlier gateway has left in `dir`, which `spool` is in. Without one, the end of the gateway forgets
   * all uploads. Removes what is a week old, and parts without a record.
   */
  static async open(spool: Spool, dir: string | undefined, nowMs: () => number): Promise<Uploads> {
    const uploads = new Uploads(spool, dir, nowMs);
    for (const entry of dir === undefined ? [] : await readdir(dir, { withFileTypes: true })) {
      if (entry.isDirectory()) await uploads.#load(entry.name);
    }
    return uploads;
  }

  /** Returns an upload that is neither being completed nor ended. Throws S3Error NoSuchUpload. */
  get(id: string, key: string): Upload {
    const upload = this.#uploads.get(id);
    if (upload?.key !== key) throw noSuchUpload();
    return upload;
  }

  list(): Upload[] {
    return [...this.#uploads.values()];
  }

  /** Begins an upload and returns its id. Uploads that began a week ago end. */
  async create(described: Pick<Upload, "key" | "described" | "checksum">): Promise<string> {
    await this.#removeAged(LIFE_MS);
    const id = randomUUID();
    if (this.#dir !== undefined) {
      await mkdir(join(this.#dir, id));
      await writeJson(join(this.#dir, id, DESCRIPTION), described);
      await syncFolder(this.#dir);
    }
    this.#uploads.set(id, { ...described, id, startedMs: this.#nowMs(), parts: new Map() });
    return id;
  }

  /**
   * Completes an upload by `store`, once: a client that asks again for the same parts, while that runs or later, gets
   * the same answer. While it runs no part comes and nothing is aborted. An upload that cannot be stored stays.
   *
   * @param named the parts that the client names, as text.
   * @throws S3Error NoSuchUpload, OperationAborted when it is being completed with other parts, or what `store` throws.
   */
  complete(
    { id, key, named }: { readonly id: string; readonly key: string; readonly named: string },
    store: (upload: Upload) => Promise<Completed>,
  ): Promise<Completed> {
    const before = this.#completions.get(id);
    if (before?.key === key && before.named === named) return before.completed;
    if (before?.key === key) {
      throw new S3Error("OperationAborted", "The upload was completed with other parts, or is being completed.");
    }
    const upload = this.get(id, key);
    this.#uploads.delete(id);
    const completed = this.#store(upload, named, store);
    // Whoever waits for it sees the failure.
    completed.catch(() => {});
    this.#completions.set(id, { key, named, completed, isDone: false });
    return completed;
  }

  async #store(upload: Upload, named: string, store: (upload: Upload) => Promise<Completed>): Promise<Completed> {
    const { id, key } = upload;
    let completed: Completed;
    try {
      completed = await store(upload);
    } catch (error) {
      this.#completions.delete(id);
      this.#uploads.set(id, upload);
      throw error;
    }
    if (this.#dir !== undefined) {
      // The object is stored: that a further answer cannot be kept is no reason to fail this one.
      await writeJson(join(this.#dir, id, DONE), { key, named, ...completed }).catch(() => {});
    }
    await this.#removeParts(upload);
    this.#completions.get(id)!.isDone = true;
    await this.#forgetOldest();
    return completed;
  }

  /** Keeps the latest answers: a client that asks again does so soon. */
  async #forgetOldest(): Promise<void> {
    if (this.#completions.size <= DONE_MAX) return;
    const done = [...this.#completions].filter(([, { isDone }]) => isDone);
    for (const [id] of done.slice(0, Math.max(0, done.length - DONE_MAX))) {
      this.#completions.delete(id);
      await this.#removeFolder(id);
    }
  }

  /** Ends an upload, so that no part comes any more, and removes what came. */
  async abort({ id }: Upload): Promise<void> {
    const upload = this.#uploads.get(id);
    if (!upload) return;
    this.#uploads.delete(id);
    await this.#removeParts(upload);
    await this.#removeFolder(id);
  }

  /** Ends the uploads to which nothing has come for `ageMs`, and those that began a week ago. */
  async #removeAged(ageMs: number): Promise<void> {
    const nowMs = this.#nowMs();
    for (const upload of this.#uploads.values()) {
      const lastMs = Math.max(upload.startedMs, ...[...upload.parts.values()].map(({ modifiedMs }) => modifiedMs));
      if (nowMs - upload.startedMs > LIFE_MS || nowMs - lastMs > ageMs) await this.abort(upload);
    }
  }

  /**
   * Keeps a part, in place of one that came before under its number. False when the upload ended meanwhile: then the
   * body is removed.
   */
  async keep(upload: Upload, number: number, received: SpooledBody): Promise<boolean> {
    const { id } = upload;
    return this.#locks.run(`${id} ${number}`, async () => {
      const isOpen = (): boolean => this.#uploads.get(id) === upload;
      const part = { ...received, number, modifiedMs: this.#nowMs() };
      let kept = part;
      try {
        if (isOpen()) kept = await this.#moved(id, part);
      } catch (error) {
        await this.#spool.remove(received);
        // The end of the upload has removed its folder.
        if (isOpen()) throw error;
        return false;
      }
      if (!isOpen()) {
        await this.#spool.remove(kept);
        return false;
      }
      const before = upload.parts.get(number);
      upload.parts.set(number, kept);
      if (before) await this.#spool.remove(before);
      return true;
    });
  }

  /** Removes all of an upload but the answer to its completion. */
  async #removeParts({ id, parts }: Pick<Upload, "id" | "parts">): Promise<void> {
    for (const part of parts.values()) await this.#spool.remove(part);
    if (this.#dir === undefined) return;
    const folder = join(this.#dir, id);
    const names = await readdir(folder).catch(() => []);
    for (const name of names.filter((one) => one !== DONE)) await rm(join(folder, name), { force: true });
    // Without an answer to keep, the folder goes too.
    await rmdir(folder).catch(() => {});
  }

  async #removeFolder(id: string): Promise<void> {
    // A part that comes at this moment may be moved into the folder while it is being emptied.
    const options = { recursive: true, force: true, maxRetries: 3 };
    if (this.#dir !== undefined) await rm(join(this.#dir, id), options);
  }

  /** The bytes go where a restart finds them, then the record that makes them a part. */
  async #moved(id: string, part: UploadedPart): Promise<UploadedPart> {
    if (this.#dir === undefined) return part;
    const folder = join(this.#dir, id);
    const file = `${part.number}-${randomUUID()}`;
    const path = join(folder, file);
    await sync(part.path);
    await rename(part.path, path);
    try {
      const { number, bytes, md5, checksums, modifiedMs } = part;
      await writeJson(join(folder, `${number}.json`), { file, bytes, md5, checksums, modifiedMs });
      return { ...part, path };
    } catch (error) {
      await rm(path, { force: true });
      throw error;
    }
  }

  async #load(id: string): Promise<void> {
    const folder = join(this.#dir!, id);
    const done = await readJson(join(folder, DONE), doneSchema);
    const description = done ?? (await readJson(join(folder, DESCRIPTION), descriptionSchema));
    // The folder of something else, or of an upload that no client knows.
    if (!description) return;
    const { mtimeMs: startedMs } = await stat(join(folder, done ? DONE : DESCRIPTION));
    if (this.#nowMs() - startedMs > LIFE_MS) return rm(folder, { recursive: true, force: true });
    if (done) {
      const { key, named, ...completed } = done;
      this.#completions.set(id, { key, named, completed: Promise.resolve(completed), isDone: true });
      return this.#removeParts({ id, parts: new Map() });
    }
    const parts = new Map<number, UploadedPart>();
    const names = await readdir(folder);
    for (const name of names) {
      const number = Number(/^(\d+)\.json$/.exec(name)?.[1]);
      const part = number > 0 ? await readJson(join(folder, name), partSchema) : undefined;
      if (!part || !names.includes(part.file)) continue;
      const path = join(folder, part.file);
      if ((await stat(path)).size !== part.bytes) continue;
      parts.set(number, { ...part, number, path });
      this.#spool.adopt(part.bytes);
    }
    const used = new Set([...parts.values()].map(({ path }) => path));
    for (const name of names) {
      const path = join(folder, name);
      if (/^\d+-/.test(name) && !used.has(path)) await rm(path, { force: true });
    }
    this.#uploads.set(id, { ...(description as Described), id, startedMs, parts });
  }
}

/** What a client is told of an upload that is not there. */
export function noSuchUpload(): S3Error {
  return new S3Error("NoSuchUpload", "The specified multipart upload does not exist.");
}

async function writeJson(path: string, value: object): Promise<void> {
  await writeWholeFile(path, (write) => write(Buffer.from(JSON.stringify(value))));
}

/** Undefined where the file is not there, or says something else. */
async function readJson<T>(path: string, schema: v.GenericSchema<unknown, T>): Promise<T | undefined> {
  const text = await readFile(path, "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    const result = v.safeParse(schema, JSON.parse(text));
    return result.success ? result.output : undefined;
  } catch {
    return undefined;
  }
}

async function sync(path: string): Promise<void> {
  const file = await open(path, "r+");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/**
 * Makes the folder of `--uploads` and locks it. A process that was killed has no lock, whatever its number. Returns
 * what gives it back. Throws USAGE when it is no folder, STORE_FAILED when another gateway has it.
 */
export async function takeFolder(dir: string): Promise<() => void> {
  await mkdir(dir, { recursive: true }).catch((error: unknown) => {
    throw new AgaroseError("USAGE", `--uploads ${dir} is no folder: ${(error as Error).message}`, { dir }, error);
  });
  return lockFolder(dir);
}

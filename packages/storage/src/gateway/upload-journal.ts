/**
 * Multipart uploads that survive the gateway, in one folder each: `upload.json`, and for each part its bytes and a
 * record that names them. A part counts once its record is there, which is after its bytes. Of an upload that was
 * completed only `done.json` stays, which answers a client that asks again.
 */
import { randomUUID } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm, rmdir, stat } from "node:fs/promises";
import { join } from "node:path";
import * as v from "valibot";
import { AgaroseError } from "@agarose/core";
import {
  CHECKSUM_ALGORITHMS,
  UPLOAD_LIFE_MS,
  type ChecksumAlgorithm,
  type CompletedUpload,
  type Upload,
  type UploadedPart,
  type UploadJournal,
} from "@agarose/s3-server";
import { writeError } from "../files/file-errors.ts";
import { syncFolder, writeWholeFile } from "../files/whole-file.ts";
import { BUCKET } from "./bucket.ts";
import type { Spool } from "./spool.ts";
import { shapeIn } from "../config/json.ts";

const DESCRIPTION = "upload.json";
const DONE = "done.json";

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

/** The folder of the uploads. */
export class FolderJournal implements UploadJournal {
  readonly #dir: string;
  readonly #spool: Spool;
  readonly #nowMs: () => number;

  /** @param dir the folder that `takeFolder` has taken, which `spool` is in. */
  constructor(dir: string, spool: Spool, nowMs: () => number) {
    this.#dir = dir;
    this.#spool = spool;
    this.#nowMs = nowMs;
  }

  /** Removes what is a week old, and parts without a record. */
  async load(): Promise<{ uploads: Upload[]; completed: CompletedUpload[] }> {
    const uploads: Upload[] = [];
    const completed: CompletedUpload[] = [];
    for (const entry of await readdir(this.#dir, { withFileTypes: true })) {
      if (!entry.isDirectory()) continue;
      const loaded = await this.#load(entry.name);
      if (loaded && "named" in loaded) completed.push(loaded);
      else if (loaded) uploads.push(loaded);
    }
    return { uploads, completed };
  }

  async begin({ id, key, described, checksum }: Upload): Promise<void> {
    await mkdir(join(this.#dir, id)).catch((error: unknown) => {
      throw writeError(this.#dir, error);
    });
    await writeJson(join(this.#dir, id, DESCRIPTION), { key, described, checksum });
    await syncFolder(this.#dir);
  }

  /** The bytes go where a restart finds them, then the record that makes them a part. */
  async keep(id: string, part: UploadedPart): Promise<UploadedPart> {
    const folder = join(this.#dir, id);
    const { number, bytes, md5, checksums, modifiedMs } = part;
    const file = `${number}-${randomUUID()}`;
    const path = join(folder, file);
    await sync(part.path);
    await rename(part.path, path);
    try {
      await writeJson(join(folder, `${number}.json`), { file, bytes, md5, checksums, modifiedMs });
      return { ...part, path };
    } catch (error) {
      await rm(path, { force: true });
      throw error;
    }
  }

  async complete({ id, key, named, etag, checksums }: CompletedUpload): Promise<void> {
    await writeJson(join(this.#dir, id, DONE), { key, named, etag, checksums });
  }

  async removeParts(id: string): Promise<void> {
    const folder = join(this.#dir, id);
    const names = await readdir(folder).catch(() => []);
    for (const name of names.filter((one) => one !== DONE)) await rm(join(folder, name), { force: true });
    // Without an answer to keep, the folder goes too.
    await rmdir(folder).catch(() => {});
  }

  async remove(id: string): Promise<void> {
    // A part that comes at this moment may be moved into the folder while it is being emptied.
    await rm(join(this.#dir, id), { recursive: true, force: true, maxRetries: 3 });
  }

  /** Undefined for the folder of something else, or of an upload that no client knows. */
  async #load(id: string): Promise<Upload | CompletedUpload | undefined> {
    const folder = join(this.#dir, id);
    const done = await readJson(join(folder, DONE), doneSchema);
    const description = done ?? (await readJson(join(folder, DESCRIPTION), descriptionSchema));
    if (!description) return undefined;
    const { mtimeMs: startedMs } = await stat(join(folder, done ? DONE : DESCRIPTION));
    if (this.#nowMs() - startedMs > UPLOAD_LIFE_MS) {
      await this.remove(id);
      return undefined;
    }
    if (done) {
      await this.removeParts(id);
      return { ...done, id, bucket: BUCKET };
    }
    const parts = await this.#loadParts(folder);
    return { ...(description as Described), id, bucket: BUCKET, startedMs, parts };
  }

  async #loadParts(folder: string): Promise<Map<number, UploadedPart>> {
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
    return parts;
  }
}

async function writeJson(path: string, value: object): Promise<void> {
  await writeWholeFile(path, (write) => write(Buffer.from(JSON.stringify(value))));
}

/** Undefined where the file is not there, or says something else. */
async function readJson<T>(path: string, schema: v.GenericSchema<unknown, T>): Promise<T | undefined> {
  const text = await readFile(path, "utf8").catch(() => undefined);
  return text === undefined ? undefined : shapeIn(schema, text);
}

async function sync(path: string): Promise<void> {
  const file = await open(path, "r+");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Where multipart uploads are kept for the next gateway. */
export interface UploadFolder {
  readonly dir: string;
  /**
   * Locks the folder for this process, and returns what unlocks it: `lockFolder` of @agarose/pop. A process that was
   * killed has no lock, whatever its number. Throws when another process has it.
   */
  readonly lock: (dir: string) => () => void;
}

/** Makes the folder and locks it. Returns what gives it back. Throws USAGE for no folder, or what `lock` throws. */
export async function takeFolder({ dir, lock }: UploadFolder): Promise<() => void> {
  await mkdir(dir, { recursive: true }).catch((error: unknown) => {
    throw new AgaroseError("USAGE", `${dir} is not a folder for uploads: ${(error as Error).message}`, { dir }, error);
  });
  return lock(dir);
}

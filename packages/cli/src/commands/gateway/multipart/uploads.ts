/**
 * Multipart uploads that are neither completed nor aborted.
 *
 * With a folder they survive the gateway: one subfolder for each, with `upload.json`, and for each part its bytes and a
 * record that names them. A part counts once its record is there, which is after its bytes.
 */
import { randomUUID } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import * as v from "valibot";
import { AgaroseError } from "@agarose/core";
import { KeyLock } from "@agarose/dev-world/key-lock";
import { lockFolder } from "@agarose/pop";
import { syncFolder, writeWholeFile } from "../../../lib/files/whole-file.ts";
import type { PutObject } from "../../../lib/objects/put-object.ts";
import type { Spool, SpooledBody } from "../spool.ts";

/** One upload. */
export interface Upload {
  readonly key: string;
  readonly described: Pick<PutObject, "contentType" | "headers">;
  /** By part number. */
  readonly parts: Map<number, SpooledBody>;
}

const DESCRIPTION = "upload.json";
/** What a client has left for so long is not completed any more. */
const LIFE_MS = 7 * 86_400_000;

const descriptionSchema = v.object({
  key: v.string(),
  described: v.object({ contentType: v.string(), headers: v.record(v.string(), v.string()) }),
});
const partSchema = v.object({
  file: v.string(),
  bytes: v.number(),
  md5: v.string(),
  checksums: v.record(v.string(), v.string()),
});

/** The uploads of a gateway, by id. */
export class Uploads {
  readonly #spool: Spool;
  readonly #dir: string | undefined;
  readonly #uploads = new Map<string, Upload>();
  /** Two bodies of one part come one after the other, so that its record names the one that counts. */
  readonly #locks = new KeyLock();

  private constructor(spool: Spool, dir: string | undefined) {
    this.#spool = spool;
    this.#dir = dir;
  }

  /**
   * Opens what an earlier gateway has left in `dir`, which `spool` is in. Without one, the end of the gateway forgets
   * all uploads. Removes what is a week old, and parts without a record.
   */
  static async open(spool: Spool, dir: string | undefined, nowMs: number): Promise<Uploads> {
    const uploads = new Uploads(spool, dir);
    for (const entry of dir === undefined ? [] : await readdir(dir, { withFileTypes: true })) {
      if (entry.isDirectory()) await uploads.#load(entry.name, nowMs);
    }
    return uploads;
  }

  get(id: string): Upload | undefined {
    return this.#uploads.get(id);
  }

  /** Begins an upload and returns its id. */
  async create(upload: Pick<Upload, "key" | "described">): Promise<string> {
    const id = randomUUID();
    if (this.#dir !== undefined) {
      await mkdir(join(this.#dir, id));
      await writeJson(join(this.#dir, id, DESCRIPTION), upload);
      await syncFolder(this.#dir);
    }
    this.#uploads.set(id, { ...upload, parts: new Map() });
    return id;
  }

  /**
   * Keeps a part, in place of one that came before under its number. False when the upload ended meanwhile: then the
   * body is removed.
   */
  async keep(id: string, upload: Upload, number: number, received: SpooledBody): Promise<boolean> {
    return this.#locks.run(`${id} ${number}`, async () => {
      const isOpen = (): boolean => this.#uploads.get(id) === upload;
      let body = received;
      try {
        if (isOpen()) body = await this.#moved(id, number, received);
      } catch (error) {
        await this.#spool.remove(received);
        // The end of the upload has removed its folder.
        if (isOpen()) throw error;
        return false;
      }
      if (!isOpen()) {
        await this.#spool.remove(body);
        return false;
      }
      const before = upload.parts.get(number);
      upload.parts.set(number, body);
      if (before) await this.#spool.remove(before);
      return true;
    });
  }

  /** Takes an upload away, so that no part comes any more. `putBack` undoes it. */
  take(id: string): void {
    this.#uploads.delete(id);
  }

  putBack(id: string, upload: Upload): void {
    this.#uploads.set(id, upload);
  }

  /** Removes the parts of an upload that was taken away. */
  async remove(id: string, { parts }: Upload): Promise<void> {
    for (const part of parts.values()) await this.#spool.remove(part);
    // A part that comes at this moment may be moved into the folder while it is being emptied.
    const options = { recursive: true, force: true, maxRetries: 3 };
    if (this.#dir !== undefined) await rm(join(this.#dir, id), options);
  }

  /** The bytes go where a restart finds them, then the record that makes them a part. */
  async #moved(id: string, number: number, body: SpooledBody): Promise<SpooledBody> {
    if (this.#dir === undefined) return body;
    const folder = join(this.#dir, id);
    const file = `${number}-${randomUUID()}`;
    const path = join(folder, file);
    await sync(body.path);
    await rename(body.path, path);
    try {
      const { bytes, md5, checksums } = body;
      await writeJson(join(folder, `${number}.json`), { file, bytes, md5, checksums });
      return { ...body, path };
    } catch (error) {
      await rm(path, { force: true });
      throw error;
    }
  }

  async #load(id: string, nowMs: number): Promise<void> {
    const folder = join(this.#dir!, id);
    const description = await readJson(join(folder, DESCRIPTION), descriptionSchema);
    // The folder of something else, or of an upload that no client knows.
    if (!description) return;
    if (nowMs - (await stat(join(folder, DESCRIPTION))).mtimeMs > LIFE_MS) {
      return rm(folder, { recursive: true, force: true });
    }
    const parts = new Map<number, SpooledBody>();
    const names = await readdir(folder);
    for (const name of names) {
      const number = Number(/^(\d+)\.json$/.exec(name)?.[1]);
      const part = number > 0 ? await readJson(join(folder, name), partSchema) : undefined;
      if (!part || !names.includes(part.file)) continue;
      const path = join(folder, part.file);
      if ((await stat(path)).size !== part.bytes) continue;
      parts.set(number, { ...part, path });
      this.#spool.adopt(part.bytes);
    }
    const used = new Set([...parts.values()].map(({ path }) => path));
    for (const name of names) {
      const path = join(folder, name);
      if (/^\d+-/.test(name) && !used.has(path)) await rm(path, { force: true });
    }
    this.#uploads.set(id, { ...description, parts });
  }
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

/**
 * Values by name on disk, with a bound on their bytes: what Workers KV is at Cloudflare. A value is there as a whole or
 * not at all, whenever the process ends; readers verify every chunk, so a damaged file costs a read from a bucket.
 */
import { createHash, randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { AgaroseError } from "@agarose/core";
import type { ValueStore } from "@agarose/worker/ports";

/** The values of one PoP. */
export class DiskValues implements ValueStore {
  readonly #folder: string;
  readonly #bytesMax: number;
  readonly #sizes: Map<string, number>;
  /** The last change of each file that is being changed. */
  readonly #changes = new Map<string, Promise<unknown>>();
  #bytes: number;

  private constructor(folder: string, bytesMax: number, sizes: Map<string, number>) {
    this.#folder = folder;
    this.#bytesMax = bytesMax;
    this.#sizes = sizes;
    this.#bytes = [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0);
  }

  /** Opens the values in `folder`, and removes what a killed process left half-written. */
  static async open(folder: string, bytesMax: number): Promise<DiskValues> {
    await rm(join(folder, "new"), { recursive: true, force: true });
    await mkdir(join(folder, "new"), { recursive: true });
    const sizes = new Map<string, number>();
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      if (entry.isFile()) sizes.set(entry.name, (await stat(join(entry.parentPath, entry.name))).size);
    }
    return new DiskValues(folder, bytesMax, sizes);
  }

  /** Bytes of all values. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Resolves to the value, or to null where there is none. Rejects where the disk fails. */
  get(name: string): Promise<string | null>;
  get(name: string, type: "arrayBuffer"): Promise<ArrayBuffer | null>;
  async get(name: string, type?: "arrayBuffer"): Promise<ArrayBuffer | string | null> {
    const file = fileOf(name);
    if (!this.#sizes.has(file)) return null;
    try {
      const bytes = await readFile(this.#pathOf(file));
      return type === "arrayBuffer" ? bufferOf(bytes) : bytes.toString("utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
      throw error;
    }
  }

  /** Stores a value. Rejects with STORE_FAILED beyond the bound, and where the disk fails; the old value then stays. */
  put(name: string, value: string | ArrayBuffer): Promise<void> {
    const bytes = typeof value === "string" ? Buffer.from(value) : new Uint8Array(value);
    const file = fileOf(name);
    return this.#inTurn(file, async () => {
      const more = bytes.length - (this.#sizes.get(file) ?? 0);
      if (this.#bytes + more > this.#bytesMax) throw tooMany(this.#bytes + more, this.#bytesMax);
      // Counted before it is written, so that writes at the same time do not exceed the bound together.
      this.#bytes += more;
      const written = join(this.#folder, "new", randomUUID());
      try {
        await writeFile(written, bytes);
        await mkdir(join(this.#folder, file.slice(0, 2)), { recursive: true });
        await rename(written, this.#pathOf(file));
        this.#sizes.set(file, bytes.length);
      } catch (error) {
        this.#bytes -= more;
        await rm(written, { force: true });
        throw error;
      }
    });
  }

  /** Removes a value. Rejects where the disk fails. */
  delete(name: string): Promise<void> {
    const file = fileOf(name);
    return this.#inTurn(file, async () => {
      await rm(this.#pathOf(file), { force: true });
      this.#bytes -= this.#sizes.get(file) ?? 0;
      this.#sizes.delete(file);
    });
  }

  #pathOf(file: string): string {
    return join(this.#folder, file.slice(0, 2), file);
  }

  /** Runs the changes of one file one after the other. */
  async #inTurn<T>(file: string, change: () => Promise<T>): Promise<T> {
    const turn = (this.#changes.get(file) ?? Promise.resolve()).then(change, change);
    this.#changes.set(file, turn);
    try {
      return await turn;
    } finally {
      if (this.#changes.get(file) === turn) this.#changes.delete(file);
    }
  }
}

/** The buffer of `bytes`: a copy where Node has read them into a larger one. */
function bufferOf(bytes: Buffer): ArrayBuffer {
  const { buffer, byteOffset, byteLength } = bytes;
  const isWhole = byteLength === buffer.byteLength;
  return (isWhole ? buffer : buffer.slice(byteOffset, byteOffset + byteLength)) as ArrayBuffer;
}

/** Names may have any character and length; files may not. */
function fileOf(name: string): string {
  return createHash("sha256").update(name).digest("hex");
}

function tooMany(bytes: number, bytesMax: number): AgaroseError {
  return new AgaroseError(
    "STORE_FAILED",
    `the chunk cache would hold ${bytes} bytes and its limit is ${bytesMax}: raise CACHE_BYTES or wait for an eviction`,
    { bytes, bytesMax },
  );
}

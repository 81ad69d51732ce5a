/**
 * Bodies on their way to the regions. A put reads its bytes twice, so they wait in a temporary folder, whose size is
 * bounded. A gateway that was killed leaves its folder, and the next one removes it.
 */
import { open, rm, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { receiveBody, S3Error, type BodyFile, type ChecksumAlgorithm, type Received } from "@agarose/s3-server";
import { tempError } from "../files/file-errors.ts";
import { makeTempFolder } from "../files/owned-files.ts";
import { writeAll } from "../files/whole-file.ts";

/** A folder of bodies. */
export class Spool {
  readonly #own: string | undefined;
  #dir: Promise<string>;
  readonly #bytesMax: number;
  #bytes = 0;
  #bodies = 0;
  /** Removes what nobody waits for. */
  #makeRoom: () => Promise<void> = async () => {};

  private constructor(own: string | undefined, dir: string, bytesMax: number) {
    this.#own = own;
    this.#dir = Promise.resolve(dir);
    this.#bytesMax = bytesMax;
  }

  /**
   * Opens a folder of this process below `own`, which no other process uses, or below that of the system. Removes those
   * of processes that are gone. Throws DISK_FULL where there is no room for one.
   */
  static async open(bytesMax: number, own?: string): Promise<Spool> {
    return new Spool(own, await newFolder(own, true), bytesMax);
  }

  /**
   * Receives the body of a request, which the caller removes.
   *
   * @param also a checksum to calculate even if the client sends none.
   * @throws S3Error ServiceUnavailable when the spool is full, DISK_FULL when its disk is, or what `receiveBody`
   *   throws. Nothing is left then.
   */
  async receive(received: Received, also?: ChecksumAlgorithm): Promise<BodyFile> {
    const { path, file } = await this.#create();
    let bytes = 0;
    const write = async (part: Uint8Array): Promise<void> => {
      if (this.#bytes + part.length > this.#bytesMax) await this.#makeRoom();
      if (this.#bytes + part.length > this.#bytesMax) throw this.#full();
      bytes += part.length;
      this.#bytes += part.length;
      await writeAll(part, path, (rest) => file.write(rest));
    };
    try {
      return { path, ...(await receiveBody(received, { write }, also)) };
    } catch (error) {
      await this.remove({ path, bytes });
      throw error;
    } finally {
      await file.close();
    }
  }

  /** Calls `makeRoom` before it refuses a body because it is full. */
  whenFull(makeRoom: () => Promise<void>): void {
    this.#makeRoom = makeRoom;
  }

  /** Counts a body that an earlier gateway has received. */
  adopt(bytes: number): void {
    this.#bytes += bytes;
  }

  async remove({ path, bytes }: Pick<BodyFile, "path" | "bytes">): Promise<void> {
    await rm(path, { force: true });
    this.#bytes -= bytes;
  }

  /** Removes the folder. */
  async close(): Promise<void> {
    await rm(await this.#dir, { recursive: true, force: true });
  }

  /** Opens a new file. Makes another folder where this one is gone: systems clean their temporary folder by age. */
  async #create(): Promise<{ readonly path: string; readonly file: FileHandle }> {
    const dir = this.#dir;
    const path = join(await dir, String(this.#bodies++));
    try {
      return { path, file: await open(path, "wx", 0o600) };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw tempError(error, this.#own);
    }
    if (this.#dir === dir) {
      this.#dir = newFolder(this.#own, false);
      this.#dir.catch(() => (this.#dir = dir));
    }
    return this.#create();
  }

  #full(): S3Error {
    const held = `the gateway holds ${this.#bytes} of ${this.#bytesMax} bytes`;
    const message = `${held}: send it again later, abort uploads that nobody completes, or give the spool more room`;
    return new S3Error("ServiceUnavailable", message);
  }
}

/** @param isFirst whether this process has no other one. */
function newFolder(own: string | undefined, isFirst: boolean): Promise<string> {
  return makeTempFolder("gateway", { below: own, isSole: isFirst && own !== undefined });
}

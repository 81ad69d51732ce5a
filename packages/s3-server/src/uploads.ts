/** Multipart uploads that are neither completed nor aborted, and the answers to those that were completed. */
import { randomUUID } from "node:crypto";
import { KeyLock } from "./key-lock.ts";
import type { KeptHeaders } from "./wire/answered-object.ts";
import type { BodyFile } from "./wire/body.ts";
import type { UploadChecksum } from "./wire/list.ts";
import type { ObjectName } from "./wire/request.ts";
import { S3Error } from "./wire/s3-error.ts";

/** A part that has arrived. */
export interface UploadedPart extends BodyFile {
  readonly number: number;
  readonly modifiedMs: number;
}

/** One upload. */
export interface Upload extends ObjectName {
  readonly id: string;
  readonly described: KeptHeaders;
  /** How its parts are checked. */
  readonly checksum: UploadChecksum | undefined;
  readonly startedMs: number;
  /** By part number. */
  readonly parts: Map<number, UploadedPart>;
}

/** How an upload ended: what its client was answered. */
export interface Completed {
  /** With quotes. */
  readonly etag: string;
  /** By header name. */
  readonly checksums: Readonly<Record<string, string>>;
}

/** An upload that was completed, as a client asks for it again. */
export interface CompletedUpload extends ObjectName, Completed {
  readonly id: string;
  /** The parts that the client has named, as text. Another list is another request. */
  readonly named: string;
}

/** Keeps uploads for the next server. Without one, the end of the server forgets them. */
export interface UploadJournal {
  /** Returns what an earlier server has left. */
  load(): Promise<{ readonly uploads: readonly Upload[]; readonly completed: readonly CompletedUpload[] }>;
  begin(upload: Upload): Promise<void>;
  /** Keeps a part and returns it with the path that it has from then on. */
  keep(id: string, part: UploadedPart): Promise<UploadedPart>;
  /** Keeps the answer to an upload. */
  complete(upload: CompletedUpload): Promise<void>;
  /** Removes all of an upload but the answer to its completion. */
  removeParts(id: string): Promise<void>;
  /** Removes all of an upload. */
  remove(id: string): Promise<void>;
}

/** Dependencies of uploads. */
export interface UploadsOptions {
  readonly discard: (body: BodyFile) => Promise<void>;
  readonly nowMs: () => number;
  readonly journal?: UploadJournal | undefined;
}

interface Completion extends ObjectName {
  readonly named: string;
  readonly completed: Promise<Completed>;
  isDone: boolean;
}

/** Answers that are kept for clients that ask again. */
const DONE_MAX = 10_000;
/** An upload to which nothing has come for so long gives its room to others. */
const IDLE_MS = 86_400_000;
/** An upload that is idle for so long can no longer be completed. */
export const UPLOAD_LIFE_MS = 7 * 86_400_000;

/** The uploads of a server, by id. */
export class Uploads {
  readonly #options: UploadsOptions;
  readonly #uploads = new Map<string, Upload>();
  /** Uploads that are being completed, or were. */
  readonly #completions = new Map<string, Completion>();
  /** Two bodies of one part come one after the other, so that its record names the one that counts. */
  readonly #locks = new KeyLock();

  constructor(options: UploadsOptions) {
    this.#options = options;
  }

  /** Opens what an earlier server has left in the journal. */
  static async open(options: UploadsOptions): Promise<Uploads> {
    const opened = new Uploads(options);
    const { uploads = [], completed = [] } = (await options.journal?.load()) ?? {};
    for (const upload of uploads) opened.#uploads.set(upload.id, upload);
    for (const { id, etag, checksums, ...asked } of completed) {
      opened.#completions.set(id, { ...asked, completed: Promise.resolve({ etag, checksums }), isDone: true });
    }
    return opened;
  }

  /** Returns an upload that is neither being completed nor ended. Throws S3Error NoSuchUpload. */
  get(id: string, { bucket, key }: ObjectName): Upload {
    const upload = this.#uploads.get(id);
    if (upload?.key !== key || upload.bucket !== bucket) throw noSuchUpload();
    return upload;
  }

  list(bucket: string): Upload[] {
    return [...this.#uploads.values()].filter((upload) => upload.bucket === bucket);
  }

  /** Starts an upload and returns its id. Uploads older than a week are deleted. */
  async create(described: Pick<Upload, "bucket" | "key" | "described" | "checksum">): Promise<string> {
    await this.#removeAged(UPLOAD_LIFE_MS);
    const upload = { ...described, id: randomUUID(), startedMs: this.#options.nowMs(), parts: new Map() };
    await this.#options.journal?.begin(upload);
    this.#uploads.set(upload.id, upload);
    return upload.id;
  }

  /**
   * Completes an upload by `store`, once: a client that asks again for the same parts, while that runs or later, gets
   * the same answer. While it runs no part comes and nothing is aborted. An upload that cannot be stored stays.
   *
   * @throws S3Error NoSuchUpload, OperationAborted when it is being completed with other parts, or what `store` throws.
   */
  complete(
    { id, bucket, key, named }: Omit<CompletedUpload, keyof Completed>,
    store: (upload: Upload) => Promise<Completed>,
  ): Promise<Completed> {
    const before = this.#completions.get(id);
    if (before?.key === key && before.bucket === bucket) {
      if (before.named === named) return before.completed;
      throw new S3Error("OperationAborted", "The upload was completed with other parts, or is being completed.");
    }
    const upload = this.get(id, { bucket, key });
    this.#uploads.delete(id);
    const completed = this.#store(upload, named, store);
    // Whoever waits for it sees the failure.
    completed.catch(() => {});
    this.#completions.set(id, { bucket, key, named, completed, isDone: false });
    return completed;
  }

  async #store(upload: Upload, named: string, store: (upload: Upload) => Promise<Completed>): Promise<Completed> {
    const { id, bucket, key } = upload;
    let completed: Completed;
    try {
      completed = await store(upload);
    } catch (error) {
      this.#completions.delete(id);
      this.#uploads.set(id, upload);
      throw error;
    }
    // The object is stored: that a further answer cannot be kept is no reason to fail this one.
    await this.#options.journal?.complete({ id, bucket, key, named, ...completed }).catch(() => {});
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
      await this.#options.journal?.remove(id);
    }
  }

  /** Ends an upload, so that no part comes any more, and removes what came. */
  async abort({ id }: Upload): Promise<void> {
    const upload = this.#uploads.get(id);
    if (!upload) return;
    this.#uploads.delete(id);
    await this.#removeParts(upload);
    await this.#options.journal?.remove(id);
  }

  /** Ends the uploads to which nothing has come for a day, so that others have room. */
  async removeIdle(): Promise<void> {
    await this.#removeAged(IDLE_MS);
  }

  /** Ends the uploads to which nothing has come for `ageMs`, and those that began a week ago. */
  async #removeAged(ageMs: number): Promise<void> {
    const nowMs = this.#options.nowMs();
    for (const upload of this.#uploads.values()) {
      const lastMs = Math.max(upload.startedMs, ...[...upload.parts.values()].map(({ modifiedMs }) => modifiedMs));
      if (nowMs - upload.startedMs > UPLOAD_LIFE_MS || nowMs - lastMs > ageMs) await this.abort(upload);
    }
  }

  /**
   * Keeps a part, in place of one that came before under its number. Undefined when the upload ended in the meantime:
   * then the body is removed.
   */
  async keep(upload: Upload, number: number, received: BodyFile): Promise<UploadedPart | undefined> {
    const { id } = upload;
    const { discard, journal, nowMs } = this.#options;
    return this.#locks.run(`${id} ${number}`, async () => {
      const isOpen = (): boolean => this.#uploads.get(id) === upload;
      const part = { ...received, number, modifiedMs: nowMs() };
      let kept: UploadedPart = part;
      try {
        if (isOpen() && journal) kept = await journal.keep(id, part);
      } catch (error) {
        await discard(received);
        // The end of the upload has removed its folder.
        if (isOpen()) throw error;
        return undefined;
      }
      if (!isOpen()) {
        await discard(kept);
        return undefined;
      }
      const before = upload.parts.get(number);
      upload.parts.set(number, kept);
      if (before) await discard(before);
      return kept;
    });
  }

  async #removeParts({ id, parts }: Upload): Promise<void> {
    for (const part of parts.values()) await this.#options.discard(part);
    await this.#options.journal?.removeParts(id);
  }
}

/** The answer about an upload that does not exist. */
export function noSuchUpload(): S3Error {
  return new S3Error("NoSuchUpload", "The specified multipart upload does not exist.");
}

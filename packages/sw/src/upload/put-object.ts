/**
 * Stores an object from a page: a server of the app begins and commits the upload, and the chunks that the page makes
 * go to the regions by URLs that it signs.
 */
import { AgaroseError, systemClock, toAgaroseError, type Clock, type ErrorCode } from "@agarose/core";
import { chunkBytes, isRecord } from "@agarose/core/format";
import type { BlobCode, CodedBlob } from "./code-blob.ts";
import type { SendChunk } from "./send-chunk.ts";

/** How far an upload is. */
export interface UploadProgress {
  /** `code` counts bytes of the file, `send` those of its chunks. */
  readonly step: "code" | "send";
  readonly bytes: number;
  readonly total: number;
}

/** Options of `putObject`. */
export interface PutObjectOptions {
  /**
   * Where the app's server has mounted `uploads` of its deployment.
   *
   * @defaultValue `/v1/uploads`
   */
  readonly endpoint?: string | undefined;
  /** The result of `signUpload`. Without one, the server asks the app. */
  readonly token?: string | undefined;
  /**
   * @defaultValue the type of the blob, or else `application/octet-stream`
   */
  readonly contentType?: string | undefined;
  /** Keeps an upload that was begun, so that a page that was loaded again continues with it: `localStorage`. */
  readonly memory?: UploadMemory | undefined;
  readonly onProgress?: ((progress: UploadProgress) => void) | undefined;
  /** Aborts the upload. `memory` keeps its state, so that it can continue. */
  readonly signal?: AbortSignal | undefined;
}

/** The part of `Storage` that an upload uses. */
export interface UploadMemory {
  getItem(name: string): string | null;
  setItem(name: string, value: string): void;
  removeItem(name: string): void;
}

/** The stored object. */
export interface StoredObject {
  readonly key: string;
  /** The first 32 hex digits of its SHA-256. */
  readonly version: string;
  readonly bytes: number;
  /** ISO 8601, UTC. */
  readonly modified: string;
  /** Chunks that their regions did not take: `agarose repair` makes them. */
  readonly missing: readonly number[];
}

/** The browser functions that `uploadObject` uses. */
export interface UploadPorts {
  readonly fetch: typeof fetch;
  readonly send: SendChunk;
  readonly code: (
    blob: Blob,
    code: BlobCode,
    onCoded: (bytes: number) => void,
    signal: AbortSignal | undefined,
  ) => Promise<CodedBlob>;
  readonly clock?: Clock;
}

interface Grant {
  readonly ticket: string;
  readonly lastsMs: number;
  readonly coded?: BlobCode & {
    readonly needed: number;
    readonly chunks: readonly {
      readonly url: string;
      readonly headers: Record<string, string>;
      readonly stored: boolean;
    }[];
  };
}

/** The state of an upload in `memory`. */
interface Begun {
  readonly ticket: string;
  readonly sha256: string;
}

const ENDPOINT = "/v1/uploads";
const TRIES = 3;
const PAUSE_MS = 1_000;
/** The statuses of a chunk that is there: taken now, or by an earlier try. */
const TAKEN: ReadonlySet<number> = new Set([200, 204, 412]);

/** `putObject` with its ports. */
export async function uploadObject(
  key: string,
  blob: Blob,
  options: PutObjectOptions,
  ports: UploadPorts,
): Promise<StoredObject> {
  return new Upload(key, blob, options, ports).run();
}

class Upload {
  readonly #key: string;
  readonly #blob: Blob;
  readonly #options: PutObjectOptions;
  readonly #ports: UploadPorts;
  readonly #endpoint: string;

  constructor(key: string, blob: Blob, options: PutObjectOptions, ports: UploadPorts) {
    this.#key = key;
    this.#blob = blob;
    this.#options = options;
    this.#ports = ports;
    this.#endpoint = options.endpoint ?? ENDPOINT;
  }

  async run(): Promise<StoredObject> {
    const begun = this.#remembered();
    const grant = begun && (await this.#goOn(begun.ticket));
    const stored = (grant && (await this.#store(grant, begun.sha256))) ?? (await this.#store(await this.#begin()));
    this.#options.memory?.removeItem(this.#name);
    return stored!;
  }

  /** Undefined where the file is not the one whose hash is `expected`: its chunks must not mix with others. */
  async #store(grant: Grant, expected?: string): Promise<StoredObject | undefined> {
    const { coded: code } = grant;
    if (!code) return this.#ask(`/${grant.ticket}`, this.#blob);
    const { signal } = this.#options;
    const report = (bytes: number): void => {
      signal?.throwIfAborted();
      this.#report("code", bytes, this.#blob.size);
    };
    const coded = await this.#ports.code(this.#blob, code, report, signal);
    signal?.throwIfAborted();
    if (expected !== undefined && coded.sha256 !== expected) return undefined;
    this.#remember({ ticket: grant.ticket, sha256: coded.sha256 });
    const { ticket } = await this.#send(grant, coded);
    // A commit whose answer is lost is answered again.
    return this.#again(isNetworkFailure, () =>
      this.#ask(`/${ticket}?sha256=${coded.sha256}`, coded.leaves as Uint8Array<ArrayBuffer>),
    );
  }

  /** Sends the missing chunks, and returns the grant that is valid afterwards. */
  async #send(given: Grant, { sha256, chunks }: CodedBlob): Promise<Grant> {
    const { clock = systemClock } = this.#ports;
    const { signal } = this.#options;
    let grant = given;
    let cancel = (): void => {};
    let isOver = false;
    const renew = async (): Promise<void> => {
      const next = await this.#goOn(grant.ticket).catch(() => undefined);
      if (next?.coded) this.#remember({ ticket: (grant = next).ticket, sha256 });
      plan();
    };
    const plan = (): void => {
      if (!isOver) cancel = clock.after(grant.lastsMs / 2, () => void renew());
    };
    plan();
    const { needed, chunks: places, ...code } = given.coded!;
    const bytes = chunkBytes(code);
    const sent = places.map(({ stored }) => (stored ? bytes : 0));
    const onSent = (chunk: number, count: number): void => {
      sent[chunk] = count;
      this.#report(
        "send",
        sent.reduce((sum, one) => sum + one, 0),
        bytes * places.length,
      );
    };
    const pending = places.flatMap(({ stored }, chunk) => (stored ? [] : [chunk]));
    const send = async (chunk: number): Promise<void> => {
      const { url, headers } = grant.coded!.chunks[chunk]!;
      const sending = { onSent: (count: number) => onSent(chunk, count), signal };
      const status = await this.#ports.send({ url, headers }, chunks[chunk]!, sending);
      if (!TAKEN.has(status)) throw new AgaroseError("STORE_FAILED", `the region of chunk ${chunk} answered ${status}`);
      onSent(chunk, bytes);
    };
    const always = (): boolean => true;
    const outcomes = await Promise.allSettled(pending.map((chunk) => this.#again(always, () => send(chunk))));
    isOver = true;
    cancel();
    signal?.throwIfAborted();
    const failed = outcomes.flatMap(({ status, ...outcome }) =>
      status === "rejected" ? [toAgaroseError((outcome as PromiseRejectedResult).reason, "STORE_FAILED")] : [],
    );
    const stored = places.length - failed.length;
    if (stored >= needed) return grant;
    throw new AgaroseError(
      "STORE_FAILED",
      `${stored} of ${places.length} chunks of ${JSON.stringify(this.#key)} are stored, ${needed} are needed: try again ` +
        `once the regions answer. First error: ${failed[0]!.message}`,
      { key: this.#key, stored, needed, first: failed[0]!.toJSON() },
      failed[0],
    );
  }

  /** Tries what fails as `isTransient` says three times. */
  async #again<T>(isTransient: (error: unknown) => boolean, run: () => Promise<T>): Promise<T> {
    const { clock = systemClock } = this.#ports;
    const { signal } = this.#options;
    for (let tried = 1; ; tried++) {
      try {
        return await run();
      } catch (error) {
        if (tried === TRIES || !isTransient(error)) throw error;
        signal?.throwIfAborted();
        await new Promise<void>((resolve) => clock.after(PAUSE_MS * tried, resolve));
        signal?.throwIfAborted();
      }
    }
  }

  #begin(): Promise<Grant> {
    const { token, contentType = this.#blob.type } = this.#options;
    const wish = { key: this.#key, bytes: this.#blob.size, ...(contentType && { contentType }), token };
    return this.#ask("", JSON.stringify(wish));
  }

  /** Undefined where the server knows nothing of the upload any more. */
  async #goOn(ticket: string): Promise<Grant | undefined> {
    try {
      return await this.#ask<Grant>(`/${ticket}`);
    } catch (error) {
      if (["FORBIDDEN", "UPLOAD_REFUSED"].includes(toAgaroseError(error).code)) return undefined;
      throw error;
    }
  }

  async #ask<T>(path: string, body?: BodyInit): Promise<T> {
    const { signal } = this.#options;
    const response = await this.#ports.fetch(this.#endpoint + path, {
      ...(body !== undefined && { method: "POST", body }),
      ...(signal && { signal }),
    });
    const answer: unknown = await response.json().catch(() => undefined);
    if (response.ok && isRecord(answer)) return answer as T;
    const error = isRecord(answer) && isRecord(answer["error"]) ? answer["error"] : {};
    const { code = "SOURCE_FAILED", message = `${this.#endpoint} answered ${response.status}`, details } = error;
    throw new AgaroseError(code as ErrorCode, message as string, details as Record<string, unknown>);
  }

  #report(step: UploadProgress["step"], bytes: number, total: number): void {
    this.#options.onProgress?.({ step, bytes, total });
  }

  get #name(): string {
    return `agarose-upload ${this.#endpoint} ${this.#key}`;
  }

  #remember(begun: Begun): void {
    try {
      this.#options.memory?.setItem(this.#name, JSON.stringify(begun));
    } catch {
      // It is full, or forbidden: this upload does not outlive its page.
    }
  }

  #remembered(): Begun | undefined {
    try {
      return (JSON.parse(this.#options.memory?.getItem(this.#name) ?? "null") as Begun | null) ?? undefined;
    } catch {
      return undefined;
    }
  }
}

/** `fetch` rejects with a TypeError where there is no answer. */
function isNetworkFailure(error: unknown): boolean {
  return error instanceof TypeError;
}

/**
 * A bucket as the commands use it.
 */
import type { Readable } from "node:stream";
import type { FetchedResponse } from "@agarose/core";
import type { RegionConfig } from "../config/config.ts";

/** A region's bucket. */
export interface Store {
  readonly region: RegionConfig;
  /**
   * Sends a GET. Resolves with every HTTP status, and with the header `etag`; without one rejects (SOURCE_FAILED or
   * CREDENTIALS_REFUSED). An S3 store gives the headers that describe the object, too.
   */
  get(name: string, options?: GetOptions): Promise<FetchedResponse>;
  /** Length of an object in bytes; undefined when there is none. */
  head(name: string, signal?: AbortSignal): Promise<number | undefined>;
  /**
   * Stores an object. When it fails, the object is absent or still the old one. A stream must have exactly `bytes`
   * bytes. Rejects with STORE_FAILED and `details.status` 412 when the condition does not hold.
   */
  put(name: string, body: PutBody, options: PutOptions): Promise<PutReceipt>;
  /**
   * By which anyone may store an object for `seconds` from now on, and of these options nothing else. Stores that have
   * no URLs lack it. Rejects with CREDENTIALS_REFUSED.
   */
  presignPut?(name: string, options: Omit<PutOptions, "ifMatch" | "signal">, seconds: number): Promise<PresignedPut>;
  /**
   * All objects below `prefix` whose names are greater than `after`, in order of their names. Rejects with
   * SOURCE_FAILED when the store's answer is no such listing.
   */
  list(prefix: string, signal?: AbortSignal, after?: string): AsyncIterable<ListedObject>;
  /** Removes objects and returns those that could not be removed. Absent ones count as removed. */
  remove(names: readonly string[], signal?: AbortSignal): Promise<{ name: string; problem: string }[]>;
  /**
   * Removes one object if it has this ETag. Rejects as `put` does when the condition does not hold. Some stores ignore
   * it; `agarose doctor` says which.
   */
  removeMatching(name: string, etag: string, signal?: AbortSignal): Promise<void>;
  /** Whether uploads carry checksum headers: true until the store has refused them. */
  readonly takesChecksums?: boolean;
  /** Milliseconds by which the region's clock is ahead of this machine's, by its last answer. Default: 0. */
  readonly clockAheadMs?: number;
  close(): void;
}

/** Options of `Store.get`. */
export interface GetOptions {
  /** Value of a Range header. */
  readonly range?: string;
  /** Get only the object that has this ETag; the status is 412 otherwise. Some stores ignore it. */
  readonly ifMatch?: string;
  readonly signal?: AbortSignal;
}

/** The content of `Store.put`: all bytes, or a stream of known length. */
export type PutBody = Uint8Array | Readable;

/** Options of `Store.put`. */
export interface PutOptions {
  readonly bytes: number;
  readonly contentType: string;
  readonly cacheControl?: string;
  /** More headers that describe the object, with names in lower case. S3 stores alone keep them. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Store only if nothing (`*`) is there. Some stores ignore it; `agarose doctor` says which. */
  readonly ifNoneMatch?: "*";
  /** Store only if the object that is there has this ETag. Some stores ignore it. */
  readonly ifMatch?: string;
  readonly signal?: AbortSignal;
}

/** A request without its body, whose length is signed. */
export interface PresignedPut {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** A store's answer about an object that it has stored. */
export interface PutReceipt {
  /** As the store spells it, usually with quotes. */
  readonly etag: string | undefined;
}

/** An object in a listing. */
export interface ListedObject {
  readonly name: string;
  readonly bytes: number;
  readonly modifiedMs: number;
  /** As the store spells it. Of a plain put most stores give the MD5 of the bytes. */
  readonly etag?: string;
}

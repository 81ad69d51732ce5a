/**
 * What the commands need of a bucket.
 */
import type { Readable } from "node:stream";
import type { FetchedResponse } from "@agarose/core";
import type { Region } from "../config.ts";

export interface Store {
  readonly region: Region;
  /** A GET; every HTTP status is an answer, only a missing answer rejects (SOURCE_FAILED, or CREDENTIALS_REFUSED). */
  get(name: string, options?: GetOptions): Promise<FetchedResponse>;
  /** Length of an object, undefined when it is not there. */
  head(name: string, signal?: AbortSignal): Promise<number | undefined>;
  /** Stores an object; one that fails is not there, or still the old one. A stream must have exactly `bytes` bytes. */
  put(name: string, body: PutBody, options: PutOptions): Promise<void>;
  /** All objects below `prefix`, in order of their names. */
  list(prefix: string, signal?: AbortSignal): AsyncIterable<ListedObject>;
  /** Removes objects; says which could not be removed. Those that are not there count as removed. */
  remove(names: readonly string[]): Promise<{ name: string; problem: string }[]>;
  close(): void;
}

export interface GetOptions {
  /** Value of a Range header. */
  readonly range?: string;
  readonly signal?: AbortSignal;
}

export type PutBody = Uint8Array | Readable;

export interface PutOptions {
  readonly bytes: number;
  readonly contentType: string;
  readonly cacheControl?: string;
  readonly signal?: AbortSignal;
}

export interface ListedObject {
  readonly name: string;
  readonly bytes: number;
  readonly modifiedMs: number;
}

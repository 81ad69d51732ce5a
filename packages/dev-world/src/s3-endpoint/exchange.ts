/** One request and its response, as the operations see them. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { MultipartUploads } from "./multipart.ts";
import type { StoredObjects } from "./object-store.ts";
import type { SigningContext } from "./wire/signature.ts";
import type { KeyLock } from "./key-lock.ts";

/** A request, what it addresses, and what it works on. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly bucket: string;
  /** Decoded. Empty when the request addresses the bucket itself. */
  readonly key: string;
  readonly query: URLSearchParams;
  readonly signing: SigningContext | undefined;
  readonly store: StoredObjects;
  readonly uploads: MultipartUploads;
  readonly locks: KeyLock;
  readonly nowMs: () => number;
}

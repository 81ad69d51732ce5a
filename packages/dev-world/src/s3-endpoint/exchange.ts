/** One request and its response, as the operations see them. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { MultipartUploads } from "./multipart.ts";
import type { StoredObjects } from "./object-store.ts";
import type { S3Request } from "@agarose/s3-server/wire/request";
import type { KeyLock } from "@agarose/s3-server/key-lock";

/** A request, what it asks for, and what it works on. */
export interface Exchange extends S3Request {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly store: StoredObjects;
  readonly uploads: MultipartUploads;
  readonly locks: KeyLock;
  /** Who owns all buckets. */
  readonly owner: string;
  readonly nowMs: () => number;
}

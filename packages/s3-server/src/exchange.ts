/** One request and its response, as the operations see them. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Backend } from "./backend.ts";
import type { KeyLock } from "./key-lock.ts";
import type { KeyPair, Rights } from "./rights.ts";
import type { Validators } from "./wire/conditions.ts";
import type { S3Request } from "./wire/request.ts";
import { S3Error } from "./wire/s3-error.ts";

/** A request, what it asks for, and what it works on. */
export interface Exchange extends S3Request {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly backend: Backend;
  /** Writers of one key wait for each other. */
  readonly locks: KeyLock;
  /** The owner of all buckets: the access key id of the first pair of keys. */
  readonly owner: string;
  /** The rights of the client, of which all but the keys in the body is checked. */
  readonly rights: Rights;
  /** Of all clients: a form says inside who has allowed it. */
  readonly pairs: readonly KeyPair[];
  /** When the request came, in milliseconds since 1970. */
  readonly nowMs: number;
  /** Aborts when the client has left. */
  readonly left: AbortSignal;
}

/** Runs `write` once earlier writes of the same object have ended. */
export function inTurn<T>({ locks, bucket }: Exchange, key: string, write: () => Promise<T>): Promise<T> {
  return locks.run(`${bucket}/${key}`, write);
}

/** Tells the client of a version by which it can be found later, unless the answer has begun. */
export function tellVersion({ response }: Exchange, { versionId }: Pick<Validators, "versionId">): void {
  if (versionId !== undefined && !response.headersSent) response.setHeader("x-amz-version-id", versionId);
}

/** Says in words of S3 why the backend failed. */
export function errorOf({ backend }: Pick<Exchange, "backend">, cause: unknown, isRead = false): S3Error {
  if (backend.errorOf) return backend.errorOf(cause, isRead);
  if (cause instanceof S3Error) return cause;
  return new S3Error("InternalError", cause instanceof Error ? cause.message : String(cause));
}

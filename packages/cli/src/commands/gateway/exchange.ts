/** One request of a client of the gateway, and what the operations work on. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { KeyLock } from "@agarose/s3-server/key-lock";
import type { S3Request } from "@agarose/s3-server";
import type { DeploymentParts } from "@agarose/storage/parts";
import type { Breaker } from "@agarose/storage/regions/ask-regions";
import type { KnownRegions } from "@agarose/storage/regions/known-regions";
import type { Consistency } from "@agarose/storage/objects/manifests";
import type { SortedKeys } from "./sorted-keys.ts";
import type { Uploads } from "./multipart/uploads.ts";
import type { Spool } from "./spool.ts";

/** The one bucket that a gateway has: the deployment. */
export const BUCKET = "agarose";
/** The environment variable of the key id that clients sign with. */
export const KEY_ID = "AGAROSE_GATEWAY_ACCESS_KEY_ID";
/** The environment variable of its secret. */
export const SECRET = "AGAROSE_GATEWAY_SECRET_ACCESS_KEY";

/** What all requests of a gateway share. */
export interface Shared {
  readonly context: DeploymentParts & {
    readonly breaker: Breaker;
    readonly knownRegions: KnownRegions;
    /** Of reads and lists. What a write decides by is strong all the same. */
    readonly consistency: Consistency;
  };
  readonly keys: SortedKeys;
  readonly spool: Spool;
  readonly uploads: Uploads;
  /** Writers of one key wait for each other. */
  readonly locks: KeyLock;
  /** Who owns the bucket: the access key id of the clients. */
  readonly owner: string;
  /** When the gateway began, in milliseconds since 1970. */
  readonly startedMs: number;
  /** Milliseconds since 1970. */
  readonly nowMs: () => number;
}

/** A request, what it asks for, and what it works on. */
export interface Exchange extends Shared, S3Request {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Aborts when the client has left, and when the gateway ends. */
  readonly left: AbortSignal;
}

/** One request of a client of the gateway, and what the operations work on. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { KeyLock } from "@agarose/dev-world/key-lock";
import type { SigningContext } from "@agarose/dev-world/s3-wire";
import type { CommandContext } from "../../lib/context.ts";
import type { Breaker } from "../../lib/objects/commit/ask-regions.ts";
import type { PutObject } from "../../lib/objects/put-object.ts";
import type { SortedKeys } from "./sorted-keys.ts";
import type { Spool, SpooledBody } from "./spool.ts";

/** The one bucket that a gateway has: the deployment. */
export const BUCKET = "agarose";

/** A multipart upload that is neither completed nor aborted. */
export interface Upload {
  readonly key: string;
  readonly described: Pick<PutObject, "contentType" | "headers">;
  /** By part number. */
  readonly parts: Map<number, SpooledBody>;
}

/** What all requests of a gateway share. */
export interface Shared {
  readonly context: CommandContext & { readonly breaker: Breaker };
  readonly keys: SortedKeys;
  readonly spool: Spool;
  /** By id. The end of the gateway forgets them. */
  readonly uploads: Map<string, Upload>;
  /** Writers of one key wait for each other. */
  readonly locks: KeyLock;
  /** Milliseconds since 1970. */
  readonly nowMs: () => number;
}

/** A request, what it addresses, and what it works on. */
export interface Exchange extends Shared {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Decoded. Empty when the request addresses the bucket itself. */
  readonly key: string;
  readonly query: URLSearchParams;
  readonly signing: SigningContext;
  /** Aborts when the client has left, and when the gateway ends. */
  readonly left: AbortSignal;
}

/** One request of a client of the gateway, and what the operations work on. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { KeyLock } from "@agarose/dev-world/key-lock";
import type { SigningContext } from "@agarose/dev-world/s3-wire";
import type { CommandContext } from "../../lib/context.ts";
import type { Breaker } from "../../lib/objects/commit/ask-regions.ts";
import type { SortedKeys } from "./sorted-keys.ts";
import type { Uploads } from "./multipart/uploads.ts";
import type { Spool } from "./spool.ts";

/** The one bucket that a gateway has: the deployment. */
export const BUCKET = "agarose";

/** What all requests of a gateway share. */
export interface Shared {
  readonly context: CommandContext & { readonly breaker: Breaker };
  readonly keys: SortedKeys;
  readonly spool: Spool;
  readonly uploads: Uploads;
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

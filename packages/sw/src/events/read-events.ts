/**
 * The events of every read, in arrays on `new BroadcastChannel("agarose")`: enough to draw a waterfall. All times are
 * milliseconds since the read began, but for `at`, which is milliseconds since 1970.
 */
import type { ErrorCode } from "@agarose/core";
import type { ReadKind, RequestRecord } from "@agarose/core/read";

/** Name of the `BroadcastChannel` that carries the events. */
export const CHANNEL = "agarose";

/** One step of a read; `type` says which, and `read` names the read. */
export type ReadEvent = ReadStartEvent | PlanEvent | RequestEvent | ReadEndEvent;

/** A read began. */
export interface ReadStartEvent {
  readonly type: "read-start";
  /** Names the read in all events that follow; unique over all workers and pages. */
  readonly read: string;
  /** Key of the object. */
  readonly key: string;
  /** Of the request. */
  readonly method: "GET" | "HEAD";
  /** The `Range` header, if there was one. */
  readonly range: string | undefined;
  /** When it began, in milliseconds since 1970. */
  readonly at: number;
}

/** The plan of the read is known. A second one follows when the object turns out to have changed. */
export interface PlanEvent {
  readonly type: "plan";
  readonly read: string;
  /** When it was known. */
  readonly ms: number;
  /**
   * `known`: remembered from an earlier read. `edge`: from a PoP. `region`: made from a bucket's manifest. `kept`: from
   * an earlier visit, because no source answered.
   */
  readonly from: "known" | "edge" | "region" | "kept";
  /** The PoP whose cached chunks are requested, if any. */
  readonly pop: string | undefined;
  /** Version of the object. */
  readonly version: string;
  /** Length of the object. */
  readonly bytes: number;
  /** Data chunks of a stripe. */
  readonly k: number;
  /** Parity chunks of a stripe. */
  readonly m: number;
  /** Requests beyond k that a stripe starts with when it needs more than the edge has. */
  readonly delta: number;
  /** Chunk indices that the PoP is believed to have cached. */
  readonly cached: readonly number[];
  /** Expected time of the first stripe from here, by the plan's model: `planReadMs`. */
  readonly expectedMs: number;
}

/** One chunk of one stripe was requested from one source (`outcome: "pending"`). A second event reports the result. */
export interface RequestEvent extends Readonly<RequestRecord> {
  readonly type: "request";
  readonly read: string;
  /** Counts the requests of the read from 0. */
  readonly request: number;
}

/** The read is over. `totalsOf` sums up its requests. */
export interface ReadEndEvent {
  readonly type: "read-end";
  readonly read: string;
  /** When it was over. */
  readonly ms: number;
  /** HTTP status of the answer. */
  readonly status: number;
  /**
   * The sources of its chunks: only PoPs (`edge`), only buckets (`origin`) or both (`mixed`). `degraded`: a source
   * failed and was replaced. `stored`: this browser had kept all of it. Undefined when the answer has no body.
   */
  readonly kind: ReadKind | "stored" | undefined;
  /** When the first stripe was there. */
  readonly firstByteMs: number | undefined;
  /** Length of the answer's body. */
  readonly bytes: number;
  /** The rate of the line that all reads share, as measured so far, in megabits per second. */
  readonly lineMbit: number | undefined;
  /** Milliseconds of the codec. */
  readonly decodeMs: number;
  /** Data shards that had to be decoded. */
  readonly decodedShards: number;
  /** The error that ended it: ABORTED if its consumer cancelled it. */
  readonly error: ErrorCode | undefined;
}

/** Whether an element of a message of the channel is an event of a read: it has a known `type` and a `read`. */
export function isReadEvent(data: unknown): data is ReadEvent {
  const { type, read } = (data ?? {}) as { type?: unknown; read?: unknown };
  return typeof read === "string" && ["read-start", "plan", "request", "read-end"].includes(String(type));
}

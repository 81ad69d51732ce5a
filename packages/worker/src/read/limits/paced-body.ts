/**
 * Sends a body as fast as the client takes it, in small pieces, so that the isolate sees whether the client reads at
 * all. A client that leaves or stalls ends the stream and its memory lease.
 */
import { AgaroseError, type Clock } from "@agarose/core";
import { pullStream, type PullSink } from "@agarose/core/async";
import type { MemoryLease } from "./memory-budget.ts";

/** A client must take a piece within the stall time: 4 kB/s is fast enough. */
const PIECE_BYTES = 128 * 1024;
const CHECK_MS = 1_000;
/**
 * At Cloudflare, a piece is a copy: one that waits for a client must not hold its whole stripe after the stream has
 * ended. Node's server drops what waits as soon as the stream errors.
 */
const IS_NODE = navigator.userAgent.startsWith("Node.js");

/** Keeps a lease alive while `task` runs. A killed invocation has no timers, so its lease expires. */
export async function keepAlive<T>(lease: MemoryLease, clock: Clock, task: Promise<T>): Promise<T> {
  let cancel = (): void => {};
  const beat = (): void => {
    lease.progress();
    cancel = clock.after(CHECK_MS, beat);
  };
  beat();
  try {
    return await task;
  } finally {
    cancel();
  }
}

interface PacedBodyOptions {
  /** Resolves to the next part, or to undefined at the end. */
  readonly next: () => Promise<Uint8Array | undefined>;
  /** Length of the body in bytes, where its head states one. */
  readonly length?: number;
  /** Undefined: the body holds so little that it needs no lease. */
  readonly lease: MemoryLease | undefined;
  /** The client's signal: the platform aborts it when the client leaves. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** Called with the bytes of each piece that the client has taken. */
  readonly onTaken?: (bytes: number) => void;
  /** Called once at the end of the stream, whatever ends it. */
  readonly onEnd?: (error?: unknown) => void;
}

/**
 * Returns the body. Its stream errors with READ_TIMEOUT when the client stalls, with INTERNAL rather than end before or
 * after `length`, and as `next` rejects.
 */
export function pacedBody({
  next,
  length,
  lease,
  signal,
  clock,
  onTaken = () => {},
  onEnd = () => {},
}: PacedBodyOptions): ReadableStream<Uint8Array> {
  let part = new Uint8Array(0);
  let at = 0;
  let sent = 0;
  /** Bytes of the last piece, which the client takes before it asks for the next one. */
  let given = 0;
  let hasEnded = false;
  let isReading = false;
  let cancelCheck = (): void => {};
  const end = (error?: unknown): void => {
    if (hasEnded) return;
    hasEnded = true;
    part = new Uint8Array(0);
    cancelCheck();
    signal.removeEventListener("abort", leave);
    lease?.release();
    onEnd(error);
  };
  let sink: PullSink<Uint8Array> | undefined;
  const leave = (): void => {
    end(signal.reason);
    sink?.error(signal.reason);
  };
  return pullStream<Uint8Array>({
    start(own) {
      sink = own;
      signal.addEventListener("abort", leave, { once: true });
      if (signal.aborted) leave();
      const check = (): void => {
        if (hasEnded) return;
        if (lease?.hasEnded()) {
          const error = new AgaroseError("READ_TIMEOUT", "the client took nothing, or too little, for too long");
          end(error);
          own.error(error);
          return;
        }
        // Only the client's own time counts, not that of the sources. An invocation that was killed has no timers.
        if (isReading) lease?.progress();
        cancelCheck = clock.after(CHECK_MS, check);
      };
      if (lease) check();
    },
    async pull(own) {
      lease?.took(given);
      try {
        onTaken(given);
        if (at >= part.length) {
          isReading = true;
          const following = await next();
          isReading = false;
          // The client has left in the meantime, or its stream was taken from it.
          if (hasEnded) return;
          if (following === undefined) {
            if (length !== undefined && sent !== length) throw wrongLength(sent, length);
            end();
            own.close();
            return;
          }
          part = following as Uint8Array<ArrayBuffer>;
          at = 0;
        }
        const piece = part.length <= PIECE_BYTES ? part : pieceOf(part, at);
        at += piece.length;
        given = piece.length;
        sent += given;
        if (length !== undefined && sent > length) throw wrongLength(sent, length);
        lease?.progress();
        own.enqueue(piece);
      } catch (error) {
        end(error);
        throw error;
      }
    },
    cancel: (reason) => end(reason),
  });
}

function pieceOf(part: Uint8Array<ArrayBuffer>, at: number): Uint8Array<ArrayBuffer> {
  return IS_NODE ? part.subarray(at, at + PIECE_BYTES) : part.slice(at, at + PIECE_BYTES);
}

function wrongLength(sent: number, length: number): AgaroseError {
  return new AgaroseError("INTERNAL", `a body of ${length} bytes has ${sent}: this is a defect, please report it`, {
    sent,
    length,
  });
}

/**
 * Encoding beside the event loop of Node: stripes move to worker threads and back without a copy.
 *
 * A put that encodes on the main thread stops its uploads for that long. Stripes that are done sooner than a message
 * takes are encoded in place.
 */
import { availableParallelism } from "node:os";
import { extname } from "node:path";
import { Worker } from "node:worker_threads";

import { codecError, type CodecErrorCode } from "../error.ts";
import { loadCodec } from "../node.ts";

/** A stripe's shards. */
export interface EncodedStripe {
  /** The k data shards: views of one buffer, in order. */
  readonly data: Uint8Array<ArrayBuffer>[];
  /** One shard per row asked for, in the same order. */
  readonly parity: Uint8Array<ArrayBuffer>[];
}

/** Encodes stripes in worker threads, several at a time. */
export interface EncoderPool {
  /**
   * Encodes `rows` (each >= k) of the stripe whose k shards follow each other in `stripe`. The pool takes the stripe's
   * buffer: use the result's `data` afterwards. Rejects with CODE_INVALID or SHARDS_INVALID.
   */
  encode(stripe: Uint8Array<ArrayBuffer>, k: number, rows: readonly number[]): Promise<EncodedStripe>;
  /** Stops the threads, so that encodings in progress reject with INTERNAL. */
  close(): Promise<void>;
}

/** A message to a thread. */
export interface EncodeRequest {
  readonly id: number;
  readonly stripe: Uint8Array<ArrayBuffer>;
  readonly k: number;
  readonly rows: readonly number[];
}

/** The thread's answer: both buffers, or an error. */
export type EncodeAnswer =
  | { readonly id: number; readonly stripe: Uint8Array<ArrayBuffer>; readonly parity: Uint8Array<ArrayBuffer> }
  | {
      readonly id: number;
      readonly error: { code: CodecErrorCode; message: string; details: Record<string, unknown> };
    };

/** Below this, encoding takes less than 0.2 ms; starting a thread takes 50. */
const INLINE_BYTES_MAX = 1 << 20;
const THREADS_MAX = 4;

/** Threads start with the first stripe that is worth one, and do not keep the process alive. */
export function createEncoderPool(threads: number = defaultThreads()): EncoderPool {
  let started: Thread[] = [];
  let nextId = 0;

  return {
    async encode(stripe, k, rows) {
      checkStripe(stripe, k);
      if (rows.length === 0 || stripe.length <= INLINE_BYTES_MAX) return encodeInline(stripe, k, rows);
      const answer = await takeThread().ask({ id: nextId++, stripe, k, rows });
      if ("error" in answer) throw codecError(answer.error.code, answer.error.message, answer.error.details);
      return { data: split(answer.stripe, k), parity: split(answer.parity, rows.length) };
    },
    async close() {
      const ending = started;
      started = [];
      await Promise.all(ending.map((thread) => thread.end()));
    },
  };

  /** Threads in turn: all stripes of a put take the same time. */
  function takeThread(): Thread {
    if (started.length < threads) {
      const thread = startThread(() => (started = started.filter((other) => other !== thread)));
      started.push(thread);
      return thread;
    }
    const thread = started.shift()!;
    started.push(thread);
    return thread;
  }
}

function defaultThreads(): number {
  return Math.max(1, Math.min(THREADS_MAX, availableParallelism() - 1));
}

async function encodeInline(
  stripe: Uint8Array<ArrayBuffer>,
  k: number,
  rows: readonly number[],
): Promise<EncodedStripe> {
  const data = split(stripe, k);
  const parity = split(new Uint8Array((stripe.length / k) * rows.length), rows.length);
  (await loadCodec()).encode(data, rows, parity);
  return { data, parity };
}

function checkStripe(stripe: Uint8Array, k: number): void {
  if (!Number.isInteger(k) || k < 1)
    throw codecError("CODE_INVALID", `k is ${k}, but must be 1 to 255`, { k, kMax: 255 });
  if (stripe.length % k === 0) return;
  throw codecError("SHARDS_INVALID", `a stripe of ${stripe.length} bytes is not ${k} shards of one length: pad it`, {
    bytes: stripe.length,
    k,
  });
}

/** `count` views of equal length. */
export function split(bytes: Uint8Array<ArrayBuffer>, count: number): Uint8Array<ArrayBuffer>[] {
  const length = bytes.length / count;
  return Array.from({ length: count }, (_, i) => bytes.subarray(i * length, (i + 1) * length));
}

interface Thread {
  ask(request: EncodeRequest): Promise<EncodeAnswer>;
  end(): Promise<unknown>;
}

function startThread(onEnd: () => void): Thread {
  const worker = new Worker(new URL(`encoder.worker${extname(import.meta.url)}`, import.meta.url));
  const waiting = new Map<number, PromiseWithResolvers<EncodeAnswer>>();
  let failure: unknown;
  worker.unref();
  worker.on("message", (answer: EncodeAnswer) => {
    waiting.get(answer.id)!.resolve(answer);
    waiting.delete(answer.id);
    if (waiting.size === 0) worker.unref();
  });
  worker.on("error", (error) => (failure = error));
  worker.on("exit", () => {
    onEnd();
    const error = codecError(
      "INTERNAL",
      `the encoding thread ended with ${waiting.size} stripes under way`,
      {},
      failure,
    );
    for (const answer of waiting.values()) answer.reject(error);
  });
  return {
    ask(request) {
      const answer = Promise.withResolvers<EncodeAnswer>();
      waiting.set(request.id, answer);
      worker.ref();
      worker.postMessage(request, [request.stripe.buffer]);
      return answer.promise;
    },
    end: () => worker.terminate(),
  };
}

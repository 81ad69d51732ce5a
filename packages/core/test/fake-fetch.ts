import type { FetchedResponse, FetchInit, FetchPort } from "../src/ports.ts";
import { streamOf } from "./streams.ts";

/** How a fake server reacts to one request. */
export type Answer =
  | {
      readonly status: number;
      readonly body?: Uint8Array;
      readonly headers?: Readonly<Record<string, string>>;
      readonly breaksOff?: boolean;
      readonly ms?: number;
    }
  | "refuse"
  | "hang";

export interface FakeRequest {
  readonly url: string;
  readonly init: FetchInit;
  bodyCancelled: boolean;
  /** How many parts the body has, and how many were read. */
  parts: number;
  partsRead: number;
}

/** A network whose servers react as a test says. It records all requests. */
export class FakeNetwork {
  readonly requests: FakeRequest[] = [];
  readonly #answer: (url: string, init: FetchInit) => Answer;
  readonly #sleep: (ms: number, signal?: AbortSignal) => Promise<void>;

  constructor(
    answer: (url: string, init: FetchInit) => Answer,
    sleep: (ms: number, signal?: AbortSignal) => Promise<void> = () => Promise.resolve(),
  ) {
    this.#answer = answer;
    this.#sleep = sleep;
  }

  readonly fetch: FetchPort = async (url, init) => {
    const request: FakeRequest = { url, init, bodyCancelled: false, parts: 0, partsRead: 0 };
    this.requests.push(request);
    init.signal?.throwIfAborted();
    const answer = this.#answer(url, init);
    if (answer === "refuse") throw new TypeError("fetch failed");
    if (answer === "hang") return neverUntil(init.signal);
    await this.#sleep(answer.ms ?? 0, init.signal);
    return responseOf(answer, request);
  };

  /** The hosts of all requests, in order. */
  hosts(): string[] {
    return this.requests.map(({ url }) => new URL(url).hostname);
  }
}

function responseOf(answer: Exclude<Answer, string>, request: FakeRequest): FetchedResponse {
  const { status, body = new Uint8Array(0), headers, breaksOff } = answer;
  // In several parts, as a network delivers it.
  const partBytes = Math.max(10, Math.ceil(body.length / 20));
  const parts = Array.from({ length: Math.ceil(body.length / partBytes) }, (_, i) =>
    body.subarray(partBytes * i, partBytes * (i + 1)),
  );
  request.parts = parts.length;
  const error = breaksOff ? new TypeError("terminated") : undefined;
  const stream = streamOf(parts, {
    error,
    onRead: () => request.partsRead++,
    onCancel: () => (request.bodyCancelled = true),
  });
  return { status, headers: new Headers(headers), body: stream };
}

function neverUntil(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    signal?.addEventListener("abort", () => reject(signal.reason as Error));
  });
}

/** The page's object: reads, and messages to the worker that makes them, or to a client in its place. */
import { AgaroseError, explainError, type ErrorCode } from "@agarose/core";
import { encodeKey, parseKey } from "@agarose/core/format";
import { errorResponse } from "../common/http-response.ts";
import type { ReadEvent } from "../events/read-events.ts";
import { onRead } from "./on-read.ts";

/** Options of `fetch`: those of the browser's own, and one more. */
export interface FetchOptions extends RequestInit {
  /** Called after every piece. `totalBytes` is undefined where the length is not known beforehand. */
  readonly onProgress?: (progress: { readonly bytes: number; readonly totalBytes: number | undefined }) => void;
}

/** Which keys: `keys` themselves, and every key that begins with `prefix`. An empty prefix means all. */
export interface KeySelection {
  readonly keys?: readonly string[];
  readonly prefix?: string;
}

/** The reader behind an `Agarose`. */
export interface Reading {
  /** The path below which requests are for objects. */
  readonly prefix: string;
  /** Responds to a request below the prefix. */
  read(request: Request): Promise<Response>;
  preload(keys: readonly string[]): Promise<void>;
  update(keys: readonly string[]): Promise<void>;
  purge(which: KeySelection): Promise<void>;
}

/** As a header (RFC 9218), because a service worker cannot see the priority of a fetch. */
const URGENCY = { high: "u=1", low: "u=5", auto: undefined } as const;

/** Reads objects through the service worker that `register` has registered, or by the client of `createClient`. */
export class Agarose {
  readonly #reading: Reading;
  readonly #events = new EventTarget();
  #isListening = false;

  constructor(reading: Reading) {
    this.#reading = reading;
  }

  /**
   * Behaves like the browser's `fetch`, and also accepts the key of an object: `agarose.fetch("photos/cat.jpg")`. The
   * body of an object continues when the browser stops the worker, and errors when the read cannot complete. A read
   * that fails earlier has an error status, which `errorOf` turns into an error. It needs no `this`, so that libraries
   * can use it in place of `fetch`.
   *
   * @throws what `fetch` throws, such as an AbortError.
   */
  readonly fetch = async (input: RequestInfo | URL, options: FetchOptions = {}): Promise<Response> => {
    const { onProgress, ...init } = options;
    const { prefix } = this.#reading;
    let url = input;
    if (typeof input === "string" && !/^(\/|data:|blob:|[\w+.-]+:\/\/)/i.test(input)) {
      try {
        url = `${prefix}${encodeKey(parseKey(input))}`;
      } catch (error) {
        return errorResponse(error);
      }
    }
    // Node has no page that a path could be relative to.
    const base = globalThis.location?.href ?? "http://localhost/";
    const given = new Request(typeof url === "string" ? new URL(url, base) : url, init);
    const urgency = URGENCY[init.priority ?? "auto"];
    if (urgency) given.headers.set("priority", urgency);
    const { origin, pathname } = new URL(given.url);
    const isObject = origin === new URL(base).origin && pathname.startsWith(prefix);
    if (!isObject || !/^(GET|HEAD)$/.test(given.method)) return globalThis.fetch(given);
    const response = await this.#reading.read(given);
    return onProgress && response.body ? withProgress(response, onProgress) : response;
  };

  /**
   * Fetches the plans of objects that will be needed, a hundred in one request, and resolves when they are there. Their
   * reads then request from the edge and the buckets at once. `preload`, `update` and `purge` reject with
   * CONFIG_INVALID when no worker controls the page, and with READ_TIMEOUT when it has not answered after five minutes.
   *
   * @throws the error of a read, such as OBJECT_NOT_FOUND, for one of the keys that have no plan. All others have one.
   */
  preload(keys: readonly string[]): Promise<void> {
    return this.#reading.preload(keys);
  }

  /**
   * Reports that objects have changed: drops their old versions and refetches their plans, as `preload` does.
   *
   * @throws as `preload`.
   */
  update(keys: readonly string[]): Promise<void> {
    return this.#reading.update(keys);
  }

  /** Drops the plans and stored stripes of objects. Resolves when they are deleted. */
  purge(which: KeySelection): Promise<void> {
    return this.#reading.purge(which);
  }

  /** Calls `listener` for every step of every read of this origin, in any page or worker; `event.data` names it. */
  addEventListener(
    type: "read",
    listener: (event: MessageEvent<ReadEvent>) => void,
    options?: AddEventListenerOptions,
  ): void {
    if (!this.#isListening) onRead((data) => this.#events.dispatchEvent(new MessageEvent("read", { data })));
    this.#isListening = true;
    this.#events.addEventListener(type, listener as EventListener, options);
  }

  /** Removes a listener. */
  removeEventListener(type: "read", listener: (event: MessageEvent<ReadEvent>) => void): void {
    this.#events.removeEventListener(type, listener as EventListener);
  }
}

/** The error that a response of `fetch` has in place of an object, or undefined for any other response. */
export async function errorOf(response: Response): Promise<AgaroseError | undefined> {
  if (!response.headers.has("x-agarose-error")) return undefined;
  const body = (await response.json().catch(() => undefined)) as { error?: SentError } | undefined;
  const { status } = response;
  return receivedError(body?.error ?? {}, { status });
}

/** The fields of an error that a worker sends. */
export interface SentError {
  readonly code?: ErrorCode;
  readonly message?: string;
  readonly details?: Record<string, unknown>;
}

/** The error that a worker has sent, whose details are completed by `more`. */
export function receivedError(sent: SentError, more: { readonly status?: number }): AgaroseError {
  const { code = "SOURCE_FAILED", message = `answered with ${more.status}`, details } = sent;
  // A worker without messages sends the code in place of one.
  const words = message === code ? `${explainError(code)} Details: ${JSON.stringify(details)}` : message;
  return new AgaroseError(code, words, { ...details, ...more });
}

function withProgress(response: Response, onProgress: NonNullable<FetchOptions["onProgress"]>): Response {
  const length = response.headers.get("content-length");
  const totalBytes = length === null ? undefined : Number(length);
  let bytes = 0;
  const counted = response.body!.pipeThrough(
    new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform(part, controller) {
        bytes += part.length;
        onProgress({ bytes, totalBytes });
        controller.enqueue(part);
      },
    }),
  );
  return new Response(counted, { status: response.status, headers: response.headers });
}

/**
 * Reads objects from a page, a worker or Node: through the service worker where one is in charge, else by the same
 * strategy in place.
 */
import { AgaroseError, encodeKey, explainError, parseKey, type Decoder, type ErrorCode } from "@agarose/core";
import { javascriptCodec } from "@agarose/ec-wasm";
import { browserPorts } from "../ports/browser-ports.ts";
import { configFromUrl, parseConfig, PREFIX_DEFAULT, type ClientConfigInput } from "../common/config.ts";
import type { Priority } from "../client/sources/fair-queue.ts";
import { toResponse } from "../common/http-response.ts";
import { ObjectClient } from "../client/object-client.ts";
import { resumedResponse } from "../common/resumed-response.ts";

/** Options of `fetchObject`. Without any, it reads the whole object. */
export interface FetchObjectOptions {
  /** Bytes from `start` to before `end`, or to the end without `end`. `{ start: -n }` means the last n bytes. */
  readonly range?: { readonly start: number; readonly end?: number };
  /** Ends the read and every request of it, with ABORTED. */
  readonly signal?: AbortSignal;
  /**
   * `high` goes before other reads, `low` behind them.
   *
   * @defaultValue `auto`
   */
  readonly priority?: Priority;
  /** Opens private keys: goes to the PoPs as `Authorization: Bearer`, and to no bucket. */
  readonly token?: string;
  /** Called after every piece. `totalBytes` is undefined where the length is not known beforehand. */
  readonly onProgress?: (progress: { readonly bytes: number; readonly totalBytes: number | undefined }) => void;
  /** A client of `createClient`, which reads where no worker of Agarose answers. */
  readonly client?: ObjectClient;
  /**
   * The path below which the worker answers.
   *
   * @defaultValue what the worker's URL or `client` says, else `/ec/`
   */
  readonly prefix?: string;
}

/** As a header (RFC 9218), because a service worker cannot see the priority of a fetch. */
const URGENCY = { high: { priority: "u=1" }, low: { priority: "u=5" }, auto: {} } as const;

/**
 * Returns a client that reads without a service worker, by the same strategy. Keep it: it remembers plans and measures
 * sources. It stores nothing, because `offline` is for workers.
 *
 * @param config what `agarose.json` holds. Relative URLs are taken from the page or worker; Node has none.
 * @param codec decodes; plain JavaScript by default, which needs no WebAssembly file to be served.
 * @throws CONFIG_INVALID, naming the field.
 */
export function createClient(
  config: ClientConfigInput,
  codec: () => Promise<Decoder> = async () => javascriptCodec(),
): ObjectClient {
  return new ObjectClient(parseConfig(config, globalThis.location?.href ?? "about:blank"), browserPorts(codec));
}

/**
 * Returns the object `key`, or a range of it, as a 200 or 206 response. Throws an `AgaroseError` instead of returning
 * an error status. The body errors when the read cannot be completed, and continues where the browser ends the worker.
 *
 * @throws OBJECT_NOT_FOUND, NOT_ENOUGH_CHUNKS, RANGE_UNSATISFIABLE, ABORTED and other codes; CONFIG_INVALID where there
 *   is neither a service worker in charge nor a `client`.
 */
export async function fetchObject(key: string, options: FetchObjectOptions = {}): Promise<Response> {
  const { client, signal, range, onProgress } = options;
  parseKey(key);
  const own = {
    ...URGENCY[options.priority ?? "auto"],
    ...(options.token ? { authorization: `Bearer ${options.token}` } : {}),
  };
  const headers = new Headers({ ...(range ? { range: rangeHeader(range) } : {}), ...own });
  const answered = await viaWorker(key, headers, options);
  const response = answered
    ? resumedResponse(answered, (rest) => again(key, new Headers({ ...rest, ...own }), options), signal)
    : toResponse(await required(client).answer({ key, method: "GET", headers, signal }));
  return onProgress ? withProgress(response, onProgress) : response;
}

async function again(key: string, headers: Headers, options: FetchObjectOptions): Promise<Response> {
  const response = await viaWorker(key, headers, options);
  if (response) return response;
  throw new AgaroseError("SOURCE_FAILED", `the service worker ended in the middle of ${key}: read again`, { key });
}

/**
 * What the service worker in charge answers. Undefined where there is none, or another one: not every answer is an
 * object.
 */
async function viaWorker(key: string, headers: Headers, options: FetchObjectOptions): Promise<Response | undefined> {
  const worker = globalThis.navigator?.serviceWorker?.controller;
  if (!worker) return undefined;
  const configured = options.prefix ?? options.client?.config.prefix ?? configFromUrl(worker.scriptURL)?.prefix;
  const prefix = configured ?? PREFIX_DEFAULT;
  const init = options.signal ? { headers, signal: options.signal } : { headers };
  const response = await fetch(`${prefix}${encodeKey(key)}`, init).catch((error: unknown) => {
    if (options.signal?.aborted) throw new AgaroseError("ABORTED", "the read was aborted by its caller", {}, error);
    throw new AgaroseError("SOURCE_FAILED", `the service worker did not answer for ${prefix}${key}`, { key }, error);
  });
  if (response.headers.has("x-agarose-error")) throw await errorOf(response, key);
  if (response.headers.has("x-agarose-read")) return response;
  await response.body?.cancel();
  return undefined;
}

async function errorOf(response: Response, key: string): Promise<AgaroseError> {
  type ErrorBody = { error?: { code?: ErrorCode; message?: string; details?: Record<string, unknown> } };
  const body = (await response.json().catch(() => undefined)) as ErrorBody | undefined;
  const { status } = response;
  const { code = "SOURCE_FAILED", message = `${key} was answered with ${status}`, details } = body?.error ?? {};
  // A worker without messages sends the code in place of one.
  const words = message === code ? `${key}: ${explainError(code)} Details: ${JSON.stringify(details)}` : message;
  return new AgaroseError(code, words, { ...details, status });
}

function required(client: ObjectClient | undefined): ObjectClient {
  if (client) return client;
  throw new AgaroseError(
    "CONFIG_INVALID",
    "no service worker of Agarose answers this page and no client was given: await register(), " +
      "or pass { client: createClient(config) }, as web workers and Node must",
  );
}

function rangeHeader({ start, end }: { readonly start: number; readonly end?: number }): string {
  const whole = Number.isSafeInteger(start) && (end === undefined || (Number.isSafeInteger(end) && start >= 0));
  if (!whole || (end !== undefined && end <= start)) {
    throw new AgaroseError(
      "RANGE_UNSATISFIABLE",
      `range ${start} to ${end ?? "the end"} is empty or not of whole bytes: start must be below end`,
      { start, end },
    );
  }
  if (start < 0) return `bytes=${start}`;
  return `bytes=${start}-${end === undefined ? "" : end - 1}`;
}

function withProgress(response: Response, onProgress: NonNullable<FetchObjectOptions["onProgress"]>): Response {
  const length = response.headers.get("content-length");
  const totalBytes = length === null ? undefined : Number(length);
  let bytes = 0;
  const counted = response.body?.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(part, controller) {
        bytes += part.length;
        onProgress({ bytes, totalBytes });
        controller.enqueue(part);
      },
    }),
  );
  return new Response(counted ?? null, { status: response.status, headers: response.headers });
}

/**
 * Reads through Agarose as a strategy of Workbox or Serwist: `registerRoute(({ url }) =>
 * url.pathname.startsWith("/ec/"), new AgaroseStrategy({ pops, regions }, { plugins }))`. It imports neither of them;
 * it has the shape that both call.
 */
import { AgaroseError, toAgaroseError, type Decoder } from "@agarose/core";
import { javascriptCodec } from "@agarose/ec-wasm";
import { browserPorts } from "../ports/browser-ports.ts";
import { parseConfig, type ClientConfigInput } from "../common/config.ts";
import { errorResponse, toResponse } from "../common/http-response.ts";
import { handleMessages } from "./life-cycle.ts";
import { ObjectClient } from "../client/object-client.ts";
import { offlineStore } from "../offline/offline-store.ts";
import { route } from "./routing.ts";
import { runHook, startPlugins, type StrategyPlugin } from "./strategy-plugins.ts";
import type { LifeCycleEvent, WorkerScope } from "./worker-scope.ts";

/** Options of `AgaroseStrategy`. */
export interface StrategyOptions {
  /** Their hooks of the Cache API (`cacheWillUpdate`, …) are never called: nothing is put there. */
  readonly plugins?: readonly StrategyPlugin[];
  /** Respond to navigations. Default false: a request to open an object as a page goes to the network. */
  readonly navigations?: boolean;
  /** Called when something must be decoded, once. The JavaScript codec by default. */
  readonly codec?: () => Promise<Decoder>;
}

/** What a router hands to a strategy; a FetchEvent has the same fields, itself being the event. */
export interface HandleOptions {
  readonly request: Request;
  readonly event?: LifeCycleEvent;
}

/** A strategy for the routers of Workbox and Serwist: it answers a request with the object that its path names. */
export class AgaroseStrategy {
  readonly client: ObjectClient;
  readonly #plugins: readonly StrategyPlugin[];
  readonly #navigations: boolean;

  /**
   * From then on the worker handles the messages of `register`, `preload`, `update` and `purge`.
   *
   * @param config or the `client` of another strategy: what both read is remembered once.
   * @throws CONFIG_INVALID, naming the field.
   */
  constructor(config: ClientConfigInput | ObjectClient, options: StrategyOptions = {}) {
    const { plugins = [], navigations = false, codec = async () => javascriptCodec() } = options;
    this.client = config instanceof ObjectClient ? config : ownClient(config, codec);
    this.#plugins = plugins;
    this.#navigations = navigations;
  }

  /**
   * The response: an error status with a code where the read fails before its first byte, unless a plugin has another.
   */
  handle(options: HandleOptions): Promise<Response> {
    return this.handleAll(options)[0];
  }

  /** The response, and the end of all work on it; the worker is kept alive until then. */
  handleAll(options: HandleOptions): [response: Promise<Response>, done: Promise<void>] {
    const event = options.event ?? (options as unknown as LifeCycleEvent);
    const plugins = startPlugins(this.#plugins, event);
    const over = Promise.withResolvers<void>();
    const response = this.#respond(options.request, plugins, over.resolve);
    const done = (async () => {
      const [outcome] = await Promise.allSettled([response, over.promise]);
      const ended = outcome.status === "fulfilled" ? { response: outcome.value } : { error: outcome.reason as Error };
      await runHook(plugins, "handlerDidComplete", { request: options.request, ...ended });
    })();
    event.waitUntil?.(done);
    return [response, done];
  }

  async #respond(request: Request, plugins: ReturnType<typeof startPlugins>, over: () => void): Promise<Response> {
    try {
      await runHook(plugins, "handlerWillStart", { request });
      let response = await this.#read(request, plugins, over);
      response = (await runHook(plugins, "handlerWillRespond", { request, response }, "response")) ?? response;
      await runHook(plugins, "handlerDidRespond", { request, response });
      return response;
    } catch (error) {
      over();
      throw error;
    }
  }

  async #read(original: Request, plugins: ReturnType<typeof startPlugins>, over: () => void): Promise<Response> {
    const first = { request: original };
    const request = (await runHook(plugins, "requestWillFetch", first, "request")) ?? original;
    if (original.mode === "navigate" && !this.#navigations) {
      over();
      return fetch(original);
    }
    try {
      const response = toResponse(await this.#answer(request, over));
      return (await runHook(plugins, "fetchDidSucceed", { request, response }, "response")) ?? response;
    } catch (cause) {
      over();
      const error = toAgaroseError(cause);
      await runHook(plugins, "fetchDidFail", { request, originalRequest: original, error });
      for (const plugin of plugins) {
        const other = await plugin.call("handlerDidError", { request: original, error });
        if (other instanceof Response) return other;
      }
      return errorResponse(error);
    }
  }

  async #answer(request: Request, over: () => void) {
    const { prefix } = this.client.config;
    const origin = globalThis.location?.origin ?? new URL(request.url).origin;
    const routed = route(request, { origin, prefix, navigations: true });
    if (!routed) {
      throw new AgaroseError(
        "REQUEST_INVALID",
        `${request.method} ${request.url} is none of GET or HEAD below ${prefix}: route only those to this strategy`,
        { method: request.method, url: request.url, prefix },
      );
    }
    const { headers, signal } = request;
    const { method, query } = routed;
    return this.client.answer({ key: routed.key(), method, headers, query, signal }, over);
  }
}

/** A client of the worker that this runs in. */
function ownClient(config: ClientConfigInput, codec: () => Promise<Decoder>): ObjectClient {
  const parsed = parseConfig(config, globalThis.location.href);
  const client = new ObjectClient(parsed, { ...browserPorts(codec), store: offlineStore(parsed) });
  handleMessages(globalThis as unknown as WorkerScope, async () => client);
  return client;
}

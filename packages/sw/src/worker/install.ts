/**
 * Wires a worker: routes, client and life cycle. `sw.ts` is the face of it for workers that bundle Agarose, the entries
 * of the drop-in files call it directly, each with its own codec.
 */
import { toAgaroseError, type Decoder } from "@agarose/core";
import { orUndefined } from "@agarose/core/async";
import { HAS_STORE } from "@agarose/core/features";
import { browserPorts } from "../ports/browser-ports.ts";
import {
  configFromUrl,
  parseConfig,
  type ClientConfig,
  type ClientConfigInput,
  type ConfigSource,
} from "../common/config.ts";
import { handleBy, type Answer, type Handle } from "../client/handle.ts";
import { installLifeCycle, handleMessages } from "./life-cycle.ts";
import { ObjectClient } from "../client/object-client.ts";
import type { ObjectStore } from "../client/object-store.ts";
import { LiveClient, type LivePorts } from "./live-client.ts";
import type { WorkerScope } from "./worker-scope.ts";

/** How a worker behaves, whatever its configuration. */
export interface WorkerOptions {
  /**
   * Whether the worker controls open pages as soon as it is installed for the first time.
   *
   * @defaultValue `true`
   */
  readonly claim?: boolean;
  /**
   * Whether the worker responds when an object is opened as a page, in a frame, or by a link
   * that saves it.
   *
   * @defaultValue `false`
   */
  readonly navigations?: boolean;
  /**
   * Whether nothing else in the worker listens to requests. The browser may then spare it those outside the prefix.
   *
   * @defaultValue `false`
   */
  readonly alone?: boolean;
}

/** Options of `install`. */
export interface InstallOptions extends WorkerOptions {
  /**
   * Loads the decoder. A new worker calls it once and fails when it rejects. A restarted worker calls it when something
   * must be decoded.
   *
   * @defaultValue the decoder in JavaScript
   */
  readonly codec?: () => Promise<Decoder>;
  /**
   * Returns the store of read objects, where the configuration has `offline`.
   *
   * @defaultValue Cache Storage
   */
  readonly store?: (config: ClientConfig) => ObjectStore | undefined;
}

/** With the default filled in: who has one of its own need not carry the other. */
export type WiredOptions = InstallOptions & Required<Pick<InstallOptions, "codec">>;

/** An install waits this long for probes, so that the first read knows the nearest PoP. */
const INSTALL_PROBE_MS = 1_000;

/** Serves the objects of a configuration from the worker of `scope`, which must still be starting up. */
export function wireConfig(scope: WorkerScope, config: ClientConfigInput, options: WiredOptions): void {
  wire(scope, sourceOf(scope, config), options);
}

/** `wireConfig` without listening to requests and to the life cycle: a caller has its own listeners. */
export function handleConfig(scope: WorkerScope, config: ClientConfigInput, options: WiredOptions): Handle {
  return reader(scope, sourceOf(scope, config), options).handle;
}

function sourceOf(scope: WorkerScope, input: ClientConfigInput): ConfigSource {
  const config = parseConfig(input, scope.location.href);
  return { prefix: config.prefix, config };
}

/** `wireConfig` for what the worker's own URL asks for; does nothing when it asks for nothing. */
export function wireFromUrl(scope: WorkerScope, options: WiredOptions): void {
  const source = configFromUrl(scope.location.href);
  if (source) wire(scope, source, { ...options, ...source, alone: true });
}

/** Wires `scope` with a configuration, or with where one is. */
export function wire(scope: WorkerScope, source: ConfigSource, options: WiredOptions): void {
  const { claim = true, alone = false } = options;
  const { handle, ready } = reader(scope, source, options);
  scope.addEventListener("fetch", (event) => {
    const response = handle(event.request, event);
    if (response) event.respondWith(response);
  });
  installLifeCycle(scope, { claim, onlyPrefix: alone && source.prefix, ready });
}

/** Reads by one configuration, and handles the messages of pages. `ready` rejects when the worker cannot work. */
function reader(
  scope: WorkerScope,
  source: ConfigSource,
  { codec, store, navigations = false }: WiredOptions,
): { handle: Handle; ready: () => Promise<void> } {
  const ports = browserPorts(codec);
  const make = (config: ClientConfig): ObjectClient =>
    new ObjectClient(config, HAS_STORE ? { ...ports, store: store?.(config) } : ports);
  // Looked up when they are needed: a worker may start before its storage can be used.
  const livePorts: LivePorts = {
    clock: ports.clock,
    fetch: (url, init) => globalThis.fetch(url, init),
    get caches() {
      return globalThis.caches as CacheStorage | undefined;
    },
  };
  const live = new LiveClient(source, livePorts, make);
  const client = (): Promise<ObjectClient> => live.current();
  handleMessages(scope, client, () => live.onRegister());
  const answer: Answer = async (request, onEnd) => {
    const first = await client();
    return first.answer(request, onEnd).catch(async (error: unknown) => {
      const other = await live.after(first, toAgaroseError(error));
      if (other) return other.answer(request, onEnd);
      throw error;
    });
  };
  return {
    handle: handleBy(answer, { origin: scope.location.origin, prefix: source.prefix, navigations }),
    ready: async () => {
      await ports.codec();
      await orUndefined((await client()).probe(), INSTALL_PROBE_MS, ports.clock);
    },
  };
}

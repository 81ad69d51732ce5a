/**
 * Wires a worker: routes, client and life cycle. `sw.ts` is the face of it for workers that bundle Agarose, the entries
 * of the drop-in files call it directly, each with a codec of its own.
 */
import { HAS_STORE, type Decoder } from "@agarose/core";
import { browserPorts } from "../ports/browser-ports.ts";
import {
  configFromUrl,
  parseConfig,
  type ClientConfig,
  type ClientConfigInput,
  type ConfigSource,
} from "../common/config.ts";
import { loadConfig } from "../common/config-file.ts";
import { errorResponse, toResponse } from "../common/http-response.ts";
import { installLifeCycle, handleMessages } from "./life-cycle.ts";
import { ObjectClient } from "../client/object-client.ts";
import type { ObjectStore } from "../client/object-store.ts";
import { once } from "../ports/once.ts";
import { route } from "./routing.ts";
import type { WorkerScope } from "./worker-scope.ts";

/** How a worker behaves, whatever its configuration. */
export interface WorkerOptions {
  /**
   * Whether the worker takes control of open pages when it is installed for the first time.
   *
   * @defaultValue `true`
   */
  readonly claim?: boolean;
  /**
   * Whether the worker responds when an object is opened as a page, in a frame, or by `<a
   * download>`.
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
   * Loads the decoder. A new worker calls it once and fails when it rejects. A worker that starts again calls it when
   * something must be decoded.
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
  const parsed = parseConfig(config, scope.location.href);
  wire(scope, { prefix: parsed.prefix, config: parsed }, options);
}

/** `wireConfig` for what the worker's own URL asks for; does nothing when it asks for nothing. */
export function wireFromUrl(scope: WorkerScope, options: WiredOptions): void {
  const source = configFromUrl(scope.location.href);
  if (source) wire(scope, source, { ...options, alone: true, claim: source.claim, navigations: source.navigations });
}

/** Wires `scope` with a configuration, or with where one is. */
export function wire(scope: WorkerScope, source: ConfigSource, options: WiredOptions): void {
  const { codec, claim = true, alone = false, navigations = false } = options;
  const ports = browserPorts(codec);
  const make = (config: ClientConfig): ObjectClient =>
    new ObjectClient(config, HAS_STORE ? { ...ports, store: options.store?.(config) } : ports);
  let renewed: ObjectClient | undefined;
  const first = once(async () => {
    const config = await loadConfig(source, globalThis, (changed) => (renewed = make(changed)));
    return make(config);
  });
  const client = async (): Promise<ObjectClient> => renewed ?? (await first());

  scope.addEventListener("fetch", (event) => {
    const routed = route(event.request, { origin: scope.location.origin, prefix: source.prefix, navigations });
    if (!routed) return;
    event.waitUntil(new Promise<void>((over) => event.respondWith(respond(event.request, routed, over))));
  });

  installLifeCycle(scope, {
    claim,
    onlyPrefix: alone && source.prefix,
    ready: async () => {
      await ports.codec();
      const longEnough = new Promise<void>((resolve) => ports.clock.after(INSTALL_PROBE_MS, resolve));
      await Promise.race([(await client()).probe(), longEnough]);
    },
  });
  handleMessages(scope, client);

  async function respond(request: Request, routed: NonNullable<ReturnType<typeof route>>, over: () => void) {
    const { headers, signal } = request;
    try {
      const { method, query } = routed;
      return toResponse(await (await client()).answer({ key: routed.key(), method, headers, query, signal }, over));
    } catch (error) {
      over();
      return errorResponse(error);
    }
  }
}

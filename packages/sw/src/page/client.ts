/** Reads without a service worker. */
import type { Decoder } from "@agarose/core";
import { javascriptCodec } from "@agarose/ec-wasm";
import { handleBy } from "../client/handle.ts";
import { ObjectClient } from "../client/object-client.ts";
import { parseConfig, type ClientConfigInput } from "../common/config.ts";
import { browserPorts } from "../ports/browser-ports.ts";
import { Agarose } from "./agarose.ts";

/** Options of `createClient`. */
export interface ClientOptions {
  /** The content of `agarose.json`. Relative URLs are resolved against the page or worker; Node has neither. */
  readonly config: ClientConfigInput;
  /**
   * Loads the decoder when something must be decoded.
   *
   * @defaultValue the decoder in JavaScript, which needs no WebAssembly file to be served
   */
  readonly codec?: () => Promise<Decoder>;
}

/**
 * Returns a client that reads without a service worker, in a page, a web worker or Node. Keep it: it remembers plans
 * and measures sources. It stores nothing, because `offline` is for workers.
 *
 * @throws CONFIG_INVALID, naming the field.
 */
export function createClient(options: ClientOptions): Agarose {
  const { config, codec = async () => javascriptCodec() } = options;
  const parsed = parseConfig(config, globalThis.location?.href ?? "about:blank");
  return agaroseOf(new ObjectClient(parsed, browserPorts(codec)));
}

/** `createClient` of what reads already. */
export function agaroseOf(client: ObjectClient): Agarose {
  const { prefix } = client.config;
  return new Agarose({
    prefix,
    async read(request) {
      const { origin } = new URL(request.url);
      const handle = handleBy((asked, onEnd) => client.answer(asked, onEnd), { origin, prefix, navigations: true });
      const response = await (handle(request) ?? fetch(request));
      request.signal.throwIfAborted();
      return response;
    },
    preload: (keys) => client.preload(keys),
    update: (keys) => client.update(keys),
    purge: ({ keys = [], prefix: start }) =>
      client.purge((key) => keys.includes(key) || (start !== undefined && key.startsWith(start))),
  });
}

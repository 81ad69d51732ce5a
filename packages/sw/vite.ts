/**
 * A Vite plugin: the app serves the service worker's files and the client configuration, in development and when built.
 *
 * `plugins: [agarose({ config: { pops, regions } })]`, and in the page
 * `register({ worker: `${base}agarose-sw.js`, config: `${base}agarose.json` })` with `base = import.meta.env.BASE_URL`.
 */
import type { ServerResponse } from "node:http";
import type { Plugin } from "vite";
import { dropInFiles } from "./files.ts";
import { parseConfig, type ClientConfigInput } from "./src/common/config.ts";
import { CODEC_FILE, REMOVING_FILE, WORKER_FILES } from "./src/common/worker-files.ts";
import { once } from "@agarose/core/async";

export interface VitePluginOptions {
  /** Becomes `agarose.json`. Leave it out where that file is served some other way, as from `public/`. */
  readonly config?: ClientConfigInput;
}

/** @throws CONFIG_INVALID when the configuration is unsound, naming the field. */
export function agarose({ config }: VitePluginOptions = {}): Plugin {
  // Relative addresses are the page's to resolve; what is checked here is everything else.
  if (config) parseConfig(config, "https://app.test/");
  const files = once(async () => {
    // The page's side is the app's own import.
    const served = new Set([...Object.keys(WORKER_FILES), CODEC_FILE].filter((name) => name !== REMOVING_FILE));
    const all = new Map([...(await dropInFiles())].filter(([name]) => served.has(name.replace(/\.map$/, ""))));
    if (config) all.set("agarose.json", new TextEncoder().encode(`${JSON.stringify(config, undefined, 2)}\n`));
    return all;
  });
  return {
    name: "agarose",

    configureServer({ config: { base }, middlewares }) {
      // Before Vite's own middlewares a path has its base still.
      const send = async (pathname: string, response: ServerResponse): Promise<boolean> => {
        const name = pathname.startsWith(base) ? pathname.slice(base.length) : "";
        const contents = name.startsWith("agarose") ? (await files()).get(name) : undefined;
        if (!contents) return false;
        const type = name.endsWith(".json") ? "application/json" : "text/javascript";
        response.writeHead(200, { "content-type": type, "cache-control": "no-cache" }).end(contents);
        return true;
      };
      middlewares.use((request, response, goOn) => {
        const { pathname } = new URL(request.url ?? "/", "http://vite");
        send(pathname, response).then((isSent) => {
          if (!isSent) goOn();
        }, goOn);
      });
    },

    async generateBundle() {
      for (const [fileName, source] of await files()) this.emitFile({ type: "asset", fileName, source });
    },
  };
}

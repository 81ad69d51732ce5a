/**
 * A Vite plugin: the app serves the service worker's files and the client configuration, in development and when built.
 *
 * `plugins: [agarose({ config: { pops, regions } })]`, and in the page `import { register } from "virtual:agarose"`.
 */
import type { ServerResponse } from "node:http";
import type { Plugin } from "vite";
import { dropInFiles } from "./files.ts";
import { parseConfig, type ClientConfigInput } from "./src/common/config.ts";
import { CODEC_FILE, WORKER_FILES } from "./src/common/worker-files.ts";
import { AgaroseError } from "@agarose/core";
import { once } from "@agarose/core/async";

export interface VitePluginOptions {
  /** Becomes `agarose.json`. Leave it out where that file is served some other way, as from `public/`. */
  readonly config?: ClientConfigInput;
  /**
   * The worker's file.
   *
   * @defaultValue by `config`: `agarose-sw.encryption.js` with `encryption`, `agarose-sw.offline.js` with `offline`,
   * otherwise `agarose-sw.js`
   */
  readonly worker?: string;
}

const MODULE = "virtual:agarose";
/** Other plugins leave a module alone whose id begins so. */
const RESOLVED = `\0${MODULE}`;

/** @throws CONFIG_INVALID when the configuration is unsound, naming the field, or when there is no such worker. */
export function agarose({ config, worker = workerFor(config) }: VitePluginOptions = {}): Plugin {
  // Relative addresses are the page's to resolve; what is checked here is everything else.
  if (config) parseConfig(config, "https://app.test/");
  if (!WORKER_FILES[worker]) {
    const known = Object.keys(WORKER_FILES);
    const problem = `worker is ${worker}: one of ${known.join(", ")} is expected`;
    throw new AgaroseError("CONFIG_INVALID", problem, { field: "worker", worker, known });
  }
  let folder = "/";
  const files = once(async () => {
    const names = [worker, CODEC_FILE].flatMap((name) => [name, `${name}.map`]);
    const built = await dropInFiles();
    const all = new Map(names.map((name) => [name, built.get(name)!]));
    if (config) all.set("agarose.json", new TextEncoder().encode(`${JSON.stringify(config, undefined, 2)}\n`));
    return all;
  });
  return {
    name: "agarose",

    configResolved({ base }) {
      folder = base;
    },

    resolveId: (id) => (id === MODULE ? RESOLVED : undefined),

    load(id) {
      if (id !== RESOLVED) return undefined;
      const own = { worker: `${folder}${worker}`, config: `${folder}agarose.json`, prefix: config?.prefix };
      return `import { register as registerWith } from "@agarose/sw";
export const register = (options) => registerWith({ ...${JSON.stringify(own)}, ...options });`;
    },

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

/** The smallest file that does what the configuration asks for. */
function workerFor({ encryption, offline }: ClientConfigInput = {}): string {
  return `agarose-sw${encryption ? ".encryption" : offline ? ".offline" : ""}.js`;
}

/**
 * Serves the demo page out of its sources, with what the page needs of the local world beside it.
 *
 * | path             | what                                                                        |
 * | ---------------- | --------------------------------------------------------------------------- |
 * | /world.json      | the control address and the client configuration, for the page              |
 * | /agarose.json    | the client configuration, for the service worker; with `?pops=a,b&regions=` |
 * |                  | only those of that name, in that order                                      |
 * | /agarose-sw.js   | the service worker, allowed to control the whole origin                     |
 * | /ec/KEY          | the object, decoded by the nearest PoP: for pages without a service worker  |
 */
import { createReadStream } from "node:fs";
import { readdir } from "node:fs/promises";
import { request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders, type ServerResponse } from "node:http";
import { createServer as createTcpServer, type AddressInfo } from "node:net";
import { basename, join } from "node:path";
import { pipeline } from "node:stream";
import { fileURLToPath } from "node:url";
import type { ClientConfig, Endpoint } from "@agarose/sw";
import { createServer, type Plugin, type ViteDevServer } from "vite";

export interface DemoOptions {
  /** 0, the default, is any free one. */
  readonly port?: number;
  readonly world: { readonly control: string; readonly config: ClientConfig };
  /** Base URL of the PoP nearest to the client, as the client reaches it; asked again for each request. */
  readonly edge: () => string;
  /** Where agarose-sw.js is. */
  readonly serviceWorkerDir: string;
}

const ROOT = fileURLToPath(new URL(".", import.meta.url));

/** Starts the page; resolves once it answers. */
export async function startDemo(options: DemoOptions): Promise<{ url: string; close(): Promise<void> }> {
  const port = options.port || (await freePort());
  const vite = await createServer({
    root: ROOT,
    configFile: false,
    // A path that does not exist is a 404 here, not the page.
    appType: "mpa",
    logLevel: "warn",
    clearScreen: false,
    // Everything imported is an ES module in the repository, so nothing is bundled beforehand and the start is quick.
    optimizeDeps: { noDiscovery: true },
    server: { host: "127.0.0.1", port, strictPort: true, hmr: false, watch: null },
    plugins: [worldPlugin(options)],
  });
  await vite.listen();
  return { url: `http://127.0.0.1:${port}/`, close: () => vite.close() };
}

function worldPlugin(options: DemoOptions): Plugin {
  return {
    name: "agarose-world",
    async configureServer({ middlewares }: ViteDevServer) {
      const { prefix } = options.world.config;
      const workerFiles = new Set(await readdir(options.serviceWorkerDir));
      middlewares.use((request, response, next) => {
        const { pathname, searchParams } = new URL(request.url ?? "/", "http://demo");
        if (pathname === "/world.json") return sendJson(response, options.world);
        if (pathname === "/agarose.json") return sendJson(response, chosenFrom(options.world.config, searchParams));
        if (pathname.startsWith(prefix)) return passToEdge(options.edge(), prefix, request, response);
        const file = basename(pathname);
        if (pathname === `/${file}` && /^agarose-(sw|decoder)/.test(file) && workerFiles.has(file)) {
          return sendServiceWorker(join(options.serviceWorkerDir, file), response);
        }
        next();
      });
    },
  };
}

function chosenFrom({ pops, regions, ...config }: ClientConfig, query: URLSearchParams): ClientConfig {
  const chosen = (all: readonly Endpoint[], names: string | null): readonly Endpoint[] =>
    names?.split(",").flatMap((name) => all.find((one) => one.name === name) ?? []) ?? all;
  return { ...config, pops: chosen(pops, query.get("pops")), regions: chosen(regions, query.get("regions")) };
}

function sendJson(response: ServerResponse, value: unknown): void {
  response.writeHead(200, { "content-type": "application/json", "cache-control": "no-store" });
  response.end(JSON.stringify(value));
}

function sendServiceWorker(path: string, response: ServerResponse): void {
  const type = path.endsWith(".wasm") ? "application/wasm" : "text/javascript";
  response.writeHead(200, { "content-type": type, "cache-control": "no-cache", "service-worker-allowed": "/" });
  pipeline(createReadStream(path), response, () => {});
}

/** Headers of one connection, which a proxy does not pass on (RFC 9110, section 7.6.1). */
const HOP_BY_HOP = ["connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"];

/** `/ec/KEY` here is `/o/KEY` at the PoP: body and headers stream through, and an abort reaches the PoP. */
function passToEdge(edge: string, prefix: string, request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(`/o/${(request.url ?? "").slice(prefix.length)}`, edge);
  const upstream = httpRequest(url, { method: request.method, headers: withoutHops(request.headers) }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, withoutHops(answer.headers));
    response.flushHeaders();
    pipeline(answer, response, () => {});
  });
  upstream.on("error", (error) => {
    if (response.headersSent) return void response.destroy();
    response.writeHead(502, { "content-type": "application/json" });
    const message = `the nearest PoP (${edge}) does not answer (${error.message}): start it again, or use the service worker`;
    response.end(JSON.stringify({ error: { code: "SOURCE_FAILED", message, details: { edge } } }));
  });
  response.once("close", () => upstream.destroy());
  pipeline(request, upstream, () => {});
}

function withoutHops(headers: OutgoingHttpHeaders): OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name !== "host" && !HOP_BY_HOP.includes(name)));
}

/** Vite counts upwards from a taken port but has no word for "any", so the system is asked for a free one. */
async function freePort(): Promise<number> {
  const probe = createTcpServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

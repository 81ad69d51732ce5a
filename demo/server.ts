/**
 * Serves the demo page from its sources.
 *
 * Beside the paths by which any app reaches the local world (`worldRoutes` of `@agarose/dev-world/app-host`), it serves
 * `/world.json`: the control address, the client configuration and the addresses of the CDNs, for the page.
 */
import { fileURLToPath } from "node:url";
import { worldClientConfig, worldRoutes } from "@agarose/dev-world/app-host";
import type { DemoOptions, Page, World } from "@agarose/dev-world";
import { freePort } from "@agarose/dev-world/free-port";
import { createServer, type Plugin } from "vite";
import { startCdns } from "./copies.ts";
import { PHOTOS } from "./samples/index.ts";

const ROOT = fileURLToPath(new URL(".", import.meta.url));

/** How often each photograph is read at the start, so that the PoP knows it. */
const WARMING_READS = 2;

/** Starts the page, and warms its caches. Resolves when it answers. */
export async function startDemo(options: DemoOptions): Promise<Page> {
  const cdns = await startCdns(options.world, options.uploader);
  // Meanwhile the page opens. One whose caches are cold is better than none.
  void warm(edgeOf(options.world), options.world.cron).catch(() => {});
  // Vite has no setting for any free port.
  const port = options.port || (await freePort());
  const vite = await createServer({
    root: ROOT,
    configFile: false,
    // A path that does not exist is a 404 here, not the page.
    appType: "mpa",
    logLevel: "warn",
    clearScreen: false,
    // Every import is an ES module of the repository, so Vite has nothing to bundle before it starts.
    optimizeDeps: { noDiscovery: true },
    server: { host: "127.0.0.1", port, strictPort: true, hmr: false, watch: null },
    plugins: [worldPlugin(options, cdns.urls)],
  });
  await vite.listen();
  return { url: `http://127.0.0.1:${port}/`, close: () => Promise.resolve(cdns.close()).then(() => vite.close()) };
}

/** Reads the photographs at the nearest PoP, and lets it decide what to cache. */
async function warm(edge: string, cron: World["cron"]): Promise<void> {
  for (let turn = 0; turn < WARMING_READS; turn++) {
    await Promise.all(PHOTOS.map(async ({ key }) => (await fetch(`${edge}/o/${key}`)).arrayBuffer()));
  }
  await cron();
}

function worldPlugin({ control, world, dropInFiles }: DemoOptions, copies: Readonly<Record<string, string>>): Plugin {
  const config = worldClientConfig(world);
  return {
    name: "agarose-world",
    configureServer({ middlewares }) {
      middlewares.use(worldRoutes({ config: async () => config, edge: () => edgeOf(world), dropInFiles }));
      middlewares.use("/world.json", (_request, response) => {
        response.writeHead(200, { "content-type": "application/json", "cache-control": "no-store" });
        response.end(JSON.stringify({ control, config, copies }));
      });
    },
  };
}

/** The address of the PoP nearest to the client. */
function edgeOf({ pops, state }: DemoOptions["world"]): string {
  return pops.find(({ name }) => name === state.near)!.url;
}

/**
 * Serves the demo page from its sources.
 *
 * Beside the paths by which any app reaches the local world (`worldRoutes` of `@agarose/dev-world/app-host`), it serves
 * `/world.json`: the control address and the client configuration, for the page.
 */
import { fileURLToPath } from "node:url";
import { worldClientConfig, worldRoutes, type WorldRoutesOptions } from "@agarose/dev-world/app-host";
import type { World } from "@agarose/dev-world";
import { freePort } from "@agarose/dev-world/free-port";
import { createServer, type Plugin } from "vite";
import { libraryRoutes } from "./library/routes.ts";

/** What the page needs. */
export interface DemoOptions {
  /** Default: any free port. */
  readonly port?: number;
  /** URL of the world's control address. */
  readonly control: string;
  readonly world: Pick<World, "pops" | "regions" | "state">;
  readonly dropInFiles: WorldRoutesOptions["dropInFiles"];
}

const ROOT = fileURLToPath(new URL(".", import.meta.url));

/** Starts the page. Resolves when it answers. */
export async function startDemo(options: DemoOptions): Promise<{ url: string; close(): Promise<void> }> {
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
    plugins: [worldPlugin(options)],
  });
  await vite.listen();
  return { url: `http://127.0.0.1:${port}/`, close: () => vite.close() };
}

function worldPlugin({ control, world, dropInFiles }: DemoOptions): Plugin {
  const config = worldClientConfig(world);
  const edge = (): string => world.pops.find(({ name }) => name === world.state.near)!.url;
  return {
    name: "agarose-world",
    configureServer({ middlewares }) {
      middlewares.use(worldRoutes({ config: async () => config, edge, dropInFiles }));
      middlewares.use("/library", libraryRoutes(control));
      middlewares.use("/world.json", (_request, response) => {
        response.writeHead(200, { "content-type": "application/json", "cache-control": "no-store" });
        response.end(JSON.stringify({ control, config }));
      });
    },
  };
}

/** Serves an app in the local world, on an origin of its own. */
import { readFile, stat } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { AgaroseError } from "@agarose/core";
import type { ClientConfig } from "@agarose/sw";
import sirv from "sirv";
import type { World } from "../world/world.ts";
import { passOn } from "./pass-on.ts";
import { clientConfigOf, worldRoutes, type Middleware, type WorldRoutesOptions } from "./world-routes.ts";

/** What to serve. */
export interface AppHostOptions {
  readonly world: Pick<World, "pops" | "regions" | "state">;
  /**
   * A folder of static files, or the URL of the app's own server. Undefined: a blank page at `/`. The world replaces
   * the PoPs, regions and public keys of the app's `agarose.json`, and keeps its other fields.
   */
  readonly app?: string | undefined;
  /** Port to listen on. Default: any free port. */
  readonly port?: number;
  /** The drop-in files by name. An app's own files of these names are not served. */
  readonly dropInFiles: WorldRoutesOptions["dropInFiles"];
}

/** A running host. */
export interface AppHost {
  /** Address of the app, with a trailing slash. */
  readonly url: string;
  close(): Promise<void>;
}

const BLANK_PAGE = "<!doctype html><html lang=en><title>An app</title><main></main></html>";

/** Starts the host. Throws USAGE when `app` is neither a folder nor a URL. */
export async function startAppHost({ world, app, port = 0, dropInFiles }: AppHostOptions): Promise<AppHost> {
  const { middleware, ownConfig } = await openApp(app);
  const { prefix, ...places } = clientConfigOf(world);
  const routes = worldRoutes({
    config: async () => {
      const { unsigned: _unsigned, ...own } = await ownConfig();
      return { prefix, ...own, ...places };
    },
    edge: () => world.pops.find(({ name }) => name === world.state.near)!.url,
    dropInFiles,
  });
  const server = createServer((request, response) => {
    routes(request, response, () => middleware(request, response, () => notFound(response)));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

interface OpenedApp {
  readonly middleware: Middleware;
  /** The app's own client configuration, read again for each request. */
  readonly ownConfig: () => Promise<Partial<ClientConfig>>;
}

async function openApp(app: string | undefined): Promise<OpenedApp> {
  if (app === undefined) return { middleware: blankPage, ownConfig: async () => ({}) };
  if (/^https?:\/\//.test(app)) return serverApp(app);
  const isFolder = await stat(app).then(
    (found) => found.isDirectory(),
    () => false,
  );
  if (isFolder) return folderApp(app);
  throw new AgaroseError("USAGE", `${app} is neither a folder nor a URL: name the app's built files or its server`, {
    app,
  });
}

function folderApp(folder: string): OpenedApp {
  return {
    // `dev` reads the folder for each request, so a rebuilt app needs no restart.
    middleware: sirv(folder, { dev: true }),
    ownConfig: async () => parseOwn(await readFile(join(folder, "agarose.json"), "utf8").catch(() => undefined)),
  };
}

function serverApp(base: string): OpenedApp {
  return {
    middleware(request, response) {
      passOn(new URL(request.url ?? "/", base), request, response, (error) => {
        response.writeHead(502, { "content-type": "text/plain" });
        response.end(`The app's server (${base}) does not answer: ${error.message}\n`);
      });
    },
    async ownConfig() {
      const response = await fetch(new URL("/agarose.json", base)).catch(() => undefined);
      return response?.ok ? parseOwn(await response.text()) : {};
    },
  };
}

/** An app without a configuration of its own, or whose server answers every path with a page, has no fields. */
function parseOwn(text: string | undefined): Partial<ClientConfig> {
  if (text === undefined) return {};
  try {
    return JSON.parse(text) as Partial<ClientConfig>;
  } catch {
    return {};
  }
}

function blankPage(request: IncomingMessage, response: ServerResponse, next: () => void): void {
  if ((request.url ?? "/").split("?")[0] !== "/") return next();
  response.writeHead(200, { "content-type": "text/html" }).end(BLANK_PAGE);
}

function notFound(response: ServerResponse): void {
  response.writeHead(404, { "content-type": "text/plain" }).end("not found\n");
}

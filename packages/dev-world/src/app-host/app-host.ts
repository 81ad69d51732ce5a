/** Serves an app in the local world, on its own origin. */
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { connect } from "node:net";
import path from "node:path";
import type { Duplex } from "node:stream";
import { AgaroseError } from "@agarose/core";
import type { ClientConfig } from "@agarose/sw";
import sirv from "sirv";
import type { World } from "../world/world.ts";
import { closeServer, listenLocally } from "../listen-locally.ts";
import { passOn } from "../proxy/pass-on.ts";
import { passUpgradeOn, refuseUpgrade } from "../proxy/pass-upgrade.ts";
import { worldClientConfig, worldRoutes, type Middleware, type WorldRoutesOptions } from "./world-routes.ts";

/** Options of the host. */
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
  /** Why the app has no page; undefined when it has one. */
  readonly problem?: string | undefined;
  close(): Promise<void>;
}

const BLANK_PAGE = "<!doctype html><html lang=en><title>An app</title><main></main></html>";

/** Starts the host. Throws USAGE when `app` is neither a folder nor a URL. */
export async function startAppHost({ world, app, port = 0, dropInFiles }: AppHostOptions): Promise<AppHost> {
  const { middleware, ownConfig, server: appServer, missing } = await openApp(app);
  const places = worldClientConfig(world);
  const routes = worldRoutes({
    config: async () => {
      const { unsigned: _unsigned, ...own } = await ownConfig();
      return { ...own, ...places };
    },
    edge: () => world.pops.find(({ name }) => name === world.state.near)!.url,
    dropInFiles,
  });
  const server = createServer((request, response) => {
    routes(request, response, () =>
      middleware(request, response, () => notFound(response, missing?.() ?? "not found")),
    );
  });
  // Node no longer counts a connection that was given away, so the host ends it itself.
  const upgraded = new Set<Duplex>();
  server.on("upgrade", (request, socket, head) => {
    upgraded.add(socket);
    socket.once("close", () => upgraded.delete(socket));
    if (appServer === undefined) refuseUpgrade(socket, 404);
    else passUpgradeOn(appServer, request, socket, head);
  });
  return {
    url: `${await listenLocally(server, port)}/`,
    problem: missing?.(),
    close() {
      for (const socket of upgraded) socket.destroy();
      return closeServer(server);
    },
  };
}

interface OpenedApp {
  readonly middleware: Middleware;
  /** The app's own client configuration, read again for each request. */
  readonly ownConfig: () => Promise<Partial<ClientConfig>>;
  /** The URL of the app's server, which takes upgrades of a connection too. */
  readonly server?: string;
  /** Says of an app without a page why it has none. */
  readonly missing?: () => string | undefined;
}

async function openApp(app: string | undefined): Promise<OpenedApp> {
  if (app === undefined) return { middleware: blankPage, ownConfig: async () => ({}) };
  await checkApp(app);
  return isUrl(app) ? serverApp(app) : folderApp(app);
}

/** Throws USAGE when `app` is neither a folder nor a URL with http. */
export async function checkApp(app: string): Promise<void> {
  if (app.startsWith("https:")) throw new AgaroseError("USAGE", `${app}: start the app's server with http`, { app });
  if (isUrl(app) || (await stat(app).catch(() => undefined))?.isDirectory()) return;
  const message = `${app} is neither a folder nor a URL: name the app's built files or its server`;
  throw new AgaroseError("USAGE", message, { app });
}

function isUrl(app: string): boolean {
  return /^https?:\/\//.test(app);
}

function folderApp(folder: string): OpenedApp {
  return {
    missing: () => missingPage(folder),
    // `dev` reads the folder for each request, so a rebuilt app needs no restart. Without an ETag the answers would be
    // `no-store`, which keeps pages out of the back/forward cache.
    middleware: sirv(folder, { dev: true, etag: true }),
    ownConfig: async () => parseOwn(await readFile(path.join(folder, "agarose.json"), "utf8").catch(() => undefined)),
  };
}

/**
 * The message for a folder without a page. The `public` folder of a project with a bundler has no page: it is only
 * copied beside what the bundler makes.
 */
function missingPage(folder: string): string | undefined {
  if (existsSync(path.join(folder, "index.html"))) return undefined;
  const project = path.dirname(path.resolve(folder));
  const isSource = path.basename(path.resolve(folder)) === "public" && existsSync(path.join(project, "package.json"));
  const what = isSource ? "a bundler copies it next to the pages that it builds" : "the app has no page at /";
  const command = "agarose dev --app";
  return (
    `not found: ${folder} has no index.html, so ${what}.\n` +
    `Start the app's own development server and name its address: ${command} http://localhost:5173\n` +
    `Or build the app and name the folder that the build writes: ${command} dist`
  );
}

async function serverApp(base: string): Promise<OpenedApp> {
  const { hostname, port } = new URL(base);
  const socket = connect({ host: hostname, port: Number(port || 80) });
  const problem = await once(socket, "connect").then(
    () => undefined,
    (error: Error) => `${unanswered(base, error)}: start it, and then reload the page`,
  );
  socket.destroy();
  return {
    server: base,
    missing: () => problem,
    middleware(request, response) {
      passOn(base, request, response).catch((error: Error) => {
        if (response.headersSent) return;
        response.writeHead(502, { "content-type": "text/plain" });
        response.end(`${unanswered(base, error)}\n`);
      });
    },
    async ownConfig() {
      const response = await fetch(new URL("/agarose.json", base)).catch(() => undefined);
      return response?.ok ? parseOwn(await response.text()) : {};
    },
  };
}

/** The error of a name with several addresses has only a code. */
function unanswered(base: string, { code, message }: NodeJS.ErrnoException): string {
  return `the app's server (${base}) does not answer (${code ?? message})`;
}

/** An app without its own configuration, or whose server answers every path with a page, has no fields. */
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

function notFound(response: ServerResponse, text: string): void {
  response.writeHead(404, { "content-type": "text/plain" }).end(`${text}\n`);
}

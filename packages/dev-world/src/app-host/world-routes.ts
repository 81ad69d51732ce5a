/**
 * The paths by which a web app reaches the local world.
 *
 * | path           | what it serves                                                                                |
 * | -------------- | --------------------------------------------------------------------------------------------- |
 * | /agarose.json  | the client configuration; `?pops=a,b&regions=c` selects some of them, in that order           |
 * | /agarose*.js   | the drop-in files                                                                             |
 * | /ec/KEY        | the object, decoded by the nearest PoP: for pages that no service worker controls             |
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { ClientConfigInput, Endpoint } from "@agarose/sw";
import { DEVELOPMENT_KEY } from "@agarose/core/format";
import type { World } from "../world/world.ts";
import { passOn } from "../proxy/pass-on.ts";

/** Handles a request, or calls `next` when the path is not its own. */
export type Middleware = (request: IncomingMessage, response: ServerResponse, next: () => void) => void;

/** Content of the paths. */
export interface WorldRoutesOptions {
  readonly config: () => Promise<ClientConfigInput>;
  /** Base URL of the PoP nearest to the client, as the client reaches it. */
  readonly edge: () => string;
  /** The drop-in files by name, as `dropInFiles` of `@agarose/sw/files` returns them. */
  readonly dropInFiles: () => Promise<ReadonlyMap<string, Uint8Array>>;
}

const PREFIX_DEFAULT = "/ec/";

/** Returns the client configuration of a world. Its app chooses the prefix. */
export function worldClientConfig({ pops, regions }: Pick<World, "pops" | "regions">): ClientConfigInput {
  return {
    publicKeys: [DEVELOPMENT_KEY.publicKey],
    pops,
    regions: regions.map(({ name, endpoint, bucket }) => ({ name, url: `${endpoint}/${bucket}` })),
  };
}

/** Returns the middleware that serves these paths. */
export function worldRoutes(options: WorldRoutesOptions): Middleware {
  return (request, response, next) => {
    serve(options, request, response, next).catch((error: unknown) => {
      if (response.headersSent) response.destroy();
      else sendError(response, 500, "INTERNAL", String(error), {});
    });
  };
}

async function serve(
  options: WorldRoutesOptions,
  request: IncomingMessage,
  response: ServerResponse,
  next: () => void,
): Promise<void> {
  const { url = "/" } = request;
  const { pathname, searchParams } = new URL(url, "http://app");
  if (pathname === "/agarose.json") {
    return sendJson(response, 200, selectFrom(await options.config(), searchParams));
  }
  const [, file] = /^\/(agarose[\w.-]*\.js(?:\.map)?)$/.exec(pathname) ?? [];
  if (file) {
    const content = (await options.dropInFiles()).get(file);
    return content ? sendScript(response, content) : next();
  }
  const { prefix = PREFIX_DEFAULT } = await options.config();
  if (!url.startsWith(prefix)) return next();
  const edge = options.edge();
  const path = `/o/${url.slice(prefix.length)}`;
  await passOn(edge, request, response, { path }).catch((error: Error) => {
    if (response.headersSent) return;
    const message =
      `the nearest PoP (${edge}) does not answer (${error.message}): ` +
      "end its fault at the control address, or read through the service worker";
    sendError(response, 502, "SOURCE_FAILED", message, { edge });
  });
}

function selectFrom(
  { pops = [], regions = [], ...config }: ClientConfigInput,
  query: URLSearchParams,
): ClientConfigInput {
  const select = (all: readonly Endpoint[], names: string | null): readonly Endpoint[] =>
    names?.split(",").flatMap((name) => all.find((one) => one.name === name) ?? []) ?? all;
  return { ...config, pops: select(pops, query.get("pops")), regions: select(regions, query.get("regions")) };
}

function sendJson(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store" });
  response.end(JSON.stringify(value));
}

function sendError(response: ServerResponse, status: number, code: string, message: string, details: object): void {
  sendJson(response, status, { error: { code, message, details } });
}

function sendScript(response: ServerResponse, content: Uint8Array): void {
  const headers = { "content-type": "text/javascript", "cache-control": "no-cache", "service-worker-allowed": "/" };
  response.writeHead(200, headers).end(content);
}

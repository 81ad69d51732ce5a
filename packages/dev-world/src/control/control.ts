/** The control address of the local world: faults, the client's place, the Cron Trigger and the log, over HTTP. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { errorAnswer } from "@agarose/core/http";
import { closeServer, listenLocally } from "../listen-locally.ts";
import type { Uploader } from "../world/uploader.ts";
import type { World } from "../world/world.ts";
import { findRoute, stateOf, type ControlContext } from "./routes.ts";

/** A running control address. */
export interface Control {
  readonly url: string;
  close(): Promise<void>;
}

const CORS = {
  "access-control-allow-origin": "*",
  "access-control-allow-methods": "GET, POST, PUT",
  "access-control-allow-headers": "*",
};

/** Starts the control address of `world` on a free port of this machine. */
export async function startControl(world: World, uploader: Pick<Uploader, "put" | "copy">): Promise<Control> {
  const context: ControlContext = { world, ...uploader };
  const server = createServer((request, response) => {
    answer(context, request, response).catch((error: unknown) => {
      const { status, headers, body } = errorAnswer(error);
      response.writeHead(status, { ...headers, "access-control-allow-origin": "*" }).end(body);
    });
  });
  return { url: await listenLocally(server), close: () => closeServer(server) };
}

async function answer(context: ControlContext, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method === "OPTIONS") {
    response.writeHead(204, CORS).end();
    return;
  }
  const { pathname } = new URL(request.url ?? "/", "http://control");
  const { route, name } = findRoute(request.method ?? "GET", pathname);
  const result = (await route.handle(context, name, request)) ?? (await stateOf(context.world));
  response.writeHead(200, { ...CORS, "content-type": "application/json" }).end(`${JSON.stringify(result)}\n`);
}

/** CORS headers: any origin may read and, with a signature, write. */
import type { IncomingMessage, ServerResponse } from "node:http";

const METHODS = "GET, HEAD, PUT, POST, DELETE";
const PREFLIGHT_SECONDS = "3600";

/** Adds the CORS headers of a response to a cross-origin request, whose page may see the headers `exposed`. */
export function allowOrigin(request: IncomingMessage, response: ServerResponse, exposed: readonly string[]): void {
  // Also without an origin: a browser that has kept an image would refuse a script the same URL.
  response.setHeader("vary", "Origin");
  if (request.headers.origin === undefined) return;
  response.setHeader("access-control-allow-origin", "*");
  response.setHeader("access-control-expose-headers", exposed.join(", "));
}

/** Answers a preflight. */
export function answerPreflight(request: IncomingMessage, response: ServerResponse): void {
  response.setHeader("access-control-allow-methods", METHODS);
  response.setHeader("access-control-allow-headers", request.headers["access-control-request-headers"] ?? "*");
  response.setHeader("access-control-max-age", PREFLIGHT_SECONDS);
  response.writeHead(200, { "content-length": "0" });
  response.end();
}

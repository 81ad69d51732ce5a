/** A streaming reverse proxy for one request. */
import {
  request as httpRequest,
  type Agent,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type ServerResponse,
} from "node:http";
import { pipeline, type Transform } from "node:stream";

/** How to pass a request on. */
export interface PassOptions {
  /** Path and query, as they are sent. Default: those of the request. */
  readonly path?: string | undefined;
  /** Default: those of the request, with the host of the target. */
  readonly headers?: OutgoingHttpHeaders;
  readonly agent?: Agent | false;
  /** Called when the answer begins. It may give the client other headers, and other bytes. */
  readonly onAnswer?: (answer: IncomingMessage) => { headers?: OutgoingHttpHeaders; through?: Transform };
}

/** The headers of one connection, which a proxy does not pass on (RFC 9110, section 7.6.1). */
const HOP_BY_HOP = ["connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"];

/**
 * Passes a request on to the server at `target`. Bodies stream both ways, as fast as their readers take them, and an
 * abort of the client reaches the server.
 *
 * Resolves when the client has the whole answer. Rejects when the server does not answer, and then nothing was sent to
 * the client, or when the answer breaks off, and then the client's does, too.
 */
export function passOn(
  target: string,
  request: IncomingMessage,
  response: ServerResponse,
  { path = request.url, headers, agent, onAnswer }: PassOptions = {},
): Promise<void> {
  const { hostname, port, host } = new URL(target);
  const sent = withoutHops(headers ?? { ...request.headers, host });
  return new Promise((resolve, reject) => {
    // A URL would change some of the paths that name objects, such as those with `..` in them.
    const options = { hostname, port, path, method: request.method, headers: sent, agent };
    const upstream = httpRequest(options, (answer) => {
      // Destroying the request does not destroy an answer that has come whole, and the pipeline then waits for it.
      response.once("close", () => answer.destroy());
      const { headers: changed = answer.headers, through } = onAnswer?.(answer) ?? {};
      response.writeHead(answer.statusCode ?? 502, answer.statusMessage, withoutHops(changed));
      response.flushHeaders();
      pipeline([answer, ...(through ? [through] : []), response], (error) => (error ? reject(error) : resolve()));
    });
    upstream.on("error", reject);
    response.once("close", () => upstream.destroy());
    pipeline(request, upstream, () => {});
  });
}

function withoutHops(headers: OutgoingHttpHeaders): OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.includes(name)));
}

/** A streaming reverse proxy for one request. */
import { request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders, type ServerResponse } from "node:http";
import { pipeline } from "node:stream";

/** The headers of one connection, which a proxy does not pass on (RFC 9110, section 7.6.1). */
const HOP_BY_HOP = ["connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"];

/** Passes a request on to `url`. Bodies stream both ways, and an abort of the client reaches the server. */
export function passOn(
  url: URL,
  request: IncomingMessage,
  response: ServerResponse,
  onError: (error: Error) => void,
): void {
  const headers = { ...withoutHops(request.headers), host: url.host };
  const upstream = httpRequest(url, { method: request.method, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, withoutHops(answer.headers));
    response.flushHeaders();
    pipeline(answer, response, () => {});
  });
  upstream.on("error", (error) => {
    if (response.headersSent) response.destroy();
    else onError(error);
  });
  response.once("close", () => upstream.destroy());
  pipeline(request, upstream, () => {});
}

function withoutHops(headers: OutgoingHttpHeaders): OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.includes(name)));
}

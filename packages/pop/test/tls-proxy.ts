/**
 * A proxy with TLS in front of a PoP, as `docs/guides/own-pop.md` asks for: HTTP/2 to clients, HTTP/1.1 over kept
 * connections to the PoP. It appends the client's address to `X-Forwarded-For`.
 */
import { once } from "node:events";
import { Agent, request as forward } from "node:http";
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import type { AddressInfo } from "node:net";
import { pipeline } from "node:stream";
import { generate } from "selfsigned";

/** A proxy that listens. */
export interface TlsProxy {
  readonly url: string;
  /** The certificate that its clients must trust. */
  readonly certificate: string;
  close(): Promise<void>;
}

/** Headers of a connection, which a proxy must not pass on (RFC 9113, section 8.2.2). */
const OF_CONNECTION = new Set(["connection", "keep-alive", "transfer-encoding"]);

/** Resolves when the proxy in front of `target` listens on all addresses of this machine, at one port. */
export async function startTlsProxy(target: string): Promise<TlsProxy> {
  const { private: key, cert } = await generate([{ name: "commonName", value: "localhost" }], {
    keyType: "ec",
    extensions: [
      {
        name: "subjectAltName",
        altNames: [
          { type: 2, value: "localhost" },
          { type: 7, ip: "127.0.0.1" },
        ],
      },
    ],
  });
  const agent = new Agent({ keepAlive: true });
  const server = createSecureServer({ key, cert, allowHTTP1: true }, (request, response) =>
    pass(request, response, new URL(request.url, target), agent),
  );
  server.listen(0, "0.0.0.0");
  await once(server, "listening");
  return {
    url: `https://localhost:${(server.address() as AddressInfo).port}`,
    certificate: cert,
    async close() {
      agent.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

function pass(request: Http2ServerRequest, response: Http2ServerResponse, url: URL, agent: Agent): void {
  const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => !name.startsWith(":")));
  const claimed = headers["x-forwarded-for"];
  const address = request.socket.remoteAddress!;
  const sent = forward(url, {
    agent,
    method: request.method,
    headers: { ...headers, "x-forwarded-for": claimed === undefined ? address : `${String(claimed)}, ${address}` },
  });
  sent.once("response", (answer) => {
    const kept = Object.entries(answer.headers).filter(([name]) => !OF_CONNECTION.has(name));
    response.writeHead(answer.statusCode!, Object.fromEntries(kept));
    // Ends the other side when one of them fails or leaves.
    pipeline(answer, response.stream ?? response, () => answer.destroy());
  });
  sent.once("error", () => {
    if (response.headersSent) return response.stream?.close();
    response.writeHead(502);
    response.end();
  });
  response.once("close", () => sent.destroy());
  request.pipe(sent);
}

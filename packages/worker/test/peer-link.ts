/** The way from one PoP to another: a reverse proxy that delays, breaks and records what passes. For tests. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { listenLocally } from "@agarose/dev-world/listen-locally";

export interface LinkFault {
  readonly down?: boolean;
  readonly delayMs?: number;
  /** Replaces the answer to a request for a chunk. */
  readonly spoil?: (body: Uint8Array) => Uint8Array;
  /** Cuts the connection of a request for a chunk; all else passes. */
  readonly cutsChunks?: boolean;
  /** Messages that do not arrive although their sender believes so. */
  readonly loses?: boolean;
}

/** A message as it passed. */
export interface PassedMessage {
  readonly headers: Record<string, string>;
  readonly body: string;
  readonly status: number;
}

export interface PeerLink {
  readonly url: string;
  /** Base URL of the PoP behind it. */
  target: string;
  fault: LinkFault;
  /** Requests answered in the way of the fault. */
  fired: number;
  /** When each was, in milliseconds since 1970. */
  readonly firedAtMs: number[];
  readonly paths: string[];
  readonly messages: PassedMessage[];
  /** The `traceparent` headers of requests for chunks. */
  readonly traceparents: Set<string | undefined>;
  close(): Promise<void>;
}

export async function startPeerLink(latencyMs: number): Promise<PeerLink> {
  const server = createServer((incoming, outgoing) => {
    answer(incoming, outgoing).catch(() => outgoing.destroy());
  });
  const fire = (): void => {
    link.fired++;
    link.firedAtMs.push(Date.now());
  };
  const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
  const answer = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const { method = "GET", url = "" } = incoming;
    const parts: Buffer[] = [];
    for await (const part of incoming) parts.push(part as Buffer);
    const sent = Buffer.concat(parts);
    const { fault } = link;
    link.paths.push(`${method} ${url}`);
    if (url.startsWith("/v1/chunk/")) link.traceparents.add(incoming.headers["traceparent"] as string | undefined);
    await sleep(latencyMs + (fault.delayMs ?? 0));
    if (fault.delayMs) fire();
    if (fault.down || (fault.cutsChunks && url.startsWith("/v1/chunk/"))) {
      fire();
      incoming.socket.destroy();
      return;
    }
    if (fault.loses && method === "POST") {
      fire();
      outgoing.writeHead(204).end();
      return;
    }
    const headers = Object.fromEntries(
      Object.entries(incoming.headers).filter(([name]) => name.startsWith("x-agarose-")),
    ) as Record<string, string>;
    const response = await fetch(`${link.target}${url}`, {
      method,
      headers,
      ...(method === "POST" ? { body: sent } : {}),
    });
    let body = new Uint8Array(await response.arrayBuffer());
    if (method === "POST") link.messages.push({ headers, body: sent.toString(), status: response.status });
    if (fault.spoil && url.startsWith("/v1/chunk/")) {
      fire();
      body = new Uint8Array(fault.spoil(body));
    }
    outgoing.writeHead(response.status, { "content-length": body.length });
    outgoing.end(response.status === 204 ? undefined : body);
  };
  const url = await listenLocally(server);
  const link: PeerLink = {
    url,
    target: "",
    fault: {},
    fired: 0,
    firedAtMs: [],
    paths: [],
    messages: [],
    traceparents: new Set(),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return link;
}

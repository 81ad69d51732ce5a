/** A plain HTTP server with one bucket per region, and faults on demand. For tests. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { listenLocally } from "@agarose/dev-world/listen-locally";
import { lookUp, type Buckets } from "./objects.ts";

export interface BucketFault {
  readonly down?: boolean;
  /** Replaces what would be sent of a chunk. */
  readonly spoil?: (body: Uint8Array) => Uint8Array;
  /** Answer everything with a redirect to here. */
  readonly redirect?: string;
  /** Answer everything with this status and no body. */
  readonly status?: number;
  readonly delayMs?: number;
  /** Answer requests for chunks only once this is settled. */
  readonly chunksAfter?: Promise<void>;
  /** How fast bodies come, all at once at their end. */
  readonly bytesPerMs?: number;
}

export interface BucketRequest {
  readonly region: string;
  readonly name: string;
  readonly range: string | undefined;
}

export interface BucketServer extends Buckets {
  readonly url: string;
  /** By region. */
  readonly faults: Map<string, BucketFault>;
  /** Requests answered in the way of a fault, by region. */
  readonly fired: Map<string, number>;
  readonly requests: BucketRequest[];
  /** Bytes of bodies since this was last set. */
  sentBytes: number;
  /** Names of all headers that came with requests, lower-case. */
  readonly headerNames: Set<string>;
  /** The most requests that were waiting for their headers at one time since this was last set. */
  mostWaiting: number;
  close(): Promise<void>;
}

/** So that the edge is worth something: a bucket beside the PoP would need no cache. */
const LATENCY_MS = 15;

/** Objects are named `<region>/<name>`, names as in `chunkName` and `manifestName`. */
export async function startBuckets(): Promise<BucketServer> {
  const objects = new Map<string, Uint8Array>();
  const faults = new Map<string, BucketFault>();
  const fired = new Map<string, number>();
  const requests: BucketRequest[] = [];
  const headerNames = new Set<string>();
  let waiting = 0;
  const server = createServer((request, response) => void answerCounted(request, response));
  const answerCounted = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    waiting++;
    result.mostWaiting = Math.max(result.mostWaiting, waiting);
    try {
      await answer(request, response);
    } finally {
      waiting--;
    }
  };
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const [, region = "", ...rest] = (request.url ?? "").split("/");
    const name = rest.map(decodeURIComponent).join("/");
    const { range } = request.headers;
    requests.push({ region, name, range });
    for (const header of Object.keys(request.headers)) headerNames.add(header);
    const fault = faults.get(region) ?? {};
    const fire = (): void => void fired.set(region, (fired.get(region) ?? 0) + 1);
    await new Promise((resolve) => setTimeout(resolve, LATENCY_MS));
    if (fault.delayMs) {
      fire();
      await new Promise((resolve) => setTimeout(resolve, fault.delayMs));
    }
    if (fault.chunksAfter && name.startsWith("chunks/")) {
      fire();
      await fault.chunksAfter;
    }
    if (fault.down) {
      fire();
      request.socket.destroy();
      return;
    }
    if (fault.status) {
      fire();
      response.writeHead(fault.status).end();
      return;
    }
    if (fault.redirect) {
      fire();
      response.writeHead(302, { location: `${fault.redirect}${request.url}` }).end();
      return;
    }
    const { status, body: found } = lookUp({ objects }, request.url ?? "", range);
    let body = found;
    if (status !== 404 && fault.spoil && name.startsWith("chunks/")) {
      fire();
      body = fault.spoil(body);
    }
    if (fault.bytesPerMs) {
      fire();
      await new Promise((resolve) => setTimeout(resolve, body.length / fault.bytesPerMs!));
    }
    result.sentBytes += body.length;
    response.writeHead(status, { "content-length": body.length }).end(body);
  };
  const url = await listenLocally(server);
  const result: BucketServer = {
    url,
    objects,
    faults,
    fired,
    requests,
    headerNames,
    sentBytes: 0,
    mostWaiting: 0,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return result;
}

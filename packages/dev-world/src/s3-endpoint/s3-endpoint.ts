/**
 * An S3 endpoint for development and tests: path-style buckets on disk. It checks signatures and checksums.
 *
 * Do not keep valuable data in it: it does not sync its writes, and it has one pair of credentials.
 */
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sendError } from "./wire/answers.ts";
import { allowOrigin, answerPreflight } from "./wire/cors.ts";
import type { Exchange } from "./exchange.ts";
import { KeyLock } from "./key-lock.ts";
import { MultipartUploads } from "./multipart.ts";
import { StoredObjects } from "./object-store.ts";
import { routeOf } from "./routes.ts";
import { S3Error } from "./wire/s3-error.ts";
import { checkSignature, decode, type Credentials } from "./wire/signature.ts";

/** How an endpoint is set up. */
export interface S3EndpointOptions extends Credentials {
  /** Buckets that exist from the start. */
  readonly buckets: readonly string[];
  /** Folder of the data. Default: a temporary folder, which `close` removes. */
  readonly dir?: string;
  /** Default: any free port. */
  readonly port?: number;
  readonly host?: string;
  /** Whether objects (not lists) can be read without credentials, as a web app needs. Default: true. */
  readonly publicRead?: boolean;
  /** Whether browsers of any origin may read. Default: true. */
  readonly cors?: boolean;
  /** Sees every request first. A true result means that it has answered (or destroyed) the request itself. */
  readonly intercept?: (request: IncomingMessage, response: ServerResponse) => boolean | Promise<boolean>;
  /** Milliseconds since 1970. Default: `Date.now`. */
  readonly nowMs?: () => number;
}

/** A running S3 server. */
export interface S3Endpoint {
  /** `http://host:port`, without a trailing slash. */
  readonly url: string;
  close(): Promise<void>;
}

/** Starts the endpoint. Resolves when it listens. */
export async function startS3Endpoint(options: S3EndpointOptions): Promise<S3Endpoint> {
  const dir = options.dir ?? (await mkdtemp(join(tmpdir(), "agarose-s3-")));
  const store = await StoredObjects.open(dir);
  for (const bucket of options.buckets) await store.createBucket(bucket);
  const endpoint = new Endpoint(store, options);
  const server = createServer((request, response) => void endpoint.serve(request, response));
  // An SDK client keeps idle connections for longer than Node's default of 5 s, and would see them reset.
  server.keepAliveTimeout = 65_000;
  server.requestTimeout = 0;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  server.listen(options.port ?? 0, options.host ?? "127.0.0.1", resolve);
  await promise;
  return {
    url: `http://${options.host ?? "127.0.0.1"}:${(server.address() as AddressInfo).port}`,
    async close() {
      const closed = new Promise<void>((done) => server.close(() => done()));
      server.closeAllConnections();
      await closed;
      if (options.dir === undefined) await rm(dir, { recursive: true, force: true });
    },
  };
}

class Endpoint {
  readonly #store: StoredObjects;
  readonly #options: S3EndpointOptions;
  readonly #uploads = new MultipartUploads();
  readonly #locks = new KeyLock();

  constructor(store: StoredObjects, options: S3EndpointOptions) {
    this.#store = store;
    this.#options = options;
  }

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const requestId = randomUUID();
    response.setHeader("x-amz-request-id", requestId);
    response.setHeader("server", "agarose-s3");
    try {
      if (await this.#options.intercept?.(request, response)) return;
      if (this.#options.cors !== false) {
        allowOrigin(request, response);
        if (request.method === "OPTIONS") return answerPreflight(request, response);
      }
      await this.#operate(request, response);
    } catch (error) {
      sendError(request, response, error, requestId);
    }
  }

  async #operate(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path = "", ...rest] = (request.url ?? "/").split("?");
    const query = rest.join("?");
    const [, bucket = "", ...segments] = path.split("/");
    const method = request.method ?? "GET";
    const exchange: Exchange = {
      request,
      response,
      bucket: decode(bucket),
      key: decode(segments.join("/")),
      query: new URLSearchParams(query),
      signing: checkSignature({ method, path, query, headers: request.headers }, this.#options, this.#nowMs()),
      store: this.#store,
      uploads: this.#uploads,
      locks: this.#locks,
      nowMs: () => this.#nowMs(),
    };
    const operation = routeOf(method, exchange.bucket, exchange.key, exchange.query);
    if (!exchange.signing) this.#checkAnonymous(exchange);
    await operation(exchange);
  }

  #checkAnonymous({ request, key, query }: Exchange): void {
    const reads = (request.method === "GET" || request.method === "HEAD") && key !== "" && query.size === 0;
    if (this.#options.publicRead === false || !reads) throw new S3Error("AccessDenied", "Access Denied");
  }

  #nowMs(): number {
    return (this.#options.nowMs ?? Date.now)();
  }
}

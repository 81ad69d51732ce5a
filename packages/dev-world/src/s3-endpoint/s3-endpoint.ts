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
import { sendContinue, sendError, serveAll } from "@agarose/s3-server/wire/answers";
import { allowOrigin, answerPreflight } from "@agarose/s3-server/wire/cors";
import { KeyLock } from "@agarose/s3-server/key-lock";
import { MultipartUploads } from "./multipart.ts";
import { StoredObjects } from "./object-store.ts";
import { SERVED } from "./routes.ts";
import { readRequest, type S3Request } from "@agarose/s3-server/wire/request";
import { findOperation } from "@agarose/s3-server/wire/routes";
import { S3Error } from "@agarose/s3-server/wire/s3-error";
import type { Credentials } from "@agarose/s3-server/wire/signature";

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
  const server = createServer();
  serveAll(server, (request, response) => void endpoint.serve(request, response));
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
        if (request.method === "OPTIONS" && request.headers.origin) return answerPreflight(request, response);
      }
      await this.#operate(request, response);
    } catch (error) {
      sendError(request, response, error, requestId);
    }
  }

  async #operate(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const asked = readRequest(request, this.#options, this.#nowMs());
    const owner = this.#options.accessKeyId;
    const operation = findOperation(SERVED, asked, owner);
    if (!asked.signing) this.#checkAnonymous(asked);
    sendContinue({ request, response });
    await operation({
      ...asked,
      request,
      response,
      store: this.#store,
      uploads: this.#uploads,
      locks: this.#locks,
      owner,
      nowMs: () => this.#nowMs(),
    });
  }

  #checkAnonymous({ method, key, query }: S3Request): void {
    const reads = (method === "GET" || method === "HEAD") && key !== "" && !query.has("uploadId");
    if (this.#options.publicRead === false || !reads) throw new S3Error("AccessDenied", "Access Denied");
  }

  #nowMs(): number {
    return (this.#options.nowMs ?? Date.now)();
  }
}

/**
 * An S3 endpoint for development and tests: path-style buckets on disk. It checks signatures and checksums.
 *
 * Do not keep valuable data in it: it does not sync its writes, and it has one pair of credentials.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startS3Server, type Credentials, type S3ServerOptions } from "@agarose/s3-server";
import { FileBackend } from "./file-backend.ts";
import { StoredObjects } from "./object-store.ts";

/** As many as buckets show with a usual rule of CORS. */
const EXPOSED = [
  "Accept-Ranges",
  "Content-Encoding",
  "Content-Length",
  "Content-Range",
  "Date",
  "ETag",
  "Last-Modified",
  "x-amz-request-id",
];

/** How an endpoint is set up. */
export interface S3EndpointOptions extends Credentials, Pick<S3ServerOptions, "port" | "host" | "intercept" | "nowMs"> {
  /** Buckets that exist from the start. */
  readonly buckets: readonly string[];
  /** Folder of the data. Default: a temporary folder, which `close` removes. */
  readonly dir?: string;
  /** Whether objects (not lists) can be read without credentials, as a web app needs. Default: true. */
  readonly publicRead?: boolean;
  /** Whether browsers of any origin may read. Default: true. */
  readonly cors?: boolean;
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
  const { accessKeyId, secretAccessKey, publicRead = true, cors = true, nowMs = Date.now } = options;
  const { port, host, intercept } = options;
  const server = await startS3Server({
    backend: new FileBackend(store, nowMs),
    pairs: [{ accessKeyId, secretAccessKey }],
    name: "agarose-s3",
    port,
    host,
    publicRead,
    cors: cors ? EXPOSED : undefined,
    intercept,
    nowMs,
  });
  return {
    url: server.url,
    async close() {
      await server.close();
      if (options.dir === undefined) await rm(dir, { recursive: true, force: true });
    },
  };
}

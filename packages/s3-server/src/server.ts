/** The server: it checks who asks, finds the operation, runs it on the backend, and reports what fails. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { AgaroseError } from "@agarose/core";
import type { Backend } from "./backend.ts";
import { errorOf, type Exchange } from "./exchange.ts";
import { KeyLock } from "./key-lock.ts";
import { checkRights, type KeyPair } from "./rights.ts";
import * as attributes from "./operations/attributes.ts";
import * as buckets from "./operations/buckets.ts";
import * as copies from "./operations/copies.ts";
import * as uploads from "./operations/multipart.ts";
import * as objects from "./operations/objects.ts";
import { postObject } from "./operations/post.ts";
import * as tagging from "./operations/tagging.ts";
import { objectAcl, SETTINGS } from "./operations/settings.ts";
import { sendContinue, sendError, serveAll } from "./wire/answers.ts";
import { allowOrigin, answerPreflight } from "./wire/cors.ts";
import { isForm } from "./wire/form.ts";
import type { OperationName } from "./wire/operations.ts";
import { readRequest } from "./wire/request.ts";
import { findOperation } from "./wire/routes.ts";
import { S3Error } from "./wire/s3-error.ts";

/** How a server is set up. */
export interface S3ServerOptions {
  readonly backend: Backend;
  /**
   * The clients' pairs of keys, each with a different access key id. The id of the first one names the owner of all.
   */
  readonly pairs: readonly [KeyPair, ...KeyPair[]];
  /** The `Server` header. */
  readonly name: string;
  /** Default: any free port. */
  readonly port?: number | undefined;
  /** Default: 127.0.0.1. */
  readonly host?: string | undefined;
  /** In lower case. A request to the host `BUCKET.<domain>` is for that bucket, without it in the path. */
  readonly domain?: string | undefined;
  /** Whether objects (not lists) can be read without a signature. Default: false. */
  readonly publicRead?: boolean;
  /** The headers of an answer that pages of any origin may see, or `*`. Default: no page may ask. */
  readonly cors?: readonly string[] | undefined;
  /** Sees every request first. A true result means that it has answered (or destroyed) the request itself. */
  readonly intercept?: ((request: IncomingMessage, response: ServerResponse) => boolean | Promise<boolean>) | undefined;
  /** Milliseconds since 1970. Default: `Date.now`. */
  readonly nowMs?: (() => number) | undefined;
}

/** A running server. */
export interface S3Server {
  /** `http://host:port`, without a trailing slash. */
  readonly url: string;
  /** Takes no more requests, and ends those that are still under way after `graceMs`, by default at once. */
  close(graceMs?: number): Promise<void>;
}

/** All operations, by their names in S3. */
const SERVED: Readonly<Record<OperationName, (exchange: Exchange) => Promise<void>>> = {
  ListBuckets: buckets.listBuckets,
  CreateBucket: buckets.createBucket,
  HeadBucket: buckets.headBucket,
  DeleteBucket: buckets.deleteBucket,
  ...SETTINGS,
  ListObjects: buckets.listObjects,
  ListObjectsV2: buckets.listObjects,
  ListObjectVersions: buckets.listVersions,
  ListMultipartUploads: uploads.listUploads,
  DeleteObjects: objects.deleteObjects,
  PostObject: postObject,
  GetObject: objects.readObject,
  HeadObject: objects.readObject,
  GetObjectAcl: objectAcl,
  GetObjectTagging: tagging.objectTagging,
  PutObjectTagging: tagging.putTagging,
  DeleteObjectTagging: tagging.deleteTagging,
  GetObjectAttributes: attributes.objectAttributes,
  CopyObject: copies.copyObject,
  PutObject: objects.putObject,
  DeleteObject: objects.deleteObject,
  CreateMultipartUpload: uploads.createUpload,
  UploadPartCopy: copies.copyPart,
  UploadPart: uploads.uploadPart,
  ListParts: uploads.listParts,
  CompleteMultipartUpload: uploads.completeUpload,
  AbortMultipartUpload: uploads.abortUpload,
};

/** Starts a server. Resolves when it listens, and rejects with the error of Node when it cannot. */
export async function startS3Server(options: S3ServerOptions): Promise<S3Server> {
  const { port = 0, host = "127.0.0.1" } = options;
  const locks = new KeyLock();
  const server = createServer();
  serveAll(server, (request, response) => void serve(request, response, options, locks));
  // An SDK keeps idle connections for longer than Node's default of 5 s, and a large upload takes as long as it takes.
  server.keepAliveTimeout = 65_000;
  server.requestTimeout = 0;
  server.listen(port, host);
  await once(server, "listening");
  const { port: actual } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${actual}`,
    async close(graceMs = 0) {
      const closed = once(server, "close");
      server.close();
      server.closeIdleConnections();
      const timer = setTimeout(() => server.closeAllConnections(), graceMs);
      await closed;
      clearTimeout(timer);
    },
  };
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  options: S3ServerOptions,
  locks: KeyLock,
): Promise<void> {
  const requestId = randomUUID();
  response.setHeader("x-amz-request-id", requestId);
  response.setHeader("server", options.name);
  const left = new AbortController();
  response.once("close", () => left.abort(new AgaroseError("ABORTED", "the client left")));
  try {
    if (await options.intercept?.(request, response)) return;
    if (options.cors) {
      allowOrigin(request, response, options.cors);
      if (request.method === "OPTIONS" && request.headers.origin) return answerPreflight(request, response);
    }
    await operate(request, response, options, { locks, left: left.signal });
  } catch (error) {
    await options.backend.recover?.(error);
    const isRead = request.method === "GET" || request.method === "HEAD";
    sendError(request, response, errorOf(options, error, isRead), requestId);
  }
}

async function operate(
  request: IncomingMessage,
  response: ServerResponse,
  { backend, pairs, publicRead, domain, nowMs = Date.now }: S3ServerOptions,
  shared: Pick<Exchange, "locks" | "left">,
): Promise<void> {
  const cameMs = nowMs();
  const asked = readRequest(request, { pairs, domain, nowMs: cameMs });
  const mayBeOpen = publicRead || isForm(request.headers["content-type"]);
  if (!asked.signing && !mayBeOpen) throw new S3Error("AccessDenied", "The request is not signed.");
  const owner = pairs[0].accessKeyId;
  const name = findOperation(asked, owner);
  const isOpen = name === "PostObject" || (publicRead && (name === "GetObject" || name === "HeadObject"));
  if (!asked.signing && !isOpen) throw new S3Error("AccessDenied", "Only objects can be read without a signature.");
  const rights = pairs.find(({ accessKeyId }) => accessKeyId === asked.signing?.accessKeyId) ?? {};
  checkRights(rights, name, asked);
  if (name !== "ListBuckets" && name !== "CreateBucket") backend.checkBucket(asked.bucket);
  sendContinue({ request, response });
  await SERVED[name]({ ...asked, ...shared, request, response, backend, owner, rights, pairs, nowMs: cameMs });
}

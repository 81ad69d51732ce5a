/** The server of the gateway: it checks who asks, finds the operation, and reports what fails. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import {
  findOperation,
  readRequest,
  S3Error,
  sendContinue,
  sendError,
  serveAll,
  type Credentials,
} from "@agarose/s3-server";
import { KeyLock } from "@agarose/s3-server/key-lock";
import { AgaroseError, systemClock } from "@agarose/core";
import type { DeploymentParts } from "@agarose/storage/parts";
import { Breaker } from "@agarose/storage/regions/ask-regions";
import { KnownRegions } from "@agarose/storage/regions/known-regions";
import type { Consistency } from "@agarose/storage/objects/manifests";
import { BUCKET, type Shared } from "./exchange.ts";
import { takeFolder, Uploads } from "./multipart/uploads.ts";
import { SERVED } from "./routes.ts";
import { s3ErrorOf } from "./s3-error-of.ts";
import { SortedKeys } from "./sorted-keys.ts";
import { Spool } from "./spool.ts";

/** How a gateway is set up. */
export interface GatewayOptions {
  /** The pair of keys that clients sign with. */
  readonly credentials: Credentials;
  /** 0 for any free port. */
  readonly port: number;
  readonly host: string;
  /** What reads and writes use. Its signal does not end a gateway: `close` does. */
  readonly context: DeploymentParts;
  /** Of reads and lists. Default: `strong`. */
  readonly consistency?: Consistency | undefined;
  /** Reads the configuration again, for a gateway that was started before a rotation. Default: it answers 503. */
  readonly reload?: () => Promise<DeploymentParts>;
  /** The most bytes of bodies that wait on disk. */
  readonly spoolBytes: number;
  /** The folder of multipart uploads, for the next gateway to have them. Default: this one forgets them. */
  readonly uploads?: string | undefined;
  /** Milliseconds since 1970. Default: `Date.now`. */
  readonly nowMs?: () => number;
}

/** A running gateway. */
export interface Gateway {
  /** `http://host:port`, without a trailing slash. */
  readonly url: string;
  /** Takes no more requests, waits for those under way, aborts those that take longer than `graceMs`, and resolves. */
  close(graceMs: number): Promise<void>;
}

/** Starts a gateway. Resolves when it listens. Throws USAGE without the port, or what `takeFolder` throws. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { credentials, port, host, spoolBytes, nowMs = Date.now } = options;
  const ending = new AbortController();
  const { consistency = "strong" } = options;
  const contextOf = (own: DeploymentParts): Shared["context"] => {
    const breaker = new Breaker(systemClock);
    const shown = { ...own, signal: ending.signal, breaker, clock: systemClock };
    return { ...shown, consistency, knownRegions: new KnownRegions(shown, true) };
  };
  const context = contextOf(options.context);
  const giveBack = options.uploads === undefined ? () => {} : await takeFolder(options.uploads);
  const spool = await Spool.open(spoolBytes, options.uploads);
  const shared: Shared = {
    context,
    keys: new SortedKeys(context, nowMs),
    spool,
    uploads: await Uploads.open(spool, options.uploads, nowMs),
    locks: new KeyLock(),
    owner: credentials.accessKeyId,
    startedMs: nowMs(),
    nowMs,
  };
  const service: Service = { credentials, shared };
  const reload = new Reload(nowMs, async () => {
    const next = options.reload && contextOf(await options.reload());
    if (next) service.shared = { ...service.shared, context: next, keys: new SortedKeys(next, nowMs) };
  });
  const server = createServer();
  serveAll(server, (request, response) => void serve(request, response, service, reload));
  // An SDK keeps idle connections for longer than Node's default of 5 s, and a large upload takes as long as it takes.
  server.keepAliveTimeout = 65_000;
  server.requestTimeout = 0;
  try {
    await listen(server, port, host);
  } catch (error) {
    await spool.close();
    giveBack();
    throw error;
  }
  const { port: actual } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${actual}`,
    async close(graceMs) {
      const closed = once(server, "close");
      server.close();
      server.closeIdleConnections();
      const cancel = systemClock.after(graceMs, () => {
        ending.abort(new AgaroseError("ABORTED", "the gateway ends: ask again"));
        server.closeAllConnections();
      });
      await closed;
      cancel();
      await spool.close();
      giveBack();
    },
  };
}

async function listen(server: Server, port: number, host: string): Promise<void> {
  try {
    server.listen(port, host);
    await once(server, "listening");
  } catch (error) {
    const message = `the gateway cannot listen on ${host}:${port} (${(error as Error).message}): choose another --port`;
    throw new AgaroseError("USAGE", message, { host, port }, error);
  }
}

interface Service {
  readonly credentials: Credentials;
  /** Another one after a reload. Requests under way end with what they began with. */
  shared: Shared;
}

/** What a gateway meets that was started before a rotation. */
const OUTDATED: ReadonlySet<string> = new Set([
  "KEYS_OUTDATED",
  "MANIFEST_UNTRUSTED",
  "SECRET_MISSING",
  "SECRET_WRONG",
]);
/** Who cannot be helped by another configuration must not have it read for every request. */
const RELOAD_MS_MIN = 1_000;

/** Reads the configuration again when an answer shows that it is from before. */
class Reload {
  readonly #nowMs: () => number;
  readonly #run: () => Promise<void>;
  #startedMs = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | undefined;

  constructor(nowMs: () => number, run: () => Promise<void>) {
    this.#nowMs = nowMs;
    this.#run = run;
  }

  /** Resolves when the next request has a configuration that fits, if there is one. Does not reject. */
  async after(error: unknown): Promise<void> {
    if (!(error instanceof AgaroseError) || !OUTDATED.has(error.code)) return;
    if (!this.#running && Math.abs(this.#nowMs() - this.#startedMs) < RELOAD_MS_MIN) return;
    this.#startedMs = this.#nowMs();
    this.#running ??= this.#once();
    await this.#running;
  }

  async #once(): Promise<void> {
    try {
      await this.#run();
    } catch {
      // A file that is being written is read again by the next request.
    } finally {
      this.#running = undefined;
    }
  }
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  service: Service,
  reload: Reload,
): Promise<void> {
  const requestId = randomUUID();
  response.setHeader("x-amz-request-id", requestId);
  response.setHeader("server", "agarose-gateway");
  const left = new AbortController();
  response.once("close", () => left.abort(new AgaroseError("ABORTED", "the client left")));
  try {
    await operate(request, response, left.signal, service);
  } catch (error) {
    await reload.after(error);
    const isRead = request.method === "GET" || request.method === "HEAD";
    sendError(request, response, s3ErrorOf(error, isRead), requestId);
  }
}

async function operate(
  request: IncomingMessage,
  response: ServerResponse,
  left: AbortSignal,
  { credentials, shared }: Service,
): Promise<void> {
  const asked = readRequest(request, credentials, shared.nowMs());
  if (!asked.signing) throw new S3Error("AccessDenied", "The request is not signed.");
  if (asked.bucket !== "" && asked.bucket !== BUCKET) {
    throw new S3Error("NoSuchBucket", `The gateway has one bucket: ${BUCKET}.`);
  }
  const operation = findOperation(SERVED, asked, shared.owner);
  sendContinue({ request, response });
  const signal = AbortSignal.any([left, shared.context.signal]);
  await operation({ ...shared, ...asked, request, response, left: signal });
}

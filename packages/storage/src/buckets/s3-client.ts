/** The AWS SDK's client of one region, and its errors in our words. */
import { createHash } from "node:crypto";
import { STATUS_CODES } from "node:http";
import { pipeline, Readable, Transform } from "node:stream";
import { S3Client, S3ServiceException, type S3ClientConfig } from "@aws-sdk/client-s3";
import { AgaroseError, toAgaroseError, type ErrorCode } from "@agarose/core";
import { freeDescriptors, isOutOfDescriptors, withDescriptors } from "../files/descriptors.ts";
import type { RegionConfig } from "../config/config.ts";
import { CREDENTIAL_PROBLEMS } from "./credential-problems.ts";
import { proxiesOf } from "./proxies.ts";
import { SigningHash } from "./signing-hash.ts";

/** How a region is asked. */
export interface S3StoreOptions {
  /** Default: the SDK's chain of environment, profiles and instance roles. */
  readonly credentials?: S3ClientConfig["credentials"];
  /** Names the source of the keys in errors. */
  readonly credentialsOrigin?: string;
  /** Tries per request, the first one included. */
  readonly attempts?: number;
  /** A request fails when nothing moves on its connection for this long. */
  readonly idleMs?: number;
  /** A stream of more than four times as many bytes is stored in parts of this length. Default: 1 GiB. */
  readonly partBytes?: number;
  /** Whether headers have the tags of an object, which cost a request. Regions may tag chunks. Default: false. */
  readonly readsTags?: boolean;
  /** Called when the store asks for fewer requests. The request itself is retried after a pause. */
  readonly onThrottle?: () => void;
}

/** Names where keys come from when their reader did not say. */
export const ORIGIN_DEFAULT = "the program that opened this store";

const ATTEMPTS_DEFAULT = 3;
const CONNECT_MS = 5_000;
const IDLE_MS_DEFAULT = 60_000;
/** Longer than a command of the configuration may take, whose own error is the better one. */
const CREDENTIALS_MS_MAX = 150_000;

/** To one region, of six. A request that waits for one of them would look like a region that hangs. */
const SOCKETS = Math.min(256, Math.max(8, Math.floor(freeDescriptors() / 6)));

const SILENT = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** Returns a client of the region's endpoint. Its owner destroys it. */
export function openClient(region: RegionConfig, options: S3StoreOptions): S3Client {
  const proxyEnv = proxiesOf(process.env) as NodeJS.ProcessEnv | undefined;
  const agent = { keepAlive: true, maxSockets: SOCKETS, ...(proxyEnv && { proxyEnv }) };
  const client = new S3Client({
    endpoint: region.endpoint,
    region: region.awsRegion,
    forcePathStyle: true,
    maxAttempts: options.attempts ?? ATTEMPTS_DEFAULT,
    // Puts ask for their checksum themselves, streams in a way of their own (`streamed-body.ts`).
    requestChecksumCalculation: "WHEN_REQUIRED",
    // Every chunk is checked by its SHA-256, which is stronger than the server's checksum.
    responseChecksumValidation: "WHEN_REQUIRED",
    // Some stores refuse it, and others never answer it. A refusal ends an upload in the middle as well.
    expectContinueHeader: false,
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      socketTimeout: options.idleMs ?? IDLE_MS_DEFAULT,
      httpAgent: agent,
      httpsAgent: agent,
    },
    // The SDK would warn on the console of what `storeFailure` reports anyway.
    logger: SILENT,
    sha256: SigningHash,
    ...(options.credentials && { credentials: options.credentials }),
  });
  followClock(client);
  return client;
}

/**
 * Makes a request wait while this process has no descriptor left for its connection, and `onThrottle` know of it, so
 * that less is asked at a time. A stream is gone once its request has failed, so its sender must restart.
 */
export function waitForDescriptors(client: S3Client, onThrottle: () => void = () => {}): void {
  client.middlewareStack.add(
    (next) => (args) => {
      return isStreamed(args.request) ? next(args) : withDescriptors(() => next(args), onThrottle);
    },
    { step: "deserialize", priority: "low", name: "waitForDescriptors" },
  );
}

/** Whether the body of a request is gone once it was sent. */
function isStreamed(request: unknown): boolean {
  const { body } = request as { readonly body?: unknown };
  return body instanceof Readable || body instanceof ReadableStream;
}

/** A clock that is wrong by less is no reason for a refusal: S3 allows 15 minutes. */
const SKEW_MS_MAX = 5 * 60_000;

/**
 * Sends a request once more, by the store's clock, that the store has refused because this machine's is wrong. The SDK
 * learns the clock from each answer, but then tries every failure again, and nothing where one try is all there is.
 */
function followClock(client: S3Client): void {
  const follow =
    <A extends { readonly request: unknown }, R>(next: (args: A) => Promise<R>) =>
    async (args: A): Promise<R> => {
      const signedBy = client.config.systemClockOffset;
      try {
        return await next(args);
      } catch (error) {
        const { $metadata } = error as {
          readonly $metadata?: { httpStatusCode?: number; clockSkewCorrected?: boolean };
        };
        if ($metadata) $metadata.clockSkewCorrected = false;
        const isSkewed = Math.abs(client.config.systemClockOffset - signedBy) > SKEW_MS_MAX;
        if (isStreamed(args.request) || !isSkewed || $metadata?.httpStatusCode !== 403) throw error;
        return next(args);
      }
    };
  const place = { relation: "before", toMiddleware: "httpSigningMiddleware", name: "followClock" } as const;
  client.middlewareStack.addRelativeTo(follow, place);
}

/** The part of an answer that middleware sees. */
interface Answer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  body?: unknown;
}

/**
 * Makes an error of something before the store, such as the page of a load balancer, one that the SDK retries. It
 * would try to parse the page, and report that.
 */
export function refusePages(client: S3Client): void {
  client.middlewareStack.add(
    (next) => async (args) => {
      const result = await next(args);
      const { statusCode, headers, body } = result.response as Answer;
      const type = headers["content-type"] ?? "";
      // S3 names its errors in XML, and in nothing where it answers HEAD.
      const isPage = statusCode >= 500 && type !== "" && !/xml|octet-stream/i.test(type);
      if (!isPage) return result;
      if (body instanceof Readable) body.resume();
      throw new S3ServiceException({
        name: STATUS_CODES[statusCode] ?? "InternalError",
        message: `something before the store answered ${statusCode} with ${type}`,
        $fault: "server",
        $metadata: { httpStatusCode: statusCode },
      });
    },
    { step: "deserialize", priority: "low", name: "refusePages" },
  );
}

/**
 * Makes a request fail when its keys do not come within `limitMs`. Neither a `credential_process` of a profile nor the
 * other sources of the SDK's chain have a limit of their own, and a request's signal does not reach them.
 */
export function limitCredentials(client: S3Client, limitMs = CREDENTIALS_MS_MAX): void {
  client.middlewareStack.add(
    (next) => async (args) => {
      const late = Promise.withResolvers<never>();
      const timer = setTimeout(() => {
        const error = new Error(`no keys within ${limitMs} ms`);
        late.reject(Object.assign(error, { name: "CredentialsProviderError" }));
      }, limitMs);
      try {
        await Promise.race([client.config.credentials(), late.promise]);
      } finally {
        clearTimeout(timer);
      }
      return next(args);
    },
    { step: "initialize", priority: "high", name: "limitCredentials" },
  );
}

/**
 * Makes answers that are read whole, which are all but those with an object's bytes, fail beyond `bytesMax`. The SDK
 * would collect and parse whatever a store sends.
 */
export function limitAnswer(client: S3Client, bytesMax: number): void {
  client.middlewareStack.add(
    (next, { commandName }) =>
      async (args) => {
        const result = await next(args);
        const response = result.response as Answer;
        const isWhole = commandName !== "GetObjectCommand" || response.statusCode >= 300;
        // Node sends no byte on that is beyond the length stated.
        const { "content-length": stated } = response.headers;
        if (stated !== undefined && Number(stated) <= bytesMax) return result;
        if (isWhole && response.body instanceof Readable) response.body = atMost(response.body, bytesMax);
        return result;
      },
    { step: "deserialize", priority: "low", name: "limitAnswer" },
  );
}

function atMost(body: Readable, bytesMax: number): Readable {
  let bytes = 0;
  const counted = new Transform({
    transform(part: Buffer, _encoding, done) {
      bytes += part.length;
      if (bytes <= bytesMax) return done(undefined, part);
      // Further bytes are not worth a connection.
      body.destroy();
      done(new Error(`an answer of more than ${bytesMax} bytes`));
    },
  });
  return pipeline(body, counted, () => {});
}

/**
 * The SDK's error in our words: whose mistake it is, which region, what it said.
 *
 * @param what what was asked for, such as `to list manifests/`.
 * @param keysFrom names the source of the keys.
 */
export function storeFailure(
  error: unknown,
  code: ErrorCode,
  what: string,
  region: RegionConfig,
  keysFrom: string,
): AgaroseError {
  if (error instanceof Error && error.name === "AbortError") return toAgaroseError(error);
  const { name, bucket, endpoint } = region;
  if (isOutOfDescriptors(error)) {
    const remedy = "raise the limit, as with `ulimit -n 4096`, or work on fewer objects at a time";
    const message = `this process has no file descriptor left, so region ${name} could not be asked ${what}: ${remedy}`;
    return new AgaroseError(code, message, { region: name, error: "EMFILE" }, error);
  }
  const said = error instanceof Error ? `${error.name}: ${messageOf(error)}` : String(error);
  const status = statusOf(error);
  const problem = error instanceof Error ? error.name : "";
  const attempts = error instanceof S3ServiceException ? error.$metadata.attempts : undefined;
  const details = {
    region: name,
    bucket,
    endpoint,
    status,
    error: problem,
    ...(attempts !== undefined && { attempts }),
  };
  // A HEAD has no body to name its error, so its 403 comes as one without its own name.
  if (CREDENTIAL_PROBLEMS.has(problem) || status === 403) {
    const hint =
      problem === "RequestTimeTooSkewed"
        ? `this machine's clock shows ${new Date().toISOString()}, and the store's a different time: set the wrong one`
        : `its keys come from ${keysFrom}: check them and the bucket's policy`;
    const message =
      problem === "CredentialsProviderError"
        ? `there are no keys for region ${name} (${messageOf(error as Error)}): they come from ${keysFrom}`
        : `region ${name} refused ${what} (${said}): ${hint}`;
    return new AgaroseError("CREDENTIALS_REFUSED", message, { ...details, keysFrom }, error);
  }
  return new AgaroseError(code, `region ${name} failed ${what} (${said}): check ${endpoint}/${bucket}`, details, error);
}

/** The HTTP status of a refusal; undefined without an answer. */
export function statusOf(error: unknown): number | undefined {
  return error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined;
}

/** A refused connection on two addresses is an AggregateError without its own message. */
function messageOf(error: Error): string {
  if (error.message !== "") return error.message;
  const causes = error instanceof AggregateError ? (error.errors as unknown[]) : [];
  return causes.map((cause) => (cause instanceof Error ? cause.message : String(cause))).join("; ");
}

interface Request {
  readonly query: Record<string, unknown>;
  readonly headers: Record<string, string>;
  readonly body: unknown;
}

/** Statuses by which stores refuse a header that they do not know. */
const REFUSALS = new Set([400, 405, 411, 415, 417, 501]);
/** Refusals of what was sent, and not of how: another try would hide that bytes or keys are wrong. */
const OF_CONTENT =
  /Digest|Mismatch|Incomplete|Token|Timeout|Skewed|Malformed|TooLarge|TooLong|TooSmall|AccessKey|Bucket|Condition/;

/**
 * Omits additions of the AWS SDK to requests beyond the S3 of its first clients, which some stores refuse.
 *
 * Makes all requests of `client` omit `x-id`, which names the operation a second time, and, while `takesChecksums`
 * is false, all checksum headers: a body that is in memory then carries `Content-MD5`, which every store knows.
 */
export function sendPlainly(client: S3Client, takesChecksums: () => boolean): void {
  client.middlewareStack.add(
    (next) => (args) => {
      const { query, headers, body } = args.request as Request;
      delete query["x-id"];
      if (!takesChecksums()) withoutChecksums(headers, body);
      return next(args);
    },
    // After the middleware of the SDK that adds checksums, and before the signature.
    { step: "build", priority: "low", name: "plainRequest" },
  );
}

/** Whether a store may have refused a request for what the SDK has added to it. */
export function mayRefuseAdditions(error: unknown): boolean {
  if (!(error instanceof S3ServiceException)) return false;
  return REFUSALS.has(error.$metadata.httpStatusCode ?? 0) && !OF_CONTENT.test(error.name);
}

function withoutChecksums(headers: Record<string, string>, body: unknown): void {
  for (const name of Object.keys(headers)) {
    if (/^x-amz-(checksum-|sdk-checksum-)/i.test(name)) delete headers[name];
  }
  if (typeof body !== "string" && !(body instanceof Uint8Array)) return;
  headers["content-md5"] = createHash("md5").update(body).digest("base64");
}

/**
 * The AWS SDK's client of one region, and its errors in our words.
 */
import { pipeline, Readable, Transform } from "node:stream";
import { S3Client, S3ServiceException, type S3ClientConfig } from "@aws-sdk/client-s3";
import { AgaroseError, toAgaroseError, type ErrorCode } from "@agarose/core";
import type { RegionConfig } from "../config.ts";
import { CREDENTIAL_PROBLEMS } from "./credential-problems.ts";

/** How a region is asked. */
export interface S3StoreOptions {
  /** Default: the SDK's chain of environment, profiles and instance roles. */
  readonly credentials?: S3ClientConfig["credentials"];
  /** Names the source of the keys in errors. */
  readonly credentialsOrigin?: string;
  /** Tries per request, the first one included. */
  readonly attempts?: number;
  readonly connectMs?: number;
  /** A request fails when nothing moves on its connection for this long. */
  readonly idleMs?: number;
  /** Called when the store asks for fewer requests. The request itself is tried again after a pause. */
  readonly onThrottle?: () => void;
}

/** Names where keys come from when their reader did not say. */
export const ORIGIN_DEFAULT = "the program that opened this store";

const ATTEMPTS_DEFAULT = 3;
const CONNECT_MS_DEFAULT = 5_000;
const IDLE_MS_DEFAULT = 60_000;

/** To one region. A request that waits for one of them would look like a region that hangs. */
const SOCKETS = 256;

const SILENT = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** Returns a client of the region's endpoint. Its owner destroys it. */
export function openClient(region: RegionConfig, options: S3StoreOptions): S3Client {
  return new S3Client({
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
      connectionTimeout: options.connectMs ?? CONNECT_MS_DEFAULT,
      socketTimeout: options.idleMs ?? IDLE_MS_DEFAULT,
      httpAgent: { maxSockets: SOCKETS },
      httpsAgent: { maxSockets: SOCKETS },
    },
    // The SDK would warn on the console of what `storeFailure` reports anyway.
    logger: SILENT,
    ...(options.credentials && { credentials: options.credentials }),
  });
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
        const response = result.response as { statusCode: number; body?: unknown };
        const isWhole = commandName !== "GetObjectCommand" || response.statusCode >= 300;
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
      // What more comes is not worth a connection.
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
  // A HEAD has no body to name its error, so its 403 comes as one without a name of its own.
  if (CREDENTIAL_PROBLEMS.has(problem) || status === 403) {
    const hint = `its keys come from ${keysFrom}: check them and the bucket's policy`;
    return new AgaroseError(
      "CREDENTIALS_REFUSED",
      `region ${name} refused ${what} (${said}): ${hint}`,
      { ...details, keysFrom },
      error,
    );
  }
  return new AgaroseError(code, `region ${name} failed ${what} (${said}): check ${endpoint}/${bucket}`, details, error);
}

/** The HTTP status of a refusal; undefined without an answer. */
export function statusOf(error: unknown): number | undefined {
  return error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined;
}

/** A refused connection on two addresses is an AggregateError without a message of its own. */
function messageOf(error: Error): string {
  if (error.message !== "") return error.message;
  const causes = error instanceof AggregateError ? (error.errors as unknown[]) : [];
  return causes.map((cause) => (cause instanceof Error ? cause.message : String(cause))).join("; ");
}

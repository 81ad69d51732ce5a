/**
 * Additions of the AWS SDK to requests beyond the S3 of its first clients. Some S3-compatible stores refuse it, so a
 * request goes without where it gains nothing, and without checksum headers where a store has refused them.
 */
import { createHash } from "node:crypto";
import { S3ServiceException, type S3Client } from "@aws-sdk/client-s3";

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

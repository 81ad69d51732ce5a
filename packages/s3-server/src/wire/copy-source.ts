/** CopyObject and UploadPartCopy: which object, and which of its bytes, a request copies. */
import { parseRange, type ByteRange } from "@agarose/core/http";
import { COPY_SOURCE } from "./operations.ts";
import type { S3Request, VersionName } from "./request.ts";
import { S3Error } from "./s3-error.ts";
import { decode } from "./signature.ts";

/**
 * Returns the object that the request copies.
 *
 * @throws S3Error InvalidArgument without a bucket and a key, InvalidURI for what is not percent-encoded.
 */
export function copySourceOf({ headers }: Pick<S3Request, "headers">): VersionName {
  const [path = "", versionId] = (headers[COPY_SOURCE] ?? "").split("?versionId=");
  const named = decode(path).replace(/^\//, "");
  const at = named.indexOf("/");
  if (at <= 0 || at === named.length - 1) {
    throw new S3Error("InvalidArgument", `${COPY_SOURCE} must be BUCKET/KEY, percent-encoded.`);
  }
  return { bucket: named.slice(0, at), key: named.slice(at + 1), versionId };
}

/**
 * Returns the bytes of an object of `bytes` bytes that the request copies; undefined for all of them.
 *
 * @throws S3Error InvalidArgument for a form other than `bytes=0-9`, InvalidRange for bytes that are not there.
 */
export function copiedRange({ headers }: Pick<S3Request, "headers">, bytes: number): ByteRange | undefined {
  const asked = headers[`${COPY_SOURCE}-range`];
  if (asked === undefined) return undefined;
  const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(asked) ?? [];
  if (first === undefined || Number(first) > Number(last)) {
    throw new S3Error(
      "InvalidArgument",
      `${COPY_SOURCE}-range must be bytes=FIRST-LAST with both numbers, not ${asked}.`,
    );
  }
  if (Number(last) >= bytes) {
    throw new S3Error("InvalidRange", `Range specified is not valid for source object of size: ${bytes}`);
  }
  return parseRange(asked, bytes);
}

/**
 * Returns whether the copy has metadata (`x-amz-metadata-directive`) or tags of its request, in place of those of the
 * object.
 *
 * @throws S3Error InvalidArgument for a directive that is neither COPY nor REPLACE.
 */
export function replaces(what: "metadata" | "tagging", { headers }: Pick<S3Request, "headers">): boolean {
  const directive = headers[`x-amz-${what}-directive`] ?? "COPY";
  if (directive === "COPY" || directive === "REPLACE") return directive === "REPLACE";
  throw new S3Error("InvalidArgument", `x-amz-${what}-directive is COPY or REPLACE, not ${directive}.`);
}

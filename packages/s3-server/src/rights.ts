/** The rights of the holder of a pair of keys. */
import { copySourceOf } from "./wire/copy-source.ts";
import { OPERATIONS, type OperationInterface, type OperationName } from "./wire/operations.ts";
import type { S3Request } from "./wire/request.ts";
import { S3Error } from "./wire/s3-error.ts";
import type { Credentials } from "./wire/signature.ts";

/** The rights of a client. Default: everything. */
export interface Rights {
  /** Begins the keys that it may see and change, in every bucket. */
  readonly prefix?: string | undefined;
  /** Whether it may change nothing. */
  readonly readOnly?: boolean | undefined;
}

/** A pair of keys that a client signs with, and what it may do. */
export interface KeyPair extends Credentials, Rights {}

/**
 * Throws S3Error AccessDenied unless the client may ask for this. A list must be of a prefix within that of the client,
 * as the condition `s3:prefix` of a policy wants it at AWS. The keys in the body of DeleteObjects are for `checkKey`.
 */
export function checkRights(
  rights: Rights,
  name: OperationName,
  request: Pick<S3Request, "key" | "query" | "headers">,
): void {
  const { method, on, query = [], selectHeader }: OperationInterface = OPERATIONS[name];
  const isRead = method === "GET" || method === "HEAD";
  if (rights.readOnly && !isRead) {
    throw new S3Error("AccessDenied", `This pair of keys may only read, and ${name} does not.`);
  }
  if (!rights.prefix) return;
  if (on === "object") checkKey(rights, request.key);
  if (selectHeader !== undefined) checkKey(rights, copySourceOf(request).key);
  if (on !== "bucket") return;
  if (query.includes("prefix")) checkKey(rights, request.query.get("prefix") ?? "", "prefix");
  else if (!isRead && name !== "DeleteObjects") {
    throw new S3Error("AccessDenied", `This pair of keys may change no bucket: ${ownPrefix(rights)}`);
  }
}

/** Throws S3Error AccessDenied for a key, or the prefix of a list, that is not below the prefix of the client. */
export function checkKey(rights: Rights, key: string, what: "key" | "prefix" = "key"): void {
  if (key.startsWith(rights.prefix ?? "")) return;
  throw new S3Error(
    "AccessDenied",
    `The ${what} ${JSON.stringify(key)} is not for this pair of keys: ${ownPrefix(rights)}`,
  );
}

function ownPrefix({ prefix }: Rights): string {
  return `it may use what begins with ${JSON.stringify(prefix)}.`;
}

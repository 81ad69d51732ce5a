/** Refuses what an operation does not know (`operations.ts`), wherever the client has put it. */
import { S3Error } from "./s3-error.ts";
import { COMMON_HEADERS, OPERATIONS, type OperationInterface, type OperationName } from "./operations.ts";
import type { S3Request } from "./request.ts";

/**
 * Headers that change what is done with an object: those of S3, and those of HTTP that no server may ignore. Others,
 * such as `traceparent`, come from clients and proxies in any number and mean nothing here.
 */
const MEANINGFUL =
  /^(x-amz-.*|content-md5|content-range|expires|if-match|if-none-match|if-modified-since|if-unmodified-since)$/;

/**
 * Throws S3Error unless the operation knows every parameter of the request, and each comes once.
 *
 * @throws NotImplemented for an unknown one, InvalidArgument for one that comes twice.
 */
export function refuseUnknown(name: OperationName, { query, headers }: Pick<S3Request, "query" | "headers">): void {
  const { select = [], query: further = [], headers: own = [] }: OperationInterface = OPERATIONS[name];
  const inQuery = [...query.keys()];
  const twice = inQuery.find((parameter, at) => inQuery.indexOf(parameter) !== at);
  if (twice !== undefined) throw new S3Error("InvalidArgument", `${twice} comes more than once.`);
  for (const [parameter, value] of query) {
    // SDKs name the operation that they mean.
    if (parameter === "x-id" && value === name) continue;
    if (!select.includes(parameter) && !further.includes(parameter)) throw unsupported(`?${parameter}`, name);
  }
  const known = [...COMMON_HEADERS, ...own];
  for (const header of Object.keys(headers)) {
    if (MEANINGFUL.test(header) && !known.some((pattern) => covers(pattern, header))) throw unsupported(header, name);
  }
}

/** The one version of the protocol that S3 has. The SDK for C++ names it, and so does Arrow. */
const API_VERSION = "2006-03-01";

/**
 * Checks the headers that any request may have. The bucket has one owner, who is named by the access key id.
 *
 * @throws S3Error AccessDenied when the client expects another owner; InvalidArgument for a payer other than itself;
 *   NotImplemented for another version of the protocol.
 */
export function checkCaller({ headers }: Pick<S3Request, "headers">, owner: string): void {
  const { "x-amz-request-payer": payer } = headers;
  const version = headers["x-amz-api-version"];
  if (version !== undefined && version !== API_VERSION) {
    throw new S3Error("NotImplemented", `x-amz-api-version may only be ${API_VERSION}, and is ${version}.`);
  }
  for (const name of ["x-amz-expected-bucket-owner", "x-amz-source-expected-bucket-owner"]) {
    if (headers[name] === undefined || headers[name] === owner) continue;
    throw new S3Error("AccessDenied", `The bucket's owner is ${owner}, and ${name} names another.`);
  }
  // Nobody is charged here, so the client may agree to any charge.
  if (payer !== undefined && payer !== "requester") {
    throw new S3Error("InvalidArgument", "x-amz-request-payer may only be requester.");
  }
}

function covers(pattern: string, header: string): boolean {
  return pattern.endsWith("*") ? header.startsWith(pattern.slice(0, -1)) : pattern === header;
}

function unsupported(what: string, name: OperationName): S3Error {
  return new S3Error("NotImplemented", `${what} implies functionality that ${name} does not have here.`);
}

/** Finds the operation of a request by its method, its key and the parameters in its query. */
import { OPERATIONS, type OperationInterface, type OperationName } from "./operations.ts";
import { checkCaller, refuseUnknown } from "./parameters.ts";
import type { S3Request } from "./request.ts";
import { S3Error } from "./s3-error.ts";

const NAMES = Object.keys(OPERATIONS) as OperationName[];
/** Parameters of S3 that select an operation; a request that has one of them asks for no other that lacks it. */
const SELECTING = new Set(Object.values(OPERATIONS).flatMap((operation: OperationInterface) => operation.select ?? []));

/**
 * Returns the operation of the request, once everything in its head is known to be obeyed.
 *
 * @param owner of all buckets.
 * @throws S3Error NotImplemented, MethodNotAllowed, or what `refuseUnknown` and `checkCaller` throw.
 */
export function findOperation(request: S3Request, owner: string): OperationName {
  const { method, bucket, key, query } = request;
  const on = bucket === "" ? "service" : key === "" ? "bucket" : "object";
  const asked = [...query.keys()].filter((name) => SELECTING.has(name));
  const found = NAMES.find((candidate) => {
    const operation: OperationInterface = OPERATIONS[candidate];
    if (operation.on !== on || operation.method !== method) return false;
    const { select = [], selectHeader, query: further = [] } = operation;
    if (selectHeader !== undefined && request.headers[selectHeader] === undefined) return false;
    const others = asked.filter((parameter) => !further.includes(parameter));
    return select.length === others.length && select.every((parameter) => query.has(parameter));
  });
  if (found !== undefined) {
    refuseUnknown(found, request);
    checkCaller(request, owner);
    return found;
  }
  const further = [...query.keys()].filter((parameter) => parameter !== "x-id");
  if (further.length > 0 || (method === "GET" && on === "bucket")) {
    throw new S3Error("NotImplemented", `${method} ?${further.join("&")} on a ${on} is not supported.`);
  }
  throw new S3Error("MethodNotAllowed", `${method} is not allowed against a ${on}.`);
}

/** Finds the operation of a request by its method, its key and the parameters in its query. */
import { OPERATIONS, type OperationInterface, type OperationName } from "./operations.ts";
import { checkCaller, refuseUnknown } from "./parameters.ts";
import type { S3Request } from "./request.ts";
import { S3Error } from "./s3-error.ts";

/** What a server does, by the operation that asks for it. */
export type Operations<T> = Readonly<Partial<Record<OperationName, T>>>;

/** Parameters of S3 that select an operation; a request that has one of them asks for no other that lacks it. */
const SELECTING = new Set(Object.values(OPERATIONS).flatMap((operation: OperationInterface) => operation.select ?? []));

/**
 * Returns what serves the request, once everything in its head is known to be obeyed.
 *
 * @param owner of all buckets.
 * @throws S3Error NotImplemented, MethodNotAllowed, or what `refuseUnknown` and `checkCaller` throw.
 */
export function findOperation<T>(operations: Operations<T>, request: S3Request, owner: string): T {
  const { method, bucket, key, query } = request;
  const on = bucket === "" ? "service" : key === "" ? "bucket" : "object";
  const asked = [...query.keys()].filter((name) => SELECTING.has(name));
  const fits = (Object.keys(operations) as OperationName[]).filter((name) => OPERATIONS[name].on === on);
  const name = fits.find((candidate) => {
    const { method: needed, select = [], query: further = [] }: OperationInterface = OPERATIONS[candidate];
    const others = asked.filter((parameter) => !further.includes(parameter));
    return needed === method && select.length === others.length && select.every((parameter) => query.has(parameter));
  });
  if (name !== undefined) {
    refuseUnknown(name, request);
    checkCaller(request, owner);
    return operations[name]!;
  }
  const further = [...query.keys()].filter((parameter) => parameter !== "x-id");
  if (further.length > 0 || (method === "GET" && on === "bucket")) {
    throw new S3Error("NotImplemented", `${method} ?${further.join("&")} on a ${on} is not supported.`);
  }
  throw new S3Error("MethodNotAllowed", `${method} is not allowed against a ${on}.`);
}

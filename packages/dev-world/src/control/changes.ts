/** The bodies that the control address accepts, and their validation. */
import type { IncomingMessage } from "node:http";
import { AgaroseError } from "@agarose/core";
import * as v from "valibot";
import { KV_STATES } from "../pops/kv-fault.ts";

const probability = v.pipe(v.number(), v.minValue(0), v.maxValue(1));
const factor = v.pipe(v.number(), v.minValue(0));

/** Faults of a region. */
export const RegionChange = v.strictObject({
  down: v.optional(v.boolean()),
  latencyFactor: v.optional(factor),
  stragglers: v.optional(v.strictObject({ probability, factor })),
  errorRate: v.optional(probability),
  corrupt: v.optional(probability),
  truncate: v.optional(probability),
  concurrency: v.optional(v.pipe(v.number(), v.integer(), v.minValue(0))),
  ignoreRange: v.optional(v.boolean()),
});

/** Faults of a PoP. */
export const PopChange = v.strictObject({
  down: v.optional(v.boolean()),
  kv: v.optional(v.picklist(KV_STATES)),
});

/** The client's place and its line. */
export const ClientChange = v.strictObject({ near: v.optional(v.string()), mbit: v.optional(factor) });

const BODY_CHARACTERS_MAX = 10_000;

/** Returns the JSON body of a request without undefined fields. Throws REQUEST_INVALID with what is wrong. */
export async function readChange<S extends v.GenericSchema<unknown, object>>(
  request: IncomingMessage,
  schema: S,
): Promise<Defined<v.InferOutput<S>>> {
  const result = v.safeParse(schema, await readJson(request));
  if (result.success) return defined(result.output);
  const { expected, message } = result.issues[0];
  const field = v.getDotPath(result.issues[0]) ?? "the request's body";
  const problem = expected === "never" ? "is not a field of this route" : `is wrong: ${message}`;
  throw new AgaroseError("REQUEST_INVALID", `${field} ${problem}`, { field });
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  let text = "";
  for await (const part of request) {
    text += String(part);
    if (text.length <= BODY_CHARACTERS_MAX) continue;
    throw new AgaroseError("REQUEST_INVALID", `the request's body has more than ${BODY_CHARACTERS_MAX} characters`);
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new AgaroseError("REQUEST_INVALID", "the request's body is not JSON", {}, error);
  }
}

type Defined<T> = { [K in keyof T]: Exclude<T[K], undefined> };

function defined<T extends object>(change: T): Defined<T> {
  return Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined)) as never;
}

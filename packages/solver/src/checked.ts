/** JSON of people, checked by a schema. */
import * as v from "valibot";
import { SolverError, type SolverErrorCode } from "./errors.ts";

/** The output of a schema, for readers who do not change it. */
export type Immutable<T> = T extends Float64Array ? T : { readonly [K in keyof T]: Immutable<T[K]> };

/** A finite number between bounds, both included. */
export const number = (min = -Number.MAX_VALUE, max = Number.MAX_VALUE) =>
  v.pipe(v.number(), v.minValue(min), v.maxValue(max));
/** A whole number from `min` on. */
export const integer = (min: number) => v.pipe(v.number(), v.safeInteger(), v.minValue(min));

/**
 * * Returns `json` as `schema` describes it, with defaults. Throws SCENARIO_INVALID, or a different code, with the path
 * of the field, as `pops[0].name`.
 *
 * @param at the path of `json` itself. Default: it has none.
 */
export function checked<T>(schema: v.GenericSchema<unknown, T>, json: unknown, at = "", code?: SolverErrorCode): T {
  const result = v.safeParse(schema, json);
  if (result.success) return result.output;
  const { path = [], expected, received, message } = result.issues[0];
  const field = path.map(({ key }) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`)).join("");
  const isUnknown = expected === "never";
  const wrong = received === "undefined" ? "is missing" : `must be ${expected}, got ${received}`;
  const problem = isUnknown ? "is not a known field" : expected === null ? message : wrong;
  return refuse(`${at}${field}`.replace(/^\./, ""), problem, code);
}

/** A finite number of at least `min`. Throws SCENARIO_INVALID. */
export function asNumber(value: unknown, field: string, min: number): number {
  return checked(number(min), value, field);
}

/** Throws SCENARIO_INVALID, or another code. */
export function refuse(field: string, problem: string, code: SolverErrorCode = "SCENARIO_INVALID"): never {
  throw new SolverError(code, `${field}: ${problem}`, { field });
}

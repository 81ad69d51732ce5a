/** Reads fields of unknown JSON. A refusal names the field, what it should be and what it is. */
import { SolverError, type SolverErrorCode } from "./errors.ts";

/** A JSON object whose fields are not checked yet. */
export type Json = Readonly<Record<string, unknown>>;

/**
 * Checks for one kind of input. Each returns the value with its type, or throws the reader's code with the details
 * `{ field }`. `field` is the path shown to people, such as `pops[0].name`.
 */
export interface FieldReader {
  fail(field: string, problem: string): never;
  /** Throws for a field that is not in `known`; `prefix` goes before its name. */
  refuseUnknown(json: Json, known: readonly string[], prefix: string): void;
  asObject(value: unknown, field: string): Json;
  asList(value: unknown, field: string): unknown[];
  /** A finite number from `min` to `max`, both included. */
  asNumber(value: unknown, field: string, min?: number, max?: number): number;
  /** An integer from `min` to 2^53 - 1. */
  asInteger(value: unknown, field: string, min: number): number;
}

/** Returns checks that throw `code`; `subject` begins each message, such as `cache events: `. */
export function fieldReader(code: SolverErrorCode, subject = ""): FieldReader {
  const fail = (field: string, problem: string): never => {
    throw new SolverError(code, `${subject}${field}: ${problem}`, { field });
  };
  const refuse = (field: string, wanted: string, got: unknown): never =>
    fail(field, `must be ${wanted}, got ${describe(got)}`);
  return {
    fail,
    refuseUnknown: (json, known, prefix) => {
      for (const field of Object.keys(json)) {
        if (!known.includes(field)) fail(`${prefix}${field}`, `is not a known field; known here: ${known.join(", ")}`);
      }
    },
    asObject: (value, field) => {
      if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Json;
      return refuse(field, "an object", value);
    },
    asList: (value, field) => (Array.isArray(value) ? value : refuse(field, "a list", value)),
    asNumber: (value, field, min = -Infinity, max = Infinity) => {
      if (typeof value === "number" && Number.isFinite(value) && value >= min && value <= max) return value;
      const least = min === -Infinity ? "a finite number" : `a finite number >= ${min}`;
      return refuse(field, max === Infinity ? least : `a number from ${min} to ${max}`, value);
    },
    asInteger: (value, field, min) => {
      if (Number.isSafeInteger(value) && (value as number) >= min) return value as number;
      return refuse(field, `an integer >= ${min}`, value);
    },
  };
}

const scenario: FieldReader = fieldReader("SCENARIO_INVALID");

/** The checks for settings of scenarios; they throw SCENARIO_INVALID. */
export const { refuseUnknown, asNumber, asInteger } = scenario;

function describe(value: unknown): string {
  return value === undefined ? "nothing" : (JSON.stringify(value) ?? String(value)).slice(0, 60);
}

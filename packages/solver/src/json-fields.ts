/** Reads fields of unknown JSON; every refusal is SCENARIO_INVALID with the field's name and what it should be. */

import { solverError } from "./errors.ts";

export type Json = Readonly<Record<string, unknown>>;

export function fail(field: string, problem: string): never {
  throw solverError("SCENARIO_INVALID", `${field}: ${problem}`, { field });
}

export function refuseUnknown(json: Json, known: readonly string[], prefix: string): void {
  for (const field of Object.keys(json)) {
    if (!known.includes(field)) fail(`${prefix}${field}`, `is no field of a scenario; known here: ${known.join(", ")}`);
  }
}

export function asObject(value: unknown, field: string): Json {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Json;
  return fail(field, `must be an object, got ${describe(value)}`);
}

export function asList(value: unknown, field: string): unknown[] {
  return Array.isArray(value) ? value : fail(field, `must be a list, got ${describe(value)}`);
}

export function asString(value: unknown, field: string): string {
  return typeof value === "string" ? value : fail(field, `must be a string, got ${describe(value)}`);
}

export function asNumber(value: unknown, field: string, min: number, max = Infinity): number {
  if (typeof value === "number" && Number.isFinite(value) && value >= min && value <= max) return value;
  const range = max === Infinity ? `a finite number >= ${min}` : `a number from ${min} to ${max}`;
  return fail(field, `must be ${range}, got ${describe(value)}`);
}

export function asInteger(value: unknown, field: string, min: number): number {
  if (Number.isSafeInteger(value) && (value as number) >= min) return value as number;
  return fail(field, `must be an integer >= ${min}, got ${describe(value)}`);
}

export function asOneOf<T extends string>(value: unknown, field: string, allowed: readonly T[]): T {
  if ((allowed as readonly unknown[]).includes(value)) return value as T;
  return fail(field, `must be one of ${allowed.join(", ")}, got ${describe(value)}`);
}

function describe(value: unknown): string {
  return value === undefined ? "nothing" : (JSON.stringify(value) ?? String(value)).slice(0, 60);
}

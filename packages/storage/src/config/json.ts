/** Texts that should be JSON, and may be anything. */
import * as v from "valibot";

/** The value of a text; undefined for one that is no JSON. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The value of a text that has this form; undefined for any other text. */
export function shapeIn<T>(shape: v.GenericSchema<unknown, T>, text: string): T | undefined {
  const read = v.safeParse(shape, jsonIn(text));
  return read.success ? read.output : undefined;
}

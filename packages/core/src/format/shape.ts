/** Checks of values that came from elsewhere, for parsers. */

/** Returns the text of `bytes`. Throws a TypeError if they are not UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string {
  // The types of Workers require an option that has a default.
  return new TextDecoder("utf-8", { fatal: true } as never).decode(bytes);
}

/** Whether `value` is an object with fields: neither null nor an array. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether `value` is a string that matches `form`. Default: any but the empty one. */
export function isText(value: unknown, form: RegExp = /./s): value is string {
  return typeof value === "string" && form.test(value);
}

/** Whether `value` is a whole number from 0 to `max`, at most 2^53 - 1. */
export function isCount(value: unknown, max = Number.POSITIVE_INFINITY): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= max;
}

/** Whether `list` is a list of nothing but what `isSound` accepts. */
export function isListOf<T>(list: unknown, isSound: (entry: T) => boolean): list is T[] {
  return Array.isArray(list) && list.every((entry) => isSound(entry as T));
}

/** Whether `list` is a list of texts that match `form`, as in `isText`. */
export function areTexts(list: unknown, form?: RegExp): list is string[] {
  return isListOf(list, (text) => isText(text, form));
}

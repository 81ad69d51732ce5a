/**
 * https://wicg.github.io/savedata/: not in all browsers, and not in the compiler's types, be they for pages or for
 * workers.
 */
interface WithConnection {
  readonly connection?: { readonly saveData?: boolean };
}

/** Whether the user asks for little data. */
export function savesData(): boolean {
  return Boolean((globalThis.navigator as WithConnection | undefined)?.connection?.saveData);
}

/** https://wicg.github.io/savedata/: not in all browsers, and not in the compiler's types. */
type NavigatorWithConnection = Navigator & { readonly connection?: { readonly saveData?: boolean } };

/** Whether the user asks for little data. */
export function savesData(): boolean {
  return (globalThis.navigator as NavigatorWithConnection | undefined)?.connection?.saveData === true;
}

/** Which objects cannot be files of one folder. */

/** Whether a path names what is in a folder: a key may have `..`, which would lead out of it, and empty segments. */
export function staysBelow(path: string): boolean {
  return !/(^|\/)\.{0,2}\//.test(path) && !/(^|\/)\.\.?$/.test(path);
}

/**
 * By path, the path beside which it cannot be a file: one that is a folder for others, or with `foldsCase` one that is
 * the same name to the file system. Of such names, the first one is not in the result.
 */
export function clashes(paths: ReadonlySet<string>, foldsCase: boolean): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const nameOf = (path: string): string => (foldsCase ? path.normalize("NFC").toLowerCase() : path);
  const folders = new Map<string, string>();
  for (const path of paths) {
    for (let end = path.indexOf("/"); end >= 0; end = path.indexOf("/", end + 1)) {
      folders.set(nameOf(path.slice(0, end)), path);
    }
  }
  const files = new Map<string, string>();
  for (const path of paths) {
    const other = folders.get(nameOf(path)) ?? files.get(nameOf(path));
    if (other === undefined) files.set(nameOf(path), path);
    else found.set(path, other);
  }
  return found;
}

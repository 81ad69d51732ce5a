/** Which names a sync is about: `include` and `exclude`. */
import { Minimatch } from "minimatch";

/** The patterns of a sync. */
export interface Patterns {
  readonly include: readonly string[];
  readonly exclude: readonly string[];
}

/** Decides by the path below the folder, whose segments are separated by `/`. */
export class Filter {
  readonly #include: readonly Minimatch[];
  readonly #exclude: readonly Minimatch[];

  constructor({ include, exclude }: Patterns) {
    this.#include = include.map(patternOf);
    this.#exclude = exclude.map(patternOf);
  }

  /** Whether the sync is about this file. What is included is an exception to what is excluded. */
  takes(path: string): boolean {
    if (this.#include.some((pattern) => matches(pattern, path))) return true;
    if (this.#exclude.length === 0) return this.#include.length === 0;
    return !this.#exclude.some((pattern) => matches(pattern, path));
  }

  /** Whether nothing below this folder can be taken, so that it need not be read. */
  leavesOutFolder(path: string): boolean {
    return this.#include.length === 0 && this.#exclude.some((pattern) => matches(pattern, path));
  }
}

/** A pattern without `/` matches a name at any depth; one with `/` matches from the folder on. */
export function patternOf(text: string): Minimatch {
  const pattern = text.replace(/^\/|\/$/g, "");
  const matchBase = !text.replace(/\/$/, "").includes("/");
  return new Minimatch(pattern, { dot: true, matchBase, nocomment: true, nonegate: true, platform: "linux" });
}

/** A pattern that matches a folder takes everything below it. */
export function matches(pattern: Minimatch, path: string): boolean {
  for (let end = path.indexOf("/"); end >= 0; end = path.indexOf("/", end + 1)) {
    if (pattern.match(path.slice(0, end))) return true;
  }
  return pattern.match(path);
}

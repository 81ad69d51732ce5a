/** How many chunks beyond k objects have left, and which of them is nearest to being lost. */
import { addNumbers } from "../add-numbers.ts";
import type { ObjectVerdict } from "../../objects/verify-object.ts";

/** Objects by chunks beyond k. `unreadable` are those that have fewer than k. */
export type Redundancy = Readonly<Record<string, number>>;

/** The name of objects that cannot be read. */
export const UNREADABLE = "unreadable";

/** Adds an object, or with -1 takes it out. */
export function countRedundancy(counts: Redundancy, beyondK: number, by: 1 | -1): Redundancy {
  return addNumbers(counts, { [beyondK < 0 ? UNREADABLE : String(beyondK)]: by });
}

/** How many more losses an object survives, of a chunk or of a manifest. Those that are lost already come last. */
export function lossesLeft({ beyondK, manifests }: ObjectVerdict): number {
  if (beyondK < 0) return Number.MAX_SAFE_INTEGER;
  return Math.min(beyondK, manifests.filter(({ state }) => state === "sound").length - 1);
}

/** A table for people: chunks beyond k, objects as they were found, and as they are after repairs. */
export function redundancyLines(found: Redundancy, left: Redundancy): string[] {
  const names = [...new Set([...Object.keys(found), ...Object.keys(left)])].toSorted(compareNames);
  const header = ["chunks beyond k", "objects found", "after repairs"];
  const rows = names.map((name) => [name, String(found[name] ?? 0), String(left[name] ?? 0)]);
  return [header, ...rows].map((row) =>
    row.map((cell, at) => (at === 0 ? cell.padEnd(header[at]!.length) : cell.padStart(header[at]!.length))).join("  "),
  );
}

function compareNames(a: string, b: string): number {
  if (a === UNREADABLE || b === UNREADABLE) return a === UNREADABLE ? -1 : 1;
  return Number(a) - Number(b);
}

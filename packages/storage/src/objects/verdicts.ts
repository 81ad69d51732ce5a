/** The meaning of a verdict of `verifyObject`, in one word. */
import { AgaroseError } from "@agarose/core";
import type { ChunkDamage, ManifestVerdict, ObjectVerdict } from "./verify-object.ts";

/**
 * - `sound`: every manifest and every chunk is there and right.
 * - `unchecked`: nothing is known to be damaged, but some regions did not answer.
 * - `damaged`: something is missing or wrong; the object still reads.
 * - `unreadable`: a stripe has fewer than k good chunks in the regions that answered.
 */
export type ObjectState = "sound" | "unchecked" | "damaged" | "unreadable";

/** A region that did not answer for at least one manifest or chunk, and the first reason it gave. */
export interface UnreachableRegion {
  readonly region: string;
  readonly problem: string;
}

const DAMAGE_CODES: ReadonlySet<string> = new Set([
  "CHUNK_MISSING",
  "CHUNK_WRONG_LENGTH",
  "CHUNK_CORRUPT",
  "REGION_UNKNOWN",
]);

/** The state of an object, from its verdict. */
export function stateOf(verdict: ObjectVerdict): ObjectState {
  const { sound, removed, readable, manifests, damage } = verdict;
  if (sound) return "sound";
  if (!readable && !removed) return "unreadable";
  const isDamaged = damage.some(isDamage) || manifests.some(isManifestDamage) || hasKeptDamage(verdict);
  return isDamaged ? "damaged" : "unchecked";
}

/** Whether a version that is kept has lost chunks. */
export function hasKeptDamage({ kept = [] }: Pick<ObjectVerdict, "kept">): boolean {
  return kept.some(({ damage }) => damage.some(isDamage));
}

/** The regions that did not answer, each once, in the order of their first appearance. */
export function unreachableRegions(verdicts: readonly ObjectVerdict[]): UnreachableRegion[] {
  const problems = new Map<string, string>();
  const note = (region: string, problem: string): void => {
    if (!problems.has(region)) problems.set(region, problem);
  };
  for (const { manifests, damage, kept = [], historyProblems = [] } of verdicts) {
    for (const { region, state, problem } of manifests) if (state === "unreachable") note(region, problem ?? "");
    const all = [damage, ...kept.map((version) => version.damage)].flat();
    for (const chunk of all) if (!isDamage(chunk)) note(chunk.region, chunk.code);
    for (const { region, problem } of historyProblems) note(region, problem);
  }
  return [...problems].map(([region, problem]) => ({ region, problem }));
}

/** Adds regions to those that are known, each once. */
export function withUnreachable(
  known: readonly UnreachableRegion[],
  found: readonly UnreachableRegion[],
): readonly UnreachableRegion[] {
  const names = new Set(known.map(({ region }) => region));
  return [...known, ...found.filter(({ region }) => !names.has(region))];
}

/** Throws OBJECT_NOT_FOUND when no region has a manifest of one of the objects, or it was removed. */
export function refuseUnknown(verdicts: readonly ObjectVerdict[]): void {
  const unknown = verdicts.find(
    ({ removed, sound, manifests }) => (removed && sound) || manifests.every(({ state }) => state === "missing"),
  );
  if (!unknown) return;
  const { key } = unknown;
  throw new AgaroseError(
    "OBJECT_NOT_FOUND",
    `no region has a manifest of ${JSON.stringify(key)}: check the key with \`agarose ls\``,
    { key },
  );
}

/** Whether bytes are missing or wrong; else a region did not answer. */
export function isDamage({ code }: ChunkDamage): boolean {
  return DAMAGE_CODES.has(code);
}

/** Whether a region's manifest is missing or wrong; else the region did not answer. */
export function isManifestDamage({ state }: ManifestVerdict): boolean {
  return state !== "sound" && state !== "unreachable";
}

/**
 * The object of every region under the name of a key's manifest, with the ETag by which it can be replaced.
 *
 * A manifest that this writer cannot use is not nothing: another writer, by another key or a newer program, may have
 * acknowledged it. So only sound manifests and their absence are answers, and a majority of the regions must give one.
 */
import { crc32 } from "node:zlib";
import { AgaroseError, toAgaroseError } from "@agarose/core";
import {
  isTombstone,
  manifestName,
  parseManifest,
  refuseTooLarge,
  type ManifestRecord,
  type SignatureCheck,
} from "@agarose/core/format";
import { readChecked } from "@agarose/core/sources";
import type { Store } from "../buckets/store.ts";
import { nodeSha256 } from "../objects/sha256.ts";
import { askRegions, type Patience } from "./ask-regions.ts";
import { majorityOf, type RegionParts } from "../commit/write-context.ts";

/** The contents of one region. */
export interface RegionManifest {
  readonly store: Store;
  readonly state: "sound" | "absent" | "invalid" | "untrusted" | "unreachable";
  /** Present when `state` is "sound". */
  readonly record?: ManifestRecord;
  /** As stored. Absent when nothing is, or the region is unreachable. */
  readonly bytes?: Uint8Array;
  readonly etag?: string;
  /** Why `record` is absent although the region holds something or does not answer. */
  readonly problem?: AgaroseError;
  /**
   * Whether another writer may have written in good faith what this one cannot use, because its keys, its program or
   * its limits are others. Damage is no such manifest.
   */
  readonly isForeign?: boolean;
  /** The generation that an unusable manifest states. Nobody vouches for it. */
  readonly stated?: number;
}

/** The objects of all regions, in the order of the stores. */
export interface Survey {
  readonly regions: readonly RegionManifest[];
  /** The sound record of the highest generation, a tombstone included. */
  readonly newest: ManifestRecord | undefined;
  /** A writer goes above this generation: that of `newest`, or a higher one that damaged manifests state. */
  readonly generation: number;
}

/** Damaged manifests are not signed for. A generation that is further ahead was made up. */
const STATED_AHEAD_MAX = 1_000_000;

const INVALID_CODES: ReadonlySet<string> = new Set([
  "CODE_INVALID",
  "MANIFEST_INVALID",
  "MANIFEST_NEWER",
  "MANIFEST_TOO_LARGE",
  "REGION_UNKNOWN",
]);

/**
 * Reads the manifest of a key in every region. It waits for a majority, and a little for the rest.
 *
 * @throws NO_QUORUM when no majority answers, CREDENTIALS_REFUSED when a region refuses the keys, MANIFEST_NEWER when
 * only a newer program can read what a region has, and MANIFEST_UNTRUSTED, MANIFEST_TOO_LARGE or MANIFEST_INVALID when
 * a majority may hold a version that this writer cannot use.
 */
export async function surveyRegions(key: string, context: RegionParts): Promise<Survey> {
  return judged(key, await surveyAll(key, context));
}

/** The state of regions for a key that none of them listed. */
export function emptySurvey(stores: readonly Store[]): Survey {
  return { regions: stores.map((store) => ({ store, state: "absent" })), newest: undefined, generation: 0 };
}

/**
 * Reads the manifest of a key in a majority of the regions, which shows every generation that is committed. The other
 * regions are as they were in `before`. It throws as `surveyRegions` does.
 */
export async function surveyAgain(before: Survey, key: string, context: RegionParts): Promise<Survey> {
  const asked = await askManifests(key, context, { enough: majorityOf(context.stores), isGood: isUsable });
  const now = new Map(asked.map((region) => [region.store, region]));
  return judged(
    key,
    before.regions.map((region) => now.get(region.store) ?? region),
  );
}

/** Throws when what the regions answered is not enough to go by. */
function judged(key: string, regions: readonly RegionManifest[]): Survey {
  const unreachable = regions.filter(({ state }) => state === "unreachable");
  const needed = majorityOf(regions);
  // Waiting does not mend wrong keys, so they are no outage that a majority may outvote.
  const refused = unreachable.find(({ problem }) => problem?.code === "CREDENTIALS_REFUSED");
  if (refused) throw refused.problem!;
  if (regions.length - unreachable.length < needed) throw noQuorum(key, unreachable, regions.length, needed);
  // It may be of a put that succeeded. What an older region has beside it must not replace it.
  const newer = regions.find(({ problem }) => problem?.code === "MANIFEST_NEWER");
  if (newer) throw newer.problem!;
  return { regions, newest: newestOf(regions), generation: generationOf(key, regions) };
}

/** Whether a region says what is committed, as far as it knows. */
function isUsable({ state }: RegionManifest): boolean {
  return state === "sound" || state === "absent";
}

/**
 * The generation that a writer has to pass. Every majority shows each committed generation or a newer one, so what a
 * minority holds beside a majority of usable answers was never committed: a forgery, damage, or a write under way.
 *
 * Damage is what a put may heal. Without a majority of usable answers it counts by the generation that it states; where
 * it states none, every region must have answered, so that no sound manifest can turn up later.
 */
function generationOf(key: string, regions: readonly RegionManifest[]): number {
  const needed = majorityOf(regions);
  const newest = newestOf(regions)?.generation ?? 0;
  const usable = regions.filter(isUsable).length;
  if (usable >= needed) return newest;
  const damaged = regions.filter((region) => !isUsable(region) && region.state !== "unreachable" && !region.isForeign);
  const stated = damaged.flatMap((region) => statedWithin(newest + STATED_AHEAD_MAX, region) ?? []);
  const isComplete = stated.length === damaged.length || usable + damaged.length === regions.length;
  if (isComplete && usable + damaged.length >= needed) return Math.max(newest, ...stated);
  throw notUsable(key, regions, usable, needed);
}

function statedWithin(limit: number, { stated }: RegionManifest): number | undefined {
  return stated !== undefined && stated <= limit ? stated : undefined;
}

/** `surveyRegions` without a demand: `enough` answers end the patience. Throws only when the caller aborts. */
export function surveyAll(
  key: string,
  context: RegionParts,
  enough = majorityOf(context.stores),
): Promise<RegionManifest[]> {
  return askManifests(key, context, { enough });
}

async function askManifests(
  key: string,
  context: RegionParts,
  patience: Patience<RegionManifest>,
): Promise<RegionManifest[]> {
  const { stores, trust } = context;
  const read = (store: Store, signal: AbortSignal): Promise<RegionManifest> => readRegion(key, store, signal, trust);
  const outcomes = await askRegions(stores, read, patience, context);
  return outcomes.map(({ store, value, error }) => value ?? { store, state: "unreachable", problem: error! });
}

/** The sound record of the highest generation. */
export function newestOf(regions: readonly RegionManifest[]): ManifestRecord | undefined {
  return regions.flatMap(({ record }) => record ?? []).toSorted((a, b) => compareAge(b, a))[0];
}

/** Reads the manifest of a key in one region. Rejects when the region does not answer. */
export async function readRegion(
  key: string,
  store: Store,
  signal: AbortSignal,
  trust: SignatureCheck,
): Promise<RegionManifest> {
  const response = await store.get(manifestName(key), { signal });
  if (response.status === 404) return { store, state: "absent" };
  if (response.status !== 200) {
    const { name } = store.region;
    const message = `region ${name} answered ${response.status} for the manifest of ${JSON.stringify(key)}: retry later`;
    throw new AgaroseError("SOURCE_FAILED", message, { region: name, status: response.status });
  }
  const etag = response.headers.get("etag");
  const found = { store, ...(etag !== null && { etag }) };
  try {
    const bytes = await readChecked(response, refuseTooLarge);
    try {
      const record = await parseManifest(bytes, { key, trust, sha256: nodeSha256 });
      return { ...found, state: "sound", record, bytes };
    } catch (error) {
      const reason = unusable(error);
      return { ...found, ...reason, ...statementOf(bytes, reason.problem), bytes };
    }
  } catch (error) {
    // A program with a higher limit may have written it.
    return { ...found, ...unusable(error), isForeign: true };
  }
}

/** The facts that an unusable manifest states. A wrong CRC-32 or a contradiction is damage. */
function statementOf(bytes: Uint8Array, { code }: AgaroseError): Pick<RegionManifest, "isForeign" | "stated"> {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
  const [trailer, expected] = /,"crc32":"([0-9a-f]{8})"\}\s*$/.exec(text) ?? [];
  const isWhole = trailer !== undefined && crc32(bytes.subarray(0, -trailer.length)) === Number.parseInt(expected!, 16);
  const stated = Number(/"generation"\s*:\s*(\d{1,16})\s*[,}]/.exec(text)?.[1]);
  const isForeign = isWhole && code !== "MANIFEST_INVALID";
  return { ...(isForeign && { isForeign }), ...(Number.isSafeInteger(stated) && { stated }) };
}

/** Whether a region holds exactly `bytes`. */
export function holds({ bytes }: RegionManifest, expected: Uint8Array): boolean {
  return bytes !== undefined && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).equals(expected);
}

/**
 * Below zero when `a` is older than `b`. A generation has two records only where a store ignores conditions. Then their
 * uploads decide, by which every writer chooses the same one, and no clock.
 */
export function compareAge(a: ManifestRecord, b: ManifestRecord): number {
  if (a.generation !== b.generation) return a.generation - b.generation;
  const [first, second] = [uploadOf(a), uploadOf(b)];
  return first === second ? 0 : first < second ? -1 : 1;
}

/** A tombstone has none, so it loses against a put. */
function uploadOf(record: ManifestRecord): string {
  return isTombstone(record) ? "" : record.upload;
}

function unusable(cause: unknown): { state: "invalid" | "untrusted"; problem: AgaroseError } {
  const problem = toAgaroseError(cause, "SOURCE_FAILED");
  if (problem.code === "MANIFEST_UNTRUSTED") return { state: "untrusted", problem };
  if (INVALID_CODES.has(problem.code)) return { state: "invalid", problem };
  throw problem;
}

function notUsable(key: string, regions: readonly RegionManifest[], usable: number, needed: number): AgaroseError {
  const others = regions.filter((region) => !isUsable(region) && region.state !== "unreachable");
  const problem = (others.find(({ state }) => state === "untrusted") ?? others[0]!).problem!;
  const names = others.map(({ store }) => store.region.name);
  const remedies: Partial<Record<AgaroseError["code"], string>> = {
    MANIFEST_UNTRUSTED:
      "add the key that has signed it to `publicKeys`, or vouch for it with `agarose keys apply`; in a rotation, this " +
      "machine needs the new configuration",
    MANIFEST_TOO_LARGE: "upgrade Agarose on this machine",
  };
  const remedy = remedies[problem.code] ?? "run the command again once all regions answer";
  return new AgaroseError(
    problem.code,
    `${usable} of ${regions.length} regions say what is committed of ${JSON.stringify(key)}, ${needed} are needed, and ` +
      `${names.join(", ")} hold a manifest that this machine cannot use: nothing was written; ${remedy}. ` +
      `First error: ${problem.message}`,
    { key, usable, needed, regions: names },
    problem,
  );
}

function noQuorum(key: string, unreachable: readonly RegionManifest[], all: number, needed: number): AgaroseError {
  const problems = unreachable.map(({ problem }) => problem!);
  return new AgaroseError(
    "NO_QUORUM",
    `${all - unreachable.length} of ${all} regions answered for ${JSON.stringify(key)}, ${needed} are needed: ` +
      `nothing was written; try again once they answer. First error: ${problems[0]?.message}`,
    { key, answered: all - unreachable.length, needed, regions: unreachable.map(({ store }) => store.region.name) },
    problems[0],
  );
}

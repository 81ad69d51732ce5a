/**
 * Commits a manifest or tombstone: claims a generation, writes it to the regions, and counts a majority.
 *
 * Before a majority has it, readers may see either version. After it, every later writer sees it.
 */
import { AgaroseError, sealManifest, type Manifest, type ManifestRecord } from "@agarose/core";
import { nodeSha256 } from "../sha256.ts";
import { claimGeneration, removeClaims } from "./claim.ts";
import { rollBack, writeRecord, type RegionWrite } from "./manifest-write.ts";
import { surveyRegions, type RegionManifest, type Survey } from "./region-survey.ts";
import { majorityOf, type WriteContext } from "./write-context.ts";

/** A region without the record, and why. */
export interface RegionProblem {
  readonly region: string;
  readonly problem: string;
}

/** What to commit. */
export interface CommitInput<T extends ManifestRecord> {
  readonly key: string;
  /** Marks claims as this writer's. */
  readonly upload: string;
  /** What the regions held when the caller decided to write. */
  readonly survey: Survey;
  /** Work between the claim and the write, such as the upload of chunks. */
  readonly prepare?: () => Promise<void>;
  /** Makes the record of `generation`, with a time after `modifiedMsMin`. */
  readonly seal: (generation: number, modified: string) => Promise<T>;
}

/** What was committed. */
export interface Commit<T extends ManifestRecord> {
  readonly record: T;
  /** What the regions that took it held before. */
  readonly replaced: readonly RegionManifest[];
  /** The regions that did not take it: a minority. */
  readonly regionsWithout: readonly RegionProblem[];
}

/**
 * Commits the record that `seal` makes.
 *
 * @throws NO_QUORUM, REPLACED_MEANWHILE, STORE_FAILED (undone, readers see the version before), WRITE_UNCERTAIN
 *   (readers may see either version), CREDENTIALS_REFUSED, ABORTED, or what `prepare` throws.
 */
export async function commitRecord<T extends ManifestRecord>(
  input: CommitInput<T>,
  context: WriteContext,
): Promise<Commit<T>> {
  const { key, upload, prepare, seal } = input;
  const before = input.survey.newest?.generation ?? 0;
  let generation = await claimGeneration(key, upload, before, context);
  await prepare?.();
  // Claims are removed once their generation is in a majority. A late claimer sees that generation here.
  let survey = await surveyRegions(key, context);
  while ((survey.newest?.generation ?? 0) >= generation) {
    generation = await claimGeneration(key, upload, survey.newest!.generation, context);
    survey = await surveyRegions(key, context);
  }
  const record = await seal(generation, timeAfter(survey.newest, context.nowMs()));
  // From here on the commit ends or is undone: an interruption waits for it.
  const ending = { ...context, signal: new AbortController().signal };
  const writes = await writeRecord(record, survey.regions, ending);
  const written = writes.filter(({ outcome }) => outcome === "written");
  if (written.length < majorityOf(context.stores)) throw await undone(record, writes, ending);
  await removeClaims(key, range(before + 1, generation), ending);
  const others = writes.filter(({ outcome }) => outcome !== "written");
  return {
    record,
    replaced: written.flatMap(({ replaced }) => replaced ?? []),
    regionsWithout: others.map(({ store, problem }) => ({
      region: store.region.name,
      problem: problem?.message ?? "has a newer version",
    })),
  };
}

/** Commits a manifest that is stored already under a generation of its own. The chunks stay where they are. */
export function commitAgain(manifest: Manifest, survey: Survey, context: WriteContext): Promise<Commit<Manifest>> {
  const { hashesRoot: _root, hashesSha256: _sha256, version: _version, signature: _signature, ...content } = manifest;
  const seal = (generation: number, modified: string): Promise<Manifest> =>
    sealManifest({ ...content, generation, modified }, nodeSha256, context.sign);
  return commitRecord({ key: manifest.key, upload: context.newUpload(), survey, seal }, context);
}

/** The time of a record after `newest`: now, but at least a millisecond later. Times never run backwards for a key. */
function timeAfter(newest: ManifestRecord | undefined, nowMs: number): string {
  return new Date(newest ? Math.max(nowMs, Date.parse(newest.modified) + 1) : nowMs).toISOString();
}

async function undone(
  record: ManifestRecord,
  writes: readonly RegionWrite[],
  context: WriteContext,
): Promise<AgaroseError> {
  const { key } = record;
  const uncertain = (await rollBack(record, writes, context)).map(({ region }) => region.name);
  const written = writes.filter(({ outcome }) => outcome === "written").length;
  const needed = majorityOf(context.stores);
  const first = writes.find(({ problem }) => problem)?.problem;
  const details = { key, written, needed, first: first?.toJSON() };
  if (writes.some(({ outcome }) => outcome === "superseded")) {
    const message = `another writer replaced ${JSON.stringify(key)} meanwhile: run the command again if it must win`;
    return new AgaroseError("REPLACED_MEANWHILE", message, details);
  }
  const what = `the manifest of ${JSON.stringify(key)} was written to ${written} regions, ${needed} are needed`;
  if (uncertain.length > 0) {
    return new AgaroseError(
      "WRITE_UNCERTAIN",
      `${what}, and ${uncertain.join(", ")} could not undo it, so readers may see either version: put it again once ` +
        `they answer. First: ${first?.message}`,
      { ...details, regions: uncertain },
      first,
    );
  }
  return new AgaroseError(
    "STORE_FAILED",
    `${what}, so it was undone and readers see the version before: put it again once they answer. ` +
      `First: ${first?.message}`,
    details,
    first,
  );
}

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

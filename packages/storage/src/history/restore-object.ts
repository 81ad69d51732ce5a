/**
 * Brings a kept version of a key back: its content is read and put again, as a new upload under a new generation. What
 * is kept stays as it is, and so does what the restored version replaces.
 */
import { AgaroseError } from "@agarose/core";
import { isTombstone, parseKey, type Manifest } from "@agarose/core/format";
import { listChunks } from "../objects/chunk-listing.ts";
import { majorityOf, type WriteContext } from "../commit/write-context.ts";
import { listedSurvey } from "../listing/listed-object.ts";
import type { Survey } from "../regions/region-survey.ts";
import { settledSurvey } from "../regions/settled.ts";
import { shownManifest } from "../encryption/secrets-of.ts";
import { asBefore, putObject, type PutObject, type PutResult } from "../objects/put-object.ts";
import type { DeploymentParts } from "../parts.ts";
import { objectSource } from "../upload/object-source.ts";
import { keptVersions } from "./kept-versions.ts";

/** Which kept version to bring back. */
export interface RestoreWish {
  /** Its version (32 hex digits) or its generation. Default: the newest that is not the current one. */
  readonly version?: string;
  /** Whether the object must be removed, or have the content of that version already. Default: false. */
  readonly isRemoved?: boolean;
  /** The ETag by which all regions listed the manifest shortly before. Then one of them is read in place of all. */
  readonly etag?: string | undefined;
}

/** A kept version, and what the key holds. */
export interface Restorable {
  readonly kept: Manifest;
  /** A look at all regions. The restored version replaces the newest one in it, or its tombstone, and no other. */
  readonly survey: Survey;
}

/**
 * Finds the version to bring back, and looks whether its chunks are listed. It writes nothing
 * but what settles the newest version (`settledSurvey`).
 *
 * @throws OBJECT_NOT_FOUND when nothing that fits is kept, NOT_ENOUGH_CHUNKS when its chunks are gone, USAGE when the
 *   object must be removed and holds something else, KEY_INVALID, KEY_TOO_LONG, NO_QUORUM, CREDENTIALS_REFUSED,
 *   MANIFEST_NEWER, or why the history cannot be listed or read.
 */
export async function findRestorable(key: string, wish: RestoreWish, context: WriteContext): Promise<Restorable> {
  parseKey(key);
  const listed = wish.etag === undefined ? undefined : await listedSurvey(wish.etag, key, context);
  const survey = listed ?? (await settledSurvey(key, context));
  const { newest } = survey;
  const enough = majorityOf(context.stores);
  const { versions, problems } = await keptVersions(key, enough, context);
  const current = newest && !isTombstone(newest) ? newest.upload : undefined;
  const kept = versions
    .map(({ manifest }) => manifest)
    .find((manifest) => manifest.upload !== current && isWished(manifest, wish));
  // A region that lists no copies may be the only one that has the version.
  if (!kept && problems.length > 0) throw problems[0]!.problem;
  const present = newest && !isTombstone(newest) ? newest : undefined;
  if (wish.isRemoved && present && !(kept && (await haveOneContent(kept, present, context)))) throw notRemoved(present);
  if (!kept) throw nothingKept(key, wish);
  await refuseGone(kept, context);
  return { kept, survey };
}

/**
 * Puts a kept version again, with its content type and headers, under the code that the configuration says now. It
 * throws as `putObject` does, REPLACED_MEANWHILE when the key has changed since `findRestorable`, and NOT_ENOUGH_CHUNKS
 * or READ_TIMEOUT when the version cannot be read to its end. Then readers see what was there before.
 */
export async function restoreVersion(
  { kept, survey }: Restorable,
  context: DeploymentParts,
  { onBytes }: Pick<PutObject, "onBytes"> = {},
): Promise<PutResult> {
  const { key, contentType, headers } = await shownManifest(kept, context.config);
  const source = objectSource(kept, context);
  const object = { key, source, contentType, headers, force: false, survey };
  return putObject({ ...object, ...asBefore(kept), ...(onBytes && { onBytes }) }, context);
}

async function haveOneContent(a: Manifest, b: Manifest, { config }: WriteContext): Promise<boolean> {
  const [one, other] = await Promise.all([shownManifest(a, config), shownManifest(b, config)]);
  return one.sha256 === other.sha256;
}

function isWished({ version, generation }: Manifest, wish: RestoreWish): boolean {
  return wish.version === undefined || wish.version === version || wish.version === String(generation);
}

/** A read would find it out, too, but only after a claim to the next generation. */
async function refuseGone(kept: Manifest, context: WriteContext): Promise<void> {
  const chunks = await listChunks(kept, context);
  const { key, k, generation } = kept;
  const isGone = ({ code }: (typeof chunks)[number]): boolean => code === "CHUNK_MISSING" || code === "REGION_UNKNOWN";
  const left = chunks.filter((chunk) => !isGone(chunk)).length;
  if (chunks.length === 0 || left >= k) return;
  throw new AgaroseError(
    "NOT_ENOUGH_CHUNKS",
    `generation ${generation} of ${JSON.stringify(key)} has ${left} of ${k} chunks left: restore another version, ` +
      "`agarose versions` lists them",
    { key, generation, needed: k, received: left },
  );
}

function nothingKept(key: string, { version }: RestoreWish): AgaroseError {
  const what = version === undefined ? "no version" : `no version ${version}`;
  const message = `${what} of ${JSON.stringify(key)} is kept besides the current one: \`agarose versions\` lists the kept ones`;
  return new AgaroseError("OBJECT_NOT_FOUND", message, { key, ...(version !== undefined && { version }) });
}

function notRemoved({ key, generation }: Manifest): AgaroseError {
  const message = `${JSON.stringify(key)} is not removed: \`agarose restore\` brings back an earlier version`;
  return new AgaroseError("USAGE", message, { key, generation });
}

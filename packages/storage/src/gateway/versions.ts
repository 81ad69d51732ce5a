/**
 * The versions of a key under `keep`, as clients of S3 name them. The id of a version is that of its upload, which
 * stays when a repair gives it another generation. A tombstone is a delete marker, whose id is its generation. Of a key
 * without `keep` there is one version, which S3 calls `null`.
 */
import { S3Error } from "@agarose/s3-server";
import { AgaroseError } from "@agarose/core";
import { isTombstone, type Manifest, type ManifestRecord } from "@agarose/core/format";
import { keepMsOf } from "../commit/history.ts";
import { majorityOf, type WriteContext } from "../commit/write-context.ts";
import { keptVersions, type KeptVersions } from "../history/kept-versions.ts";
import { readRecord, type ReadHow } from "../objects/manifests.ts";

const NO_HISTORY: KeptVersions = { versions: [], problems: [] };

/** A version of a key, or its removal. */
export interface KeyVersion {
  readonly record: ManifestRecord;
  readonly versionId: string;
  readonly isLatest: boolean;
}

/** The id of what is stored under a key. */
function versionIdOf(record: ManifestRecord, { config }: Pick<WriteContext, "config">): string {
  if (keepMsOf(record.key, config) === 0) return "null";
  return isTombstone(record) ? String(record.generation) : record.upload;
}

/**
 * The versions of a key, the newest first. A removed object has none without `keep`.
 *
 * @throws as `readRecord` does, and NO_QUORUM where a version may have been overlooked.
 */
export async function versionsOf(key: string, context: WriteContext, how: ReadHow): Promise<KeyVersion[]> {
  const { versions, problems } = await knownVersions(key, context, how);
  refuseOverlooked(key, problems, context);
  return versions;
}

/**
 * The version of a key that a client names.
 *
 * @throws S3Error NoSuchVersion, or MethodNotAllowed for a delete marker; else as `versionsOf` does.
 */
export async function readVersion(
  key: string,
  versionId: string,
  context: WriteContext,
  how: ReadHow,
): Promise<KeyVersion & { readonly record: Manifest }> {
  const { versions, problems } = await knownVersions(key, context, how);
  const found = versions.find((version) => version.versionId === versionId);
  if (!found) {
    refuseOverlooked(key, problems, context);
    throw new S3Error("NoSuchVersion", "The specified version does not exist.");
  }
  const { record } = found;
  if (!isTombstone(record)) return { ...found, record };
  const headers = { "x-amz-delete-marker": "true" };
  throw new S3Error("MethodNotAllowed", "The specified method is not allowed against a delete marker.", headers);
}

async function knownVersions(
  key: string,
  context: WriteContext,
  how: ReadHow,
): Promise<{ readonly versions: KeyVersion[]; readonly problems: KeptVersions["problems"] }> {
  // A version is copied before another one takes its place, so the history has what this look finds replaced.
  const { record } = await readRecord(key, context, how);
  const isKept = keepMsOf(key, context.config) > 0;
  const history = isKept ? await keptVersions(key, majorityOf(context.stores), context) : NO_HISTORY;
  const current = record && (isKept || !isTombstone(record)) ? [record] : [];
  const upload = record && !isTombstone(record) ? record.upload : undefined;
  const older = history.versions.map(({ manifest }) => manifest).filter((manifest) => manifest.upload !== upload);
  const versions = [...current, ...older].map((one) => {
    return { record: one, versionId: versionIdOf(one, context), isLatest: one === record };
  });
  return { versions, problems: history.problems };
}

/** A majority has each copy, so one is found where a majority has listed its copies and they can be used. */
function refuseOverlooked(key: string, problems: KeptVersions["problems"], { stores }: WriteContext): void {
  const regions = [...new Set(problems.map(({ region }) => region))];
  const [answered, needed] = [stores.length - regions.length, majorityOf(stores)];
  if (answered >= needed) return;
  const { problem } = problems[0]!;
  throw new AgaroseError(
    "NO_QUORUM",
    `${answered} of ${stores.length} regions showed the history of ${JSON.stringify(key)}, ${needed} are needed to know ` +
      `every version: try again once ${regions.join(", ")} answer. First error: ${problem.message}`,
    { key, answered, needed, regions },
    problem,
  );
}

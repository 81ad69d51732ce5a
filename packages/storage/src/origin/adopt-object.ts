/**
 * Brings one plain object of the origin into the regions, by the protocol of a put that must find nothing: an object
 * that was put or removed there has precedence, whenever that happens.
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { AgaroseError, toAgaroseError, type ErrorCode } from "@agarose/core";
import { isTombstone, parseKey, type ManifestRecord } from "@agarose/core/format";
import type { Origin } from "./http-origin.ts";
import type { ListedObject } from "../buckets/store.ts";
import { replacedMeanwhile } from "../commit/commit.ts";
import { shownManifest } from "../encryption/secrets-of.ts";
import type { Pace } from "../listing/pace.ts";
import { readRecord } from "../objects/manifests.ts";
import { putObject, type PutResult } from "../objects/put-object.ts";
import { removeObject } from "../objects/remove-object.ts";
import type { DeploymentParts } from "../parts.ts";
import { fileSource } from "../upload/file-source.ts";
import { headersOf } from "../upload/header-rules.ts";
import { etagOfHeaders } from "../upload/object-headers.ts";
import { copyOfOrigin, listedNow, requireUnchanged, SHA256_MARK } from "./origin-object.ts";

/** The outcome of one object of the origin. */
export type AdoptOutcome = { readonly key: string; readonly bytes: number } & (
  | { readonly outcome: "adopted"; readonly version: string; readonly generation: number }
  /** Of a dry run: the regions know nothing of it. */
  | { readonly outcome: "due" }
  /** The regions have an object or a tombstone, which stays. */
  | { readonly outcome: "known" }
  /** The same, but somebody has written to the origin since then. */
  | { readonly outcome: "newer"; readonly problem: string }
  /** The origin has removed it since it was listed. */
  | { readonly outcome: "gone" }
  | { readonly outcome: "failed"; readonly error: AgaroseError }
);

interface AdoptHow {
  readonly origin: Origin;
  /** Where copies wait, under names of their own. Undefined for a dry run. */
  readonly folder: string | undefined;
  readonly pace: Pace;
}

/** An object that changes each time it is read is left to the next run. */
const ATTEMPTS_MAX = 3;

/** Adopts a listed object. Rejects only when aborted. */
export async function adoptObject(
  listed: ListedObject,
  how: AdoptHow,
  context: DeploymentParts,
): Promise<AdoptOutcome> {
  const { name: key, bytes } = listed;
  try {
    parseKey(key);
    const { record } = await readRecord(key, context, { isReadOnly: how.folder === undefined });
    if (record) return await judgeKnown(record, listed, how.origin, context);
    if (how.folder === undefined) return { key, bytes, outcome: "due" };
    return await adopt(listed, how.folder, how, context);
  } catch (cause) {
    context.signal.throwIfAborted();
    return { key, bytes, outcome: "failed", error: toAgaroseError(cause) };
  }
}

/** The clocks of the origin and of publishers decide only what is reported. */
async function judgeKnown(record: ManifestRecord, listed: ListedObject, origin: Origin, context: DeploymentParts) {
  const { name: key, bytes, etag, modifiedMs } = listed;
  const isNewer = modifiedMs > Date.parse(record.modified);
  const shown = isTombstone(record) || !isNewer ? undefined : await shownManifest(record, context.config);
  const isEqual =
    shown &&
    (etagOfHeaders(shown.headers) === etag ||
      (await origin.look(key, context.signal))?.headers.get(SHA256_MARK) === shown.sha256);
  if (!isNewer || isEqual) return { key, bytes, outcome: "known" } as const;
  const was = isTombstone(record) ? "removed" : "stored";
  const problem = `the origin has a version of ${new Date(modifiedMs).toISOString()}, the key was ${was} at ${record.modified}`;
  return { key, bytes, outcome: "newer", problem } as const;
}

/** Adopts until the origin still has what was adopted, so that no write to it is lost that ended before. */
async function adopt(
  first: ListedObject,
  folder: string,
  how: AdoptHow,
  context: DeploymentParts,
): Promise<AdoptOutcome> {
  const { name: key } = first;
  let listed = first;
  let own: number | undefined;
  let absent = 0;
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    const put = await adoptOnce(listed, own, folder, how, context);
    if (put === "known") {
      await requireRecord(key, context);
      return { key, bytes: listed.bytes, outcome: "known" };
    }
    if (put === "absent") absent++;
    const stored = put === "changed" || put === "absent" ? undefined : put;
    if (stored) own = stored.generation;
    const now = await listedNow(key, how.origin, context.signal);
    if (!now) {
      await requireGone(key, how.origin, context.signal);
      if (own !== undefined)
        await removeObject(key, context, { onlyIf: (newest) => requireGeneration(own, newest, key) });
      return { key, bytes: listed.bytes, outcome: "gone" };
    }
    const isSame = now.etag === listed.etag && now.bytes === listed.bytes;
    if (stored && isSame) {
      const { bytes, version, generation } = stored;
      return { key, bytes, outcome: "adopted", version, generation };
    }
    listed = now;
  }
  if (absent === ATTEMPTS_MAX) throw notThere(key);
  const left = own === undefined ? "nothing is adopted" : "an older version is adopted";
  const next = `${left}: stop what writes to the origin, then copy the object with \`agarose put\``;
  const message = `the origin replaced ${JSON.stringify(key)} during each of ${ATTEMPTS_MAX} attempts, and ${next}`;
  throw new AgaroseError("REPLACED_MEANWHILE", message, { key, attempts: ATTEMPTS_MAX });
}

/** A writer that has claimed the key, and perhaps died, has stored nothing yet: that counts as no object. */
async function requireRecord(key: string, context: DeploymentParts): Promise<void> {
  const { record } = await readRecord(key, context);
  if (record) return;
  const message = `another writer has claimed ${JSON.stringify(key)} and stored nothing yet: run the command again in a minute`;
  throw new AgaroseError("BUSY", message, { key });
}

/** A list may lack an object for once, and what is removed from the regions does not come back. */
async function requireGone(key: string, origin: Origin, signal: AbortSignal): Promise<void> {
  const bytes = await origin.head(key, signal);
  if (bytes === undefined) return;
  const message = `the origin has ${JSON.stringify(key)} (${bytes} bytes) and does not list it: run the command again`;
  throw new AgaroseError("SOURCE_FAILED", message, { key, bytes });
}

function notThere(key: string): AgaroseError {
  const what = `the origin lists ${JSON.stringify(key)} and answered each of ${ATTEMPTS_MAX} requests for it with 404`;
  const message = `${what}: look at the object there, or delete it`;
  return new AgaroseError("OBJECT_NOT_FOUND", message, { key, attempts: ATTEMPTS_MAX });
}

/** The state of the origin in place of the listed object, by the code of the failure. */
const NOT_LISTED = { REPLACED_MEANWHILE: "changed", OBJECT_NOT_FOUND: "absent" } as const;

async function adoptOnce(
  listed: ListedObject,
  own: number | undefined,
  folder: string,
  { origin, pace }: AdoptHow,
  context: DeploymentParts,
): Promise<PutResult | "changed" | "absent" | "known"> {
  const { name: key } = listed;
  const path = join(folder, crypto.randomUUID());
  // Later objects of the origin are younger than the object that is read here. S3 tells whole seconds.
  const asOf = new Date(Math.floor(context.nowMs() / 1000 - 1) * 1000).toISOString();
  try {
    const copying = { signal: context.signal, pass: pace };
    const copy = copyOfOrigin(listed, path, origin, copying);
    const described = await copy.catch(unless(NOT_LISTED));
    if (typeof described === "string") return described;
    const { contentType, headers } = described;
    const object = { key, source: fileSource(path), contentType, force: false, asOf };
    const onlyIf = (_current: unknown, newest: ManifestRecord | undefined): void => requireGeneration(own, newest, key);
    let late: "changed" | "absent" | undefined;
    const beforeCommit = (): Promise<void> =>
      requireUnchanged(listed, origin, context.signal).catch((cause: unknown) => {
        late = unless(NOT_LISTED)(cause);
        throw cause;
      });
    const kept = headersOf(key, context.config.headers, headers);
    const put = putObject({ ...object, headers: kept, onlyIf, beforeCommit }, context);
    return await put.catch((cause: unknown) => late ?? unless({ REPLACED_MEANWHILE: "known" })(cause));
  } finally {
    await rm(path, { force: true });
  }
}

function requireGeneration(own: number | undefined, newest: ManifestRecord | undefined, key: string): void {
  if (newest?.generation !== own) throw replacedMeanwhile(key, {}, "it stays");
}

/** The outcome of a failure with one of these codes. Any other is rethrown. */
function unless<const T extends string>(outcomes: Partial<Record<ErrorCode, T>>): (cause: unknown) => T {
  return (cause) => {
    const outcome = outcomes[toAgaroseError(cause).code];
    if (outcome !== undefined) return outcome;
    throw cause;
  };
}

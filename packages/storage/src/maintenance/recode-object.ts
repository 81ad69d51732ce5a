/**
 * Stores an object again under the code and the placement that the configuration says now. Its content, content type
 * and headers stay.
 */
import {
  blockBytesOf,
  encodeManifest,
  isTombstone,
  parseKey,
  type Manifest,
  type ManifestRecord,
} from "@agarose/core/format";
import type { Config } from "../config/config.ts";
import { replacedMeanwhile } from "../commit/commit.ts";
import { holds } from "../regions/region-survey.ts";
import type { WriteContext } from "../commit/write-context.ts";
import { settledSurvey } from "../regions/settled.ts";
import { isAsConfigured, shownManifest } from "../encryption/secrets-of.ts";
import { namesDrained, layoutOf, type ObjectLayout } from "../layout/object-layout.ts";
import { asBefore, putObject, type PutResult } from "../objects/put-object.ts";
import { currentNames } from "../buckets/region-names.ts";
import type { DeploymentParts } from "../parts.ts";
import { objectSource } from "../upload/object-source.ts";

/** `findRecodable`, then `recodeVersion`. Undefined when there is nothing to do. It throws as both do. */
export async function recodeObject(key: string, context: DeploymentParts): Promise<PutResult | undefined> {
  const before = await findRecodable(key, context);
  return before && recodeVersion(before, context);
}

/**
 * The current version of a key whose layout is not that of the configuration, or which some regions have not got yet.
 * Undefined when there is nothing to do, or the object was removed.
 *
 * @throws KEY_INVALID, KEY_TOO_LONG, CONFIG_INVALID, LAYOUT_UNSAFE, NO_QUORUM, CREDENTIALS_REFUSED or MANIFEST_NEWER.
 */
export async function findRecodable(key: string, context: WriteContext): Promise<Manifest | undefined> {
  parseKey(key);
  const { newest, regions } = await settledSurvey(key, context);
  if (!newest || isTombstone(newest)) return undefined;
  const bytes = encodeManifest(newest);
  // A run that was killed in its last writes left some regions behind, and the put completes them.
  const isEverywhere = regions.every((region) => region.state === "unreachable" || holds(region, bytes));
  const { config } = context;
  return isEverywhere && (await isLaidOut(newest, layoutOf(config, key, newest.bytes), config)) ? undefined : newest;
}

/**
 * Stores a version again: a new upload under the next generation, and only if no other writer comes between.
 *
 * It throws as `putObject` does, and NOT_ENOUGH_CHUNKS or READ_TIMEOUT when the version cannot be read to its end. Then
 * readers see what was there before.
 */
export async function recodeVersion(before: Manifest, context: DeploymentParts): Promise<PutResult> {
  const { key, generation } = before;
  const onlyIf = (_: Manifest | undefined, newest: ManifestRecord | undefined): void => {
    if (newest?.generation !== generation) throw replacedMeanwhile(key, {}, "run the command again");
  };
  const { contentType, headers } = await shownManifest(before, context.config);
  const source = objectSource(before, context);
  return putObject({ key, source, contentType, headers, force: false, onlyIf, ...asBefore(before) }, context);
}

/** Whether an object is stored as a put would store it now. Rejects with CONFIG_INVALID. */
export async function isLaidOut(manifest: Manifest, layout: ObjectLayout, config: Config): Promise<boolean> {
  const { k, m, placement } = layout;
  return (
    manifest.k === k &&
    manifest.m === m &&
    manifest.stripeBytes === config.stripeBytes &&
    manifest.blockBytes === blockBytesOf(manifest) &&
    (manifest.inline !== undefined) === layout.inline &&
    currentNames(manifest.placement, config.regions).join() === placement.join() &&
    !namesDrained(manifest, config) &&
    isAsConfigured(manifest, config)
  );
}

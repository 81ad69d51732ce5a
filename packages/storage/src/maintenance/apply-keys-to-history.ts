/**
 * Has the current key sign the versions that a history keeps, and encrypts their data keys by the first secret. They
 * would become unreadable with the key that signed them, or the secret that encrypted them.
 */
import { AgaroseError } from "@agarose/core";
import {
  acceptUnsigned,
  encodeManifest,
  parseManifest,
  refuseTooLarge,
  sealManifest,
  type Manifest,
} from "@agarose/core/format";
import { readChecked } from "@agarose/core/sources";
import { askRegions, isConditionFailed } from "../regions/ask-regions.ts";
import { askHistory, keepMsOf, type HistoryCopy } from "../commit/history.ts";
import { majorityOf, writeContextOf, type WriteContext } from "../commit/write-context.ts";
import { withFirstSecret } from "../encryption/replaced-secret.ts";
import { keptVersions, refuseUnread } from "../history/kept-versions.ts";
import { nodeSha256 } from "../objects/sha256.ts";
import type { Store } from "../buckets/store.ts";
import type { ApplyKeysContext } from "./apply-keys.ts";

/**
 * Signs again what a key other than `keyId` has signed of the versions that are kept of a key. Returns how many
 * versions get new copies, or with `dryRun` would. The time of a copy restarts, because a region counts it from the
 * moment in which it took the copy.
 *
 * @throws STORE_FAILED when no majority took the copies of a version, SECRET_WRONG, DECRYPTION_FAILED, CONFIG_INVALID,
 * or why a copy cannot be read.
 */
export async function applyKeysToHistory(
  key: string,
  { keyId, vouches = false, dryRun = false, ...options }: Omit<ApplyKeysContext, "acceptsNewest">,
): Promise<number> {
  const own = writeContextOf(options);
  const context = vouches ? { ...own, trust: acceptUnsigned } : own;
  if (keepMsOf(key, context.config) === 0) return 0;
  const kept = await keptVersions(key, context.stores.length, context);
  context.signal.throwIfAborted();
  refuseUnread(kept, context);
  const young = kept.versions.filter(({ keptUntilMs }) => keptUntilMs > context.nowMs());
  const due: Manifest[] = [];
  for (const { manifest } of young) {
    const current = await withFirstSecret(manifest, context.config);
    const isSigned = keyId === undefined || manifest.signature?.keyId === keyId;
    if (!isSigned || current !== manifest) due.push(current as Manifest);
  }
  if (due.length === 0 || dryRun) return due.length;
  await context.fence?.check();
  const listed = (await askHistory(key, context.stores.length, context)).flatMap(({ value = [] }) => value);
  for (const manifest of due) await replaceCopies(manifest, listed, context);
  return due.length;
}

async function replaceCopies(
  { hashesRoot: _root, hashesSha256: _sha256, version: _version, signature: _signature, ...draft }: Manifest,
  listed: readonly HistoryCopy[],
  context: WriteContext,
): Promise<void> {
  const { key, upload, generation } = draft;
  const bytes = encodeManifest(await sealManifest(draft, nodeSha256, context.sign));
  await parseManifest(bytes, { key, trust: context.readerTrust, sha256: nodeSha256 });
  const own = Map.groupBy(
    listed.filter((copy) => copy.upload === upload),
    ({ store }) => store,
  );
  const stores = [...own.keys()];
  const enough = Math.min(stores.length, majorityOf(context.stores));
  const replace = async (store: Store, signal: AbortSignal): Promise<void> => {
    for (const copy of own.get(store)!) await replaceCopy(copy, draft, bytes, { ...context, signal });
  };
  const outcomes = await askRegions(stores, replace, { enough }, context);
  const failed = outcomes.flatMap(({ error }) => error ?? []);
  if (outcomes.length - failed.length >= enough) return;
  const message =
    `${outcomes.length - failed.length} of ${stores.length} regions took the new signature of the kept generation ` +
    `${generation} of ${JSON.stringify(key)}, ${enough} are needed: run the command again. First error: ${failed[0]!.message}`;
  throw new AgaroseError("STORE_FAILED", message, { key, generation, needed: enough }, failed[0]);
}

/** Replaces a copy where it still holds this version. One that a garbage collector has just removed stays away. */
async function replaceCopy(
  { store, name }: HistoryCopy,
  { key, upload }: Pick<Manifest, "key" | "upload">,
  bytes: Uint8Array,
  { signal, trust }: WriteContext,
): Promise<void> {
  const response = await store.get(name, { signal });
  const etag = response.headers.get("etag");
  if (response.status !== 200 || etag === null) {
    await response.body?.cancel();
    return;
  }
  const held = await parseManifest(await readChecked(response, refuseTooLarge), { key, trust, sha256: nodeSha256 });
  if ((held as Manifest).upload !== upload) return;
  const options = { bytes: bytes.length, contentType: "application/json", ifMatch: etag, signal };
  await store.put(name, bytes, options).catch((error: unknown) => {
    if (!isConditionFailed(error)) throw error;
  });
}

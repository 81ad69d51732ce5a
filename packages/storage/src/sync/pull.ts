/** From objects to a folder: makes the files of a folder equal to the objects below a prefix. */
import type { Stats } from "node:fs";
import { lstat, mkdir, readdir, rm, rmdir, utimes, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { succeeds } from "@agarose/core/async";
import { shownBytes } from "@agarose/core/content";
import type { Manifest } from "@agarose/core/format";
import { writeError } from "../files/file-errors.ts";
import { isBeingWritten, partialPathOf } from "../files/owned-files.ts";
import { writeWholeFile, type WritePart } from "../files/whole-file.ts";
import { shownManifest } from "../encryption/secrets-of.ts";
import { getObject } from "../objects/get-object.ts";
import { KeyListing, liveGroups } from "../listing/keys.ts";
import { readManifest } from "../objects/manifests.ts";
import { sha256Of } from "../upload/file-source.ts";
import type { KeyGroup } from "../listing/key-groups.ts";
import { commonEtag, currentManifest } from "../listing/listed-object.ts";
import { mapOrdered } from "../listing/adaptive-pool.ts";
import { areKnown, knownOf, type Known } from "./known-equal.ts";
import { pathBelow, withKnown } from "./local-folder.ts";
import type { SyncContext, SyncJob, SyncTotals } from "./sync-job.ts";

interface Wanted {
  readonly key: string;
  /** Below the folder. */
  readonly path: string;
  readonly manifest: Manifest;
}

const COMPARED_AT_A_TIME = 32;

/** Fetches what is new or has changed, then deletes what is gone. An object that fails does not stop the others. */
export async function pull(job: SyncJob, context: SyncContext): Promise<SyncTotals> {
  if (!job.dryRun) {
    await mkdir(job.folder, { recursive: true }).catch((error: unknown) => {
      throw writeError(job.folder, error);
    });
  }
  const { wanted, paths, unchanged, listing } = await compare(job, context);
  const isComplete = listing.complete;
  // Known before anything is fetched: what comes into the folder meanwhile stays.
  const extra = job.delete ? await extraFiles(job, paths) : [];
  if (!job.dryRun && isComplete && extra.length > 0 && paths.size > 0) {
    const there = await Promise.all(wanted.map(({ path }) => isFile(join(job.folder, path))));
    const isTotal = unchanged === 0 && !there.includes(true);
    await context.confirm({ names: extra, isTotal });
  }
  await fetchAll(job, wanted, context);
  const result = { unchanged, kept: 0 };
  // The folder has the objects of these regions, which are not all.
  if (extra.length === 0 && job.consistency === "strong") listing.requireComplete();
  if (extra.length === 0) return result;
  if (!isComplete) return { ...result, notRemoved: "too few regions could be listed" };
  if (context.failures() > 0) return { ...result, notRemoved: `${context.failures()} of the objects failed` };
  if (paths.size === 0) {
    const message = `no object is below ${JSON.stringify(job.prefix)}, and \`delete\` would remove all ${extra.length} files: check the prefix with \`agarose ls\``;
    throw new AgaroseError("USAGE", message, { files: extra.length });
  }
  await removeFiles(job, extra, context);
  return result;
}

interface Difference {
  readonly wanted: readonly Wanted[];
  /** Of all objects, changed or not. */
  readonly paths: ReadonlySet<string>;
  readonly unchanged: number;
  readonly listing: KeyListing;
}

async function compare(job: SyncJob, context: SyncContext): Promise<Difference> {
  const { prefix, filter } = job;
  const listing = new KeyListing(prefix, context);
  const paths = new Set<string>();
  const found: Wanted[] = [];
  let unchanged = 0;
  const groups = withKnown(liveGroups(listing, context, job), context.known);
  const judged = mapOrdered(groups, COMPARED_AT_A_TIME, async ({ item: group, known }) => {
    const path = group.key.slice(prefix.length);
    if (path === "" || !filter.takes(path)) return undefined;
    try {
      if (!staysBelow(path)) throw noPath(group.key);
      return { key: group.key, path, ...(await judge(path, group, known, job, context)) };
    } catch (error) {
      context.signal.throwIfAborted();
      await context.report({ key: group.key, outcome: "failed", error: toAgaroseError(error) });
      return { key: group.key, path };
    }
  });
  for await (const one of judged) {
    if (one === undefined) continue;
    const { key, path, known, manifest } = one;
    paths.add(path);
    if (known) await context.known.keep(key, known);
    if (one.isEqual) unchanged++;
    else if (manifest) found.push({ key, path, manifest });
  }
  listing.warn(context.onWarning);
  const refused = clashes(paths, await foldsCase(job.folder));
  const wanted: Wanted[] = [];
  for (const one of found) {
    const other = refused.get(one.path);
    if (other === undefined) wanted.push(one);
    else await context.report({ key: one.key, outcome: "failed", error: clashOf(one.key, `${prefix}${other}`) });
  }
  return { wanted, paths, unchanged, listing };
}

/** The action for an object: none, where its file equals it, or a fetch. */
interface Verdict {
  readonly isEqual?: true;
  /** The note about a file that equals it. */
  readonly known?: Known | undefined;
  /** Of what is to be fetched. */
  readonly manifest?: Manifest;
}

async function judge(
  path: string,
  group: KeyGroup,
  known: Known | undefined,
  job: SyncJob,
  context: SyncContext,
): Promise<Verdict> {
  const file = join(job.folder, path);
  const isFolder = path.endsWith("/");
  // With a slash at its end, `lstat` would follow a link.
  const status = isFolder ? undefined : await lstat(file).catch(() => undefined);
  const etag = commonEtag(group, context);
  if (status?.isFile() && !job.checksum && areKnown(known, status, etag)) return { isEqual: true, known };
  const isStrong = job.consistency === "strong";
  const manifest = await (isStrong ? currentManifest(group, context) : readManifest(group.key, context, job));
  if (manifest === undefined) {
    const message = `no region has a usable manifest of ${JSON.stringify(group.key)}: run \`agarose verify\``;
    throw new AgaroseError("NO_SOURCE", message, { key: group.key });
  }
  if (isFolder) {
    await keepFolder(path, manifest, job);
    return { isEqual: true };
  }
  const readMs = Date.now();
  if (!status?.isFile() || !(await hasContent(file, status, manifest, job, context))) return { manifest };
  return { isEqual: true, known: knownOf(status, etag, readMs) };
}

/** Makes the folder of which a client of S3 has stored an empty object. */
async function keepFolder(path: string, manifest: Manifest, { folder, dryRun }: SyncJob): Promise<void> {
  const bytes = shownBytes(manifest);
  if (bytes > 0) {
    const { key } = manifest;
    const message =
      `${JSON.stringify(key)} has ${bytes} bytes and the name of a folder, so it cannot be a file in this one: fetch it ` +
      "with `agarose get` and a file of another name, or leave it out by `exclude`";
    throw new AgaroseError("KEY_INVALID", message, { key, bytes });
  }
  if (dryRun) return;
  await makeFolder(folder, path.slice(0, -1), new Map()).catch((error: unknown) => {
    throw writeError(path, error);
  });
}

async function hasContent(
  file: string,
  status: Stats,
  manifest: Manifest,
  { checksum, dryRun }: SyncJob,
  { signal, config }: SyncContext,
): Promise<boolean> {
  const { bytes, sha256, modified } = await shownManifest(manifest, config);
  if (status.size !== bytes) return false;
  // A sync gives its files the time of their objects.
  if (!checksum && Math.round(status.mtimeMs) === Date.parse(modified)) return true;
  if ((await sha256Of(file, signal)) !== sha256) return false;
  if (!dryRun) await setTime(file, modified);
  return true;
}

async function fetchAll(job: SyncJob, wanted: readonly Wanted[], context: SyncContext): Promise<void> {
  const { transfer, progress, onLeftover } = context;
  if (!job.dryRun) for (const { manifest } of wanted) progress.addTotal(shownBytes(manifest));
  const folders = new Map<string, Promise<void>>();
  await transfer(
    wanted,
    ({ manifest }) => shownBytes(manifest),
    async ({ key, path, manifest }) => {
      try {
        if (!job.dryRun) {
          const file = join(job.folder, path);
          await makeFolder(job.folder, dirname(path), folders);
          const fetchInto = (write: WritePart): Promise<unknown> =>
            getObject(manifest, undefined, write, context, { onBytes: (bytes) => progress.add(bytes) });
          // The target of a link may be outside of the folder.
          await writeWholeFile(file, fetchInto, { follow: false, onLeftover });
          await setTime(file, manifest.modified);
        }
        await context.report({ key, outcome: "fetched", bytes: shownBytes(manifest) });
      } catch (error) {
        context.signal.throwIfAborted();
        await context.report({ key, outcome: "failed", error: writeError(path, error) });
      }
    },
  );
}

/** Makes the folders of a path. A link among them could lead out of the folder, so it is refused. */
function makeFolder(root: string, path: string, made: Map<string, Promise<void>>): Promise<void> {
  if (path === ".") return Promise.resolve();
  const known = made.get(path);
  if (known) return known;
  const making = (async () => {
    await makeFolder(root, dirname(path), made);
    const folder = join(root, path);
    await mkdir(folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    });
    if ((await lstat(folder)).isDirectory()) return;
    throw new AgaroseError("USAGE", `${folder} is not a folder, but an object belongs below it: remove it`, { path });
  })();
  made.set(path, making);
  return making;
}

async function setTime(file: string, modified: string): Promise<void> {
  const time = new Date(modified);
  await utimes(file, time, time);
}

/** The files of the folder, not behind links, that no object has and no other command is writing. */
async function extraFiles({ folder, filter }: SyncJob, paths: ReadonlySet<string>): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const extra: string[] = [];
  for (const entry of entries.filter((one) => one.isFile())) {
    const whole = join(entry.parentPath, entry.name);
    const path = pathBelow(folder, whole);
    if (!paths.has(path) && filter.takes(path) && !(await isBeingWritten(whole))) extra.push(path);
  }
  return extra.toSorted();
}

function isFile(path: string): Promise<boolean> {
  return lstat(path).then(
    (found) => found.isFile(),
    () => false,
  );
}

async function removeFiles(job: SyncJob, extra: readonly string[], context: SyncContext): Promise<void> {
  for (const path of extra) {
    context.signal.throwIfAborted();
    try {
      if (!job.dryRun) {
        await rm(join(job.folder, path), { force: true });
        await removeEmptyFolders(job.folder, dirname(path));
      }
      await context.report({ key: `${job.prefix}${path}`, outcome: "removed" });
    } catch (error) {
      await context.report({ key: `${job.prefix}${path}`, outcome: "failed", error: writeError(path, error) });
    }
  }
}

async function removeEmptyFolders(root: string, path: string): Promise<void> {
  for (let at = path; at !== "."; at = dirname(at)) {
    if (!(await succeeds(rmdir(join(root, at))))) return;
  }
}

/** Whether names that differ in case alone are one file in this folder. */
async function foldsCase(folder: string): Promise<boolean> {
  // Named as a file that is being written, so that the next run removes what a killed one left.
  const probe = await partialPathOf(join(folder, "Case"));
  if (!(await succeeds(writeFile(probe, "", { flag: "wx" })))) return false;
  try {
    return await succeeds(lstat(join(folder, basename(probe).toUpperCase())));
  } finally {
    await rm(probe, { force: true });
  }
}

function noPath(key: string): AgaroseError {
  const message =
    `${JSON.stringify(key)} has a segment that is empty, \`.\` or \`..\`, so it cannot be a file of this folder: fetch it ` +
    "with `agarose get` and a file of another name, or leave it out by `exclude`";
  return new AgaroseError("KEY_INVALID", message, { key });
}

function clashOf(key: string, other: string): AgaroseError {
  const message = `${JSON.stringify(key)} cannot be a file next to ${JSON.stringify(other)} in this folder: skip one of them by \`exclude\``;
  return new AgaroseError("KEY_INVALID", message, { key, other });
}

/** Whether a path names what is in a folder: a key may have `..`, which would lead out of it, and empty segments. */
function staysBelow(path: string): boolean {
  return !/(^|\/)\.{0,2}\//.test(path) && !/(^|\/)\.\.?$/.test(path);
}

/**
 * By path, the path beside which it cannot be a file: one that is a folder for others, or with `isFolding` one that is
 * the same name to the file system. Of such names, the first one is not in the result.
 */
export function clashes(paths: ReadonlySet<string>, isFolding: boolean): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const nameOf = (path: string): string => (isFolding ? path.normalize("NFC").toLowerCase() : path);
  const folders = new Map<string, string>();
  for (const path of paths) {
    for (let end = path.indexOf("/"); end >= 0; end = path.indexOf("/", end + 1)) {
      folders.set(nameOf(path.slice(0, end)), path);
    }
  }
  const files = new Map<string, string>();
  for (const path of paths) {
    const other = folders.get(nameOf(path)) ?? files.get(nameOf(path));
    if (other === undefined) files.set(nameOf(path), path);
    else found.set(path, other);
  }
  return found;
}

/**
 * Copies of the engines that make one mistake each: those that an audit found in the code before format 2, in the words
 * of the present code. A simulator that does not find them proves nothing.
 */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { loadEngines, SOURCES, type Engines } from "./engines.ts";
import { edited, type Edit } from "./mutation.ts";
import * as families from "./schedules/families.ts";
import type { scheduleOf } from "./schedules/schedule.ts";

/** A mistake in the engines. */
export interface Mutant {
  /** The mistake. */
  readonly name: string;
  /** The schedules that find it. Default: those of every kind. */
  readonly family?: typeof scheduleOf;
  readonly edits: readonly Edit[];
}

const COMMIT = "commit/commit.ts";
const SURVEY = "regions/region-survey.ts";
const WRITE = "commit/manifest-write.ts";
const CLAIM = "commit/claim.ts";
const BATCHES = "commit/batches.ts";
const HISTORY = "commit/history.ts";
const CLOCKS = "listing/region-clocks.ts";
const CLEAN = "maintenance/gc/clean-key.ts";
const VIEW = "maintenance/gc/key-view.ts";
const PUT = "objects/put-object.ts";
const REMOVE = "objects/remove-object.ts";
const MANIFESTS = "objects/manifests.ts";
const UPLOADS = "page-uploads/handle-uploads.ts";
const REPAIR = "repair/repair-object.ts";

/** Writes whatever is there, whichever is newer. */
const UNCONDITIONAL: readonly Edit[] = [
  [WRITE, "putConditionally", "value ifMatch", "undefined"],
  [WRITE, "putConditionally", "value ifNoneMatch", "undefined"],
];

/** One of the two guards against wrong clocks is gone. */
export const CLOCKS_UNCOMPARED: Edit = [CLOCKS, "readRegionClocks", "call refuseSkew", "undefined"];

const REMOVE_ALL = `await Promise.allSettled(
  context.stores.map(async (store) =>
    store.remove(await Array.fromAsync(store.list("chunks/"), ({ name }) => name))))`;

export const MUTANTS: readonly Mutant[] = [
  {
    name: "put says unchanged after a look at one region",
    family: families.killedAndRepeated,
    edits: [
      [COMMIT, "completeRecord", "value lacking", "[]"],
      [PUT, "putObject", "value newest", "{ newest: $&.regions[0].record }"],
    ],
  },
  {
    name: "rm removes the chunks of every upload of the key",
    edits: [[REMOVE, "removeObject", "value generation 1", `(${REMOVE_ALL}, $&)`]],
  },
  {
    name: "a client takes an older version than it has seen",
    family: families.besideHostileRegion,
    edits: [[MANIFESTS, "readFirst", "value generationMin", "0"]],
  },
  {
    name: "gc deletes by the age of chunks, and lists before it looks",
    family: families.cleanedUnderReader,
    edits: [
      [CLEAN, "cleanKey", "test unmarked 2", "false"],
      [CLEAN, "cleanKey", "test uncounted", "false"],
      [
        CLEAN,
        "cleanKey",
        "call every",
        "objects.every(({ modifiedMs }) => context.nowMs() - modifiedMs >= olderThanMs)",
      ],
    ],
  },
  {
    name: "gc takes ages by its own clock, and compares it with no other",
    family: families.cleanedByWrongClock,
    edits: [CLOCKS_UNCOMPARED, [CLOCKS, "readRegionClocks", "return readAtMs 2", "context.nowMs() - modifiedMs"]],
  },
  {
    name: "the clock decides which of two manifests is newer",
    edits: [
      [SURVEY, "compareAge", "test generation", "a.modified !== b.modified"],
      [SURVEY, "compareAge", "return generation", "Date.parse(a.modified) - Date.parse(b.modified)"],
      [COMMIT, "timeAfter", "test newest", "false"],
    ],
  },
  {
    name: "repair writes the manifest that it remembers over newer ones",
    edits: [
      ...UNCONDITIONAL,
      [REPAIR, "rewriteManifests", "test equals", "!newest"],
      [WRITE, "writeRegion", "test compareAge", "false"],
      [REPAIR, "rewriteManifests", "test copied", "false"],
    ],
  },
  {
    name: "manifests are written without conditions and without claims",
    edits: [...UNCONDITIONAL, [CLAIM, "claimIn", "value ifNoneMatch", "undefined"]],
  },
  {
    name: "a writer does not look again after its claim",
    edits: [[COMMIT, "sealOwn", "call surveyAgain", "before"]],
  },
  {
    name: "a claim counts in less than a majority",
    edits: [[CLAIM, "claimFirst", "value needed", "$& - 1"]],
  },
  {
    name: "a copy takes any generation that is free",
    edits: [
      [CLAIM, "claimFirst", "test areDead", "false"],
      [COMMIT, "sealOwn", "test before", "false"],
      [COMMIT, "sealOwn", "test isOwned", "!own.isExpired"],
      [COMMIT, "sealOwn", "test copies 2", "false"],
      [COMMIT, "commitRecord", "test copies", "false"],
    ],
  },
  {
    name: "a writer copies what it saw before its first write, and not what came since",
    family: families.replacedUnderKeep,
    edits: [[WRITE, "writeRegion", "value copying", "attempt === 1 ? $& : undefined"]],
  },
  {
    name: "a writer does not wait for the copies of what it replaces",
    edits: [[HISTORY, "keeperFor", "return copy 2", "void $&.catch(() => {})"]],
  },
  {
    name: "a copy counts in less than a majority",
    family: families.replacedUnderKeep,
    edits: [[HISTORY, "storeCopy", "value needed 1", "$& - 1"]],
  },
  {
    name: "a restore takes any generation that is free",
    family: families.restoredBesideWriters,
    edits: [[PUT, "putObject", "value copies 1", "false"]],
  },
  {
    name: "rm removes the chunks of a version that is kept",
    family: families.replacedUnderKeep,
    edits: [[REMOVE, "removeObject", "value isKept", "false"]],
  },
  {
    name: "gc does not look at the claims of writers that run",
    family: families.cleanedUnderWriter,
    edits: [[CLEAN, "cleanKey", "test isOld", "own.filter(counts).every(isOld)"]],
  },
  {
    name: "gc looks at the claims after the manifests",
    family: families.cleanedUnderWriter,
    edits: [
      [VIEW, "viewKey", "value writers 2", "await writersOf(group, context)"],
      [VIEW, "viewKey", "value writers 1", "undefined"],
    ],
  },
  {
    name: "a writer removes claims that it has not seen",
    family: families.killedBesideHostileRegion,
    edits: [
      [
        COMMIT,
        "commitRecord",
        "value own",
        "Array.from({ length: sealed.record.generation - newest }, (_, passed) => newest + 1 + passed)",
      ],
      [
        "commit/claim-removals.ts",
        "add",
        "call push",
        "this.#names.push(...generations.map((one) => claimName(key, one)))",
      ],
    ],
  },
  {
    name: "gc does not look at the history",
    family: families.replacedUnderKeep,
    edits: [[CLEAN, "cleanKey", "value named", "new Set(current)"]],
  },
  {
    name: "gc ends the time of a copy a day early",
    family: families.replacedUnderKeep,
    edits: [[VIEW, "splitHistory", "value keepMs", "$& - 86_400_000"]],
  },
  {
    name: "a client takes a manifest that no trusted key has signed",
    family: families.besideHostileRegion,
    edits: [[MANIFESTS, "readFirst", "value trust", "async () => {}"]],
  },
  {
    name: "expire removes what another writer has put since it was listed",
    family: families.expiredBesideWriters,
    edits: [["maintenance/expire-objects.ts", "expireObject", "call removeObject", "removeObject(key, context)"]],
  },
  {
    name: "expire goes by the oldest time that a region lists",
    family: families.expiredBesideWriters,
    edits: [[CLOCKS, "ageOfMajority", "return agesMs", "Math.max(0, ...agesMs)"], CLOCKS_UNCOMPARED],
  },
  {
    name: "a chunk under the former name of a region counts as lost",
    family: families.renamedBesideWriters,
    edits: [["buckets/region-names.ts", "hasName", "return name", "name === wanted"]],
  },
  {
    name: "a strong read takes the first answer",
    family: families.besideRegionsThatComeAndGo,
    edits: [[MANIFESTS, "readManifest", "test consistency", "true"]],
  },
  {
    name: "what a writer cannot use counts as nothing",
    family: families.rotatedBesideWriters,
    edits: [[SURVEY, "generationOf", "test usable 1", "true"]],
  },
  {
    name: "a writer does not look which keys are in force",
    family: families.rotatedBesideWriters,
    edits: [
      [COMMIT, "sealOwn", "call check", "undefined"],
      [COMMIT, "commitRecord", "call check", "Promise.resolve()"],
    ],
  },
  {
    name: "a batch does not look for those of others",
    family: families.manyByBatches,
    edits: [[BATCHES, "unclaimed", "call every", "true"]],
  },
  {
    name: "a batch counts in less than a majority",
    family: families.manyByBatches,
    edits: [
      [BATCHES, "storeBatch", "value enough", "1"],
      [BATCHES, "unclaimed", "value needed", "1"],
    ],
  },
  {
    name: "a batch looks for those of others before it is stored",
    family: families.manyByBatches,
    edits: [
      [BATCHES, "claimBatch", "value holders", "context.stores"],
      [
        BATCHES,
        "claimBatch",
        "value isOurs",
        "$&.then(async (found) => (await storeBatch(name, entries, context)).length < needed ? undefined : found)",
      ],
      [BATCHES, "unclaimed", "value sound", "listings"],
    ],
  },
  {
    name: "a batch does not look at manifests after its claim",
    family: families.manyByBatches,
    edits: [[BATCHES, "unchanged", "call every", "true"]],
  },
  {
    name: "a batch takes the next generation, as its own claim does",
    family: families.manyByBatches,
    edits: [["commit/generations.ts", "batchAfter", "return passed", "generation + 1"]],
  },
  {
    name: "a page's upload goes by a claim that another writer has won",
    family: families.begunAtOneMoment,
    edits: [[CLAIM, "findBegun", "call toSorted", "own"]],
  },
  {
    name: "a token may begin its upload twice at one moment",
    family: families.uploadedBesideWriters,
    edits: [[UPLOADS, "begin", "test isTwice", "false"]],
  },
  {
    name: "a page that commits again hears that all regions have it",
    family: families.uploadedBesideWriters,
    edits: [[UPLOADS, "committed", "value without", "[]"]],
  },
  {
    name: "a manifest is renamed over what another writer has put meanwhile",
    family: families.renamedBesideWriters,
    edits: [[COMMIT, "commitAgain", "value copies", "false"]],
  },
];

const DIST = fileURLToPath(new URL("../../dist", import.meta.url));
const FROM_CORE = 'from "@agarose/core";';
const CORE_SEEN = "core-seen.ts";
/**
 * Takes the place of core in a mutant, and keeps what the engines catch. They turn every error into one of a region, so
 * that one of the mutant's own would go for an outage.
 */
const CORE_SEEN_TEXT = `
import { toAgaroseError as convert } ${FROM_CORE}
export * ${FROM_CORE}
export const caught: unknown[] = [];
export function toAgaroseError(...[error, fallback]: Parameters<typeof convert>): ReturnType<typeof convert> {
  caught.push(error);
  return convert(error, fallback);
}
`;

/**
 * Loads the engines with a mistake, and passes them to `use`. Throws when the mutant no longer fits the sources: it has
 * then a fault that no promise is about, and what `use` finds proves nothing.
 */
export async function withMutant<T>({ name, edits }: Mutant, use: (engines: Engines) => Promise<T>): Promise<T> {
  // Inside the package, where imports of other packages resolve. Git ignores folders of this name.
  mkdirSync(DIST, { recursive: true });
  const folder = mkdtempSync(join(DIST, "mutant-"));
  try {
    cpSync(SOURCES, folder, { recursive: true, filter: (path) => !path.endsWith(".test.ts") });
    for (const edit of edits) {
      const path = join(folder, edit[0]);
      writeFileSync(path, edited(readFileSync(path, "utf8"), edit));
    }
    const core = join(folder, CORE_SEEN);
    for (const file of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
      if (!file.endsWith(".ts")) continue;
      const path = join(folder, file);
      writeFileSync(path, readFileSync(path, "utf8").replaceAll(FROM_CORE, `from ${JSON.stringify(core)};`));
    }
    writeFileSync(core, CORE_SEEN_TEXT);
    const { caught } = (await import(/* @vite-ignore */ pathToFileURL(core).href)) as { caught: unknown[] };
    const result = await use(seen(await loadEngines(folder), caught));
    // Others come from the platform, such as those about damaged text.
    const isOwn = (error: unknown): error is Error =>
      (error instanceof ReferenceError || error instanceof TypeError) &&
      (error.stack?.split("\n    at ")[1]?.includes(folder) ?? false);
    const own = caught.find(isOwn);
    if (own) throw new Error(`the mutant "${name}" is broken: ${own.stack}`, { cause: own });
    return result;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The engines, which add to `caught` what they reject with. */
function seen(engines: Engines, caught: unknown[]): Engines {
  const watched = Object.entries(engines).map(([name, engine]: [string, (...args: unknown[]) => unknown]) => {
    if (name === "Fence") return [name, engine];
    const watch = (...args: unknown[]): unknown => {
      const result = engine(...args);
      if (result instanceof Promise) result.catch((error: unknown) => caught.push(error));
      return result;
    };
    return [name, watch];
  });
  return Object.fromEntries(watched) as Engines;
}

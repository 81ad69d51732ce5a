/**
 * Copies of the engines that make one mistake each: those that an audit found in the code before format 2, in the words
 * of the present code. A simulator that does not find them proves nothing.
 */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { loadEngines, SOURCES, type Engines } from "./engines.ts";
import * as families from "./schedules/families.ts";
import type { scheduleOf } from "./schedules/schedule.ts";

/** A mistake: what a file says, and what it says instead. */
export interface Mutant {
  /** The mistake. */
  readonly name: string;
  /** The schedules that find it. Default: those of every kind. */
  readonly family?: typeof scheduleOf;
  readonly edits: readonly (readonly [file: string, now: string, instead: string])[];
}

const COMMIT = "commit/commit.ts";
const SURVEY = "regions/region-survey.ts";
const HISTORY = "commit/history.ts";
const WRITE = "commit/manifest-write.ts";
const EXPIRE = "maintenance/expire-object.ts";
const BATCHES = "commit/batches.ts";
const UPLOADS = "page-uploads/handle-uploads.ts";
const CLEAN = "maintenance/gc/clean-key.ts";

/** Writes whatever is there, whichever is newer. */
const UNCONDITIONAL = [
  [WRITE, "...(etag !== undefined && { ifMatch: etag }),", ""],
  [WRITE, '...(etag === undefined && there === undefined && { ifNoneMatch: "*" as const }),', ""],
] as const;

/** One of the two guards against wrong clocks is gone. */
export const CLOCKS_UNCOMPARED = ["listing/region-clocks.ts", "  refuseSkew(readings);", ""] as const;

export const MUTANTS: readonly Mutant[] = [
  {
    name: "put says unchanged after a look at one region",
    family: families.killedAndRepeated,
    edits: [
      ["commit/commit.ts", "!holds(region, bytes));", "!holds(region, bytes)).slice(0, 0);"],
      ["objects/put-object.ts", "const { newest } = survey;", "const newest = survey.regions[0]!.record;"],
    ],
  },
  {
    name: "rm removes the chunks of every upload of the key",
    edits: [
      [
        "objects/remove-object.ts",
        "const { generation } = record;",
        `const { generation } = record;
         for (const store of context.stores) {
           const names: string[] = [];
           try {
             for await (const { name } of store.list("chunks/")) names.push(name);
           } catch {}
           await store.remove(names);
         }`,
      ],
    ],
  },
  {
    name: "a client takes an older version than it has seen",
    family: families.besideHostileRegion,
    edits: [["objects/manifests.ts", "      generationMin,\n", ""]],
  },
  {
    name: "gc deletes by the age of chunks, and lists before it looks",
    family: families.cleanedUnderReader,
    edits: [
      [CLEAN, "if (ageOf && unmarked.length > 0) {", "if (false) {"],
      [CLEAN, "} else if (uncounted.length > 0) {", "} else if (false) {"],
      [CLEAN, "own.filter(counts).every(isOld)", "areOld(objects, context)"],
      [
        CLEAN,
        "/** The chunks of each upload.",
        `function areOld(objects: readonly RegionObject[], { nowMs, olderThanMs }: GarbageSearch): boolean {
           return objects.every(({ modifiedMs }) => nowMs() - modifiedMs >= olderThanMs);
         }
         /** The chunks of each upload.`,
      ],
    ],
  },
  {
    name: "gc takes ages by its own clock, and compares it with no other",
    family: families.cleanedByWrongClock,
    edits: [
      CLOCKS_UNCOMPARED,
      [
        "listing/region-clocks.ts",
        "return regionMs + (clock.now() - readAtMs) - modifiedMs;",
        "return context.nowMs() - modifiedMs;",
      ],
    ],
  },
  {
    name: "the clock decides which of two manifests is newer",
    edits: [
      [
        SURVEY,
        "if (a.generation !== b.generation) return a.generation - b.generation;",
        "if (a.modified !== b.modified) return Date.parse(a.modified) - Date.parse(b.modified);",
      ],
      [COMMIT, "newest ? Math.max(nowMs, Date.parse(newest.modified) + 1) : nowMs", "nowMs"],
    ],
  },
  {
    name: "repair writes the manifest that it remembers over newer ones",
    edits: [
      ...UNCONDITIONAL,
      [
        "repair/repair-object.ts",
        "if (!newest || !Buffer.from(encodeManifest(newest)).equals(bytes)) return 0;",
        "if (!newest) return 0;",
      ],
      [WRITE, "if (current.record && compareAge(current.record, record) >= 0)", "if (false)"],
      ["repair/repair-object.ts", "if (copied > 0 || !isCommitted) return copied;", ""],
    ],
  },
  {
    name: "manifests are written without conditions and without claims",
    edits: [...UNCONDITIONAL, ["commit/claim.ts", '...options, ifNoneMatch: "*"', "...options"]],
  },
  {
    name: "a writer does not look again after its claim",
    edits: [[COMMIT, ": await surveyAgain(before, key, context);", ": before;"]],
  },
  {
    name: "a claim counts in less than a majority",
    edits: [
      [
        "commit/claim.ts",
        "const needed = majorityOf(context.stores);\n  const attempts",
        "const needed = majorityOf(context.stores) - 1;\n  const attempts",
      ],
    ],
  },
  {
    name: "a copy takes any generation that is free",
    edits: [
      ["commit/claim.ts", "copies && generation > newest + 1 &&", "false &&"],
      [COMMIT, "if (copies && newest !== before.generation) throw replacedMeanwhile(key);", ""],
      [COMMIT, "if (copies) throw replacedMeanwhile(key);", ""],
      [COMMIT, "copies ? newest : undefined", "undefined"],
      [COMMIT, "copies ? await isOwned(own) : !own.isExpired", "!own.isExpired"],
    ],
  },
  {
    name: "a writer copies what it saw before its first write, and not what came since",
    family: families.replacedUnderKeep,
    edits: [
      [WRITE, "const copying = onReplace(current);", "const copying = attempt === 1 ? onReplace(current) : undefined;"],
    ],
  },
  {
    name: "a writer does not wait for the copies of what it replaces",
    edits: [[HISTORY, "return copy;", "copy.catch(() => {}); return undefined;"]],
  },
  {
    name: "a copy counts in less than a majority",
    family: families.replacedUnderKeep,
    edits: [[HISTORY, "const needed = majorityOf(context.stores);", "const needed = majorityOf(context.stores) - 1;"]],
  },
  {
    name: "a restore takes any generation that is free",
    family: families.restoredBesideWriters,
    edits: [
      [
        "objects/put-object.ts",
        "const copies = object.onlyIf !== undefined || object.survey !== undefined;",
        "const copies = false;",
      ],
    ],
  },
  {
    name: "rm removes the chunks of a version that is kept",
    family: families.replacedUnderKeep,
    edits: [["objects/remove-object.ts", "const isKept = keepMsOf(key, context.config) > 0;", "const isKept = false;"]],
  },
  {
    name: "gc does not look at the claims of writers that run",
    family: families.cleanedUnderWriter,
    edits: [[CLEAN, "!writers.uploads.has(upload)", "true"]],
  },
  {
    name: "gc looks at the claims after the manifests",
    family: families.cleanedUnderWriter,
    edits: [
      ["maintenance/gc/key-view.ts", "    const writers = await writersOf(group, context);\n", ""],
      [
        "maintenance/gc/key-view.ts",
        "    return { group, regions, writers,",
        "    const writers = await writersOf(group, context);\n    return { group, regions, writers,",
      ],
    ],
  },
  {
    name: "a writer removes claims that it has not seen",
    family: families.killedBesideHostileRegion,
    edits: [
      [
        COMMIT,
        "leases.filter((one) => one !== lease).map(({ generation }) => generation)",
        "range(newest + 1, sealed.record.generation)",
      ],
      [
        COMMIT,
        "/** The time of a record",
        `function range(first: number, last: number): number[] {
           return Array.from({ length: last - first + 1 }, (_, index) => first + index);
         }
         /** The time of a record`,
      ],
      [
        "commit/claim-removals.ts",
        "for (const generation of generations) this.#names.push(claimName(key, generation));",
        "this.#names.push(...generations.map((generation) => claimName(key, generation)));",
      ],
    ],
  },
  {
    name: "gc does not look at the history",
    family: families.replacedUnderKeep,
    edits: [[CLEAN, "new Set([...current, ...history.uploads]);", "new Set(current);"]],
  },
  {
    name: "gc ends the time of a copy a day early",
    family: families.replacedUnderKeep,
    edits: [["maintenance/gc/key-view.ts", "ageOf(copy) < keepMs", "ageOf(copy) < keepMs - 86_400_000"]],
  },
  {
    name: "a client takes a manifest that no trusted key has signed",
    family: families.besideHostileRegion,
    edits: [
      ["objects/manifests.ts", "import { isTombstone,", "import { acceptUnsigned, isTombstone,"],
      ["objects/manifests.ts", "      trust,\n", "      trust: acceptUnsigned,\n"],
    ],
  },
  {
    name: "expire removes what another writer has put since it was listed",
    family: families.expiredBesideWriters,
    edits: [[EXPIRE, "await removeObject(key, context, { onlyIf, survey });", "await removeObject(key, context);"]],
  },
  {
    name: "expire goes by the oldest time that a region lists",
    family: families.expiredBesideWriters,
    edits: [["listing/region-clocks.ts", "[needed - 1] ?? 0", "[0] ?? 0"], CLOCKS_UNCOMPARED],
  },
  {
    name: "a chunk under the former name of a region counts as lost",
    family: families.renamedBesideWriters,
    edits: [["buckets/region-names.ts", "name === wanted || formerly === wanted", "name === wanted"]],
  },
  {
    name: "a strong read takes the first answer",
    family: families.besideRegionsThatComeAndGo,
    edits: [["objects/manifests.ts", 'if (how.consistency === "eventual") return', "return"]],
  },
  {
    name: "what a writer cannot use counts as nothing",
    family: families.rotatedBesideWriters,
    edits: [[SURVEY, "if (usable >= needed) return newest;", "return newest;"]],
  },
  {
    name: "a writer does not look which keys are in force",
    family: families.rotatedBesideWriters,
    edits: [
      [COMMIT, "await context.fence?.check(record, input.isContent);", ""],
      [COMMIT, "await context.fence?.check(sealed.record, input.isContent).catch(", "await Promise.resolve().catch("],
    ],
  },
  {
    name: "a batch does not look for those of others",
    family: families.manyByBatches,
    edits: [
      [BATCHES, "others.every(({ entries }) => entries.get(key)?.generation !== generation)", "others.length >= 0"],
    ],
  },
  {
    name: "a batch counts in less than a majority",
    family: families.manyByBatches,
    edits: [
      [BATCHES, "enough: majorityOf(context.stores), isGood: () => true };", "enough: 1, isGood: () => true };"],
      [
        BATCHES,
        "const needed = majorityOf(context.stores);\n  if (holders.length < needed)",
        "const needed = 1;\n  if (holders.length < needed)",
      ],
    ],
  },
  {
    name: "a batch looks for those of others before it is stored",
    family: families.manyByBatches,
    edits: [
      [BATCHES, "const holders = await storeBatch(name, entries, context);", ""],
      [
        BATCHES,
        "const isOurs = await unclaimed(name, entries, holders, context);",
        `const isOurs = await unclaimed("", entries, context.stores, context);
         const holders = await storeBatch(name, entries, context);
         if (holders.length < needed) return undefined;`,
      ],
      [BATCHES, "if (sound.length < needed) return undefined;", ""],
      [
        BATCHES,
        "const sound = listings.filter((batches) => batches.some((batch) => batch.name === name));",
        "const sound = listings;",
      ],
    ],
  },
  {
    name: "a batch does not look at manifests after its claim",
    family: families.manyByBatches,
    edits: [
      [BATCHES, "listings.every((found) => found.get(manifestName(key)) === etags.get(key))", "listings.length > 0"],
    ],
  },
  {
    name: "a batch takes the next generation, as its own claim does",
    family: families.manyByBatches,
    edits: [["commit/generations.ts", "(Math.floor(passed / BATCH_STEP) + 1) * BATCH_STEP", "generation + 1"]],
  },
  {
    name: "a page's upload goes by a claim that another writer has won",
    family: families.begunAtOneMoment,
    edits: [["commit/claim.ts", "own.toSorted((a, b) => b.generation - a.generation)[0]", "own[0]"]],
  },
  {
    name: "a token may begin its upload twice at one moment",
    family: families.uploadedBesideWriters,
    edits: [[UPLOADS, "if ((await findBegun(key, upload, context))?.isTwice !== false) throw usedUp(key);", ""]],
  },
  {
    name: "a page that commits again hears that all regions have it",
    family: families.uploadedBesideWriters,
    edits: [[UPLOADS, "compareAge(record, newest) !== 0);", "compareAge(record, newest) !== 0).slice(0, 0);"]],
  },
  {
    name: "a manifest is renamed over what another writer has put meanwhile",
    family: families.renamedBesideWriters,
    edits: [[COMMIT, "copies: true, seal", "seal"]],
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
    for (const [file, now, instead] of edits) {
      const path = join(folder, file);
      const text = readFileSync(path, "utf8");
      if (!text.includes(now)) throw new Error(`mutant "${name}": ${file} no longer says ${JSON.stringify(now)}`);
      writeFileSync(path, text.replace(now, instead));
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

/**
 * Copies of the engines that make one mistake each: those that an audit found in the code before format 2, in the words
 * of the present code. A simulator that does not find them proves nothing.
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { loadEngines, SOURCES, type Engines } from "./engines.ts";

/** A mistake: what a file says, and what it says instead. */
export interface Mutant {
  /** What the mistake is. */
  readonly name: string;
  readonly edits: readonly (readonly [file: string, now: string, instead: string])[];
}

const COMMIT = "lib/objects/commit/commit.ts";
const SURVEY = "lib/objects/commit/region-survey.ts";
const WRITE = "lib/objects/commit/manifest-write.ts";

/** Writes whatever is there, whichever is newer. */
const UNCONDITIONAL = [
  [WRITE, "...(etag !== undefined && { ifMatch: etag }),", ""],
  [WRITE, '...(etag === undefined && there === undefined && { ifNoneMatch: "*" as const }),', ""],
] as const;

/** One of the two guards against wrong clocks is gone. */
export const CLOCKS_UNCOMPARED = ["commands/gc/region-clocks.ts", "  refuseSkew(readings);", ""] as const;

export const MUTANTS: readonly Mutant[] = [
  {
    name: "put says unchanged after a look at one region",
    edits: [
      ["lib/objects/put-object.ts", "!holds(region, bytes));", "!holds(region, bytes)).slice(0, 0);"],
      ["lib/objects/put-object.ts", "const { newest } = survey;", "const newest = survey.regions[0]!.record;"],
    ],
  },
  {
    name: "rm removes the chunks of every upload of the key",
    edits: [
      [
        "lib/objects/remove-object.ts",
        "const removal = await removeChunks(manifests, context);",
        `const removal = await removeChunks(manifests, context);
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
    edits: [["lib/objects/manifests.ts", "      generationMin,\n", ""]],
  },
  {
    name: "gc deletes by the age of chunks, and lists before it looks",
    edits: [
      ["commands/gc/collect-garbage.ts", "if (ageOf && unmarked.length > 0) {", "if (false) {"],
      ["commands/gc/collect-garbage.ts", "} else if (uncounted.length > 0) {", "} else if (false) {"],
      ["commands/gc/collect-garbage.ts", "own.filter(counts).every(isOld)", "areOld(objects, search)"],
      [
        "commands/gc/collect-garbage.ts",
        "/** The chunks of each upload.",
        `function areOld(objects: readonly PlacedObject[], { nowMs, olderThanMs }: GarbageSearch): boolean {
           return objects.every(({ modifiedMs }) => nowMs() - modifiedMs >= olderThanMs);
         }
         /** The chunks of each upload.`,
      ],
    ],
  },
  {
    name: "gc takes ages by its own clock, and compares it with no other",
    edits: [
      CLOCKS_UNCOMPARED,
      [
        "commands/gc/region-clocks.ts",
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
        "return a.generation - b.generation || Date.parse(a.modified) - Date.parse(b.modified);",
        "return Date.parse(a.modified) - Date.parse(b.modified);",
      ],
      [COMMIT, "newest ? Math.max(nowMs, Date.parse(newest.modified) + 1) : nowMs", "nowMs"],
    ],
  },
  {
    name: "repair writes the manifest that it remembers over newer ones",
    edits: [
      ...UNCONDITIONAL,
      [
        "commands/repair/repair-object.ts",
        "if (!newest || !Buffer.from(encodeManifest(newest)).equals(bytes)) return 0;",
        "if (!newest) return 0;",
      ],
      [WRITE, "if (current.record && compareAge(current.record, record) >= 0)", "if (false)"],
      ["commands/repair/repair-object.ts", "if (copied > 0 || !isCommitted) return copied;", ""],
    ],
  },
  {
    name: "manifests are written without conditions and without claims",
    edits: [...UNCONDITIONAL, ["lib/objects/commit/claim.ts", '...options, ifNoneMatch: "*"', "...options"]],
  },
  {
    name: "a writer does not look again after its claim",
    edits: [[COMMIT, ": await surveyAgain(before, key, context);", ": before;"]],
  },
  {
    name: "a claim counts in less than a majority",
    edits: [
      [
        "lib/objects/commit/claim.ts",
        "const needed = majorityOf(context.stores);\n  const attempts",
        "const needed = majorityOf(context.stores) - 1;\n  const attempts",
      ],
    ],
  },
  {
    name: "a copy takes any generation that is free",
    edits: [
      ["lib/objects/commit/claim.ts", "attempt > 1 && copies &&", "false &&"],
      [COMMIT, "if (copies && newest !== (before.newest?.generation ?? 0)) throw replacedMeanwhile(key);", ""],
      [COMMIT, "if (copies) throw replacedMeanwhile(key);", ""],
    ],
  },
];

const DIST = fileURLToPath(new URL("../../dist", import.meta.url));

/** Loads the engines with a mistake, and passes them to `use`. */
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
    return await use(await loadEngines(folder));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * `agarose versions`: which versions of an object the regions hold.
 */
import { AgaroseError, parseKey, systemClock } from "@agarose/core";
import { READING, withContext } from "../../lib/context.ts";
import { Breaker } from "@agarose/storage/regions/ask-regions";
import { surveyRegions } from "@agarose/storage/regions/region-survey";
import { keptVersions } from "@agarose/storage/history/kept-versions";
import { EXIT_FAILED, EXIT_OK, formatBytes, logLine, printable, printResult } from "../../ui/output.ts";
import { listVersions, type VersionEntry } from "./list-versions.ts";
import type { Values } from "../../command.ts";
import type { args } from "./index.ts";

/** Runs `agarose versions KEY`. The command exits with 1 when a region could not say what it holds. */
export async function versions({ key, ...options }: Values<typeof args>): Promise<number> {
  parseKey(key);
  return withContext(options, READING, async (command) => {
    const context = { ...command, clock: systemClock, breaker: new Breaker(systemClock) };
    const { regions } = await surveyRegions(key, context);
    const unknown = regions.filter(({ state }) => state !== "sound" && state !== "absent");
    const { versions: kept, problems } = await keptVersions(key, context.stores.length, context);
    const found = await listVersions(regions, kept, context);
    if (found.length + unknown.length + problems.length === 0) throw notFound(key);
    printResult(
      context.json,
      { key, versions: found },
      found.map((entry) => lineOf(entry, regions.length)),
    );
    for (const { store, problem } of unknown) {
      logLine(`warning: ${store.region.name} may hold another version: ${printable(problem?.message ?? "")}`);
    }
    for (const { region, problem } of problems) {
      logLine(`warning: ${region} may keep another version: ${printable(problem.message)}`);
    }
    const isPartial = unknown.length + problems.length > 0 || found.some(({ state }) => state === "unchecked");
    return isPartial ? EXIT_FAILED : EXIT_OK;
  });
}

function lineOf(entry: VersionEntry, regions: number): string {
  const { generation, modified, state, bytes, k, m, chunksListed, chunks, keptUntil } = entry;
  const what = bytes === undefined ? "" : `  ${formatBytes(bytes)}  ${k}+${m}  ${chunksListed} of ${chunks} chunks`;
  const held = keptUntil === undefined || entry.regions.length > 0;
  const where = [
    ...(held ? [`in ${entry.regions.length} of ${regions} regions`] : []),
    ...(keptUntil === undefined ? [] : [`kept until ${keptUntil}`]),
  ];
  return `${generation}  ${modified}  ${state.padEnd(10)}${what}  ${where.join(", ")}`;
}

function notFound(key: string): AgaroseError {
  const message = `no region holds a manifest of ${JSON.stringify(key)}: check the key with \`agarose ls\``;
  return new AgaroseError("OBJECT_NOT_FOUND", message, { key });
}

/** `agarose versions`: which versions of an object the regions hold. */
import { AgaroseError } from "@agarose/core";
import { parseKey } from "@agarose/core/format";
import { READING, withContext } from "../../lib/context.ts";
import { EXIT_FAILED, EXIT_OK, formatBytes, logLine, printable } from "../../ui/output.ts";
import { printResults } from "../../ui/report-stream.ts";
import { listVersions, type VersionEntry } from "@agarose/storage/history/list-versions";
import type { Values } from "../../command.ts";
import type { args } from "./index.ts";

/** Runs `agarose versions KEY`. The command exits with 1 when a region could not say what it holds. */
export async function versions({ key, ...options }: Values<typeof args>): Promise<number> {
  parseKey(key);
  return withContext(options, READING, async (context) => {
    const { versions: found, unknown, historyProblems: problems } = await listVersions(key, context);
    if (found.length + unknown.length + problems.length === 0) throw notFound(key);
    const lines = found.map((entry) => lineOf(entry, context.stores.length));
    await printResults(options, found, { key }, lines, "versions");
    for (const { region, problem } of unknown) {
      logLine(`warning: ${region} may hold another version: ${printable(problem)}`);
    }
    for (const { region, problem } of problems) {
      logLine(`warning: ${region} may keep another version: ${printable(problem)}`);
    }
    const isPartial = unknown.length + problems.length > 0 || found.some(({ state }) => state === "unchecked");
    return isPartial ? EXIT_FAILED : EXIT_OK;
  });
}

function lineOf(entry: VersionEntry, regions: number): string {
  const { generation, modified, state, bytes, k, m, chunksListed, chunks, keptUntil } = entry;
  const code = chunks === 0 ? "inline" : `${k}+${m}  ${chunksListed} of ${chunks} chunks`;
  const what = bytes === undefined ? "" : `  ${formatBytes(bytes)}  ${code}`;
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

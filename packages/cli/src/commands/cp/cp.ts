/**
 * `agarose cp` and `agarose mv`: an object is read, verified, and stored under another key, which may have another code
 * or secret. S3 has no request that does this across regions.
 */
import { AgaroseError } from "@agarose/core";
import { parseKey } from "@agarose/core/format";
import { Deployment, type ObjectInfo } from "@agarose/storage";
import type { Values } from "../../command.ts";
import { withContext, WRITING } from "../../lib/context.ts";
import { purgePops, warnOfUnpurged } from "../../lib/purge-pops.ts";
import { formatBytes, logLine, printable, printResult } from "../../ui/output.ts";
import type { args } from "./index.ts";

/**
 * Runs `agarose cp FROM TO` or `agarose mv FROM TO`. An object that somebody stores at FROM during the move stays
 * there, and the command fails.
 */
export async function transfer(
  outcome: "copied" | "moved",
  { from, to: given, ...options }: Values<typeof args>,
): Promise<void> {
  const to = given.endsWith("/") ? `${given}${from.slice(from.lastIndexOf("/") + 1)}` : given;
  for (const key of [from, to]) parseKey(key);
  if (from === to) throw new AgaroseError("USAGE", `${JSON.stringify(to)} is the object itself: give another key`);
  await withContext(options, WRITING, async (context) => {
    const deployment = new Deployment(context);
    if (options.dryRun) {
      const { bytes, version } = await deployment.stat(from);
      const line = `would be ${outcome}  ${printable(from)}  ${printable(to)}  ${formatBytes(bytes)}`;
      printResult(context, { from, key: to, outcome: "due", bytes, version, dryRun: true }, [line]);
      return;
    }
    const { copied, stored } = await deployment.copy(from, to);
    if (outcome === "moved") await removeOld(copied, deployment);
    const replaced = [...(stored.generation > 1 ? [to] : []), ...(outcome === "moved" ? [from] : [])];
    const pops = options.purge ? await purgePops(context.config, replaced) : [];
    const line = `${outcome}  ${printable(from)}  ${printable(to)}  ${formatBytes(stored.bytes)}`;
    const purged = pops.length > 0 ? { pops } : {};
    printResult(context, { ...stored, from, outcome, ...purged }, [line]);
    if (stored.missing.length > 0) logLine(`warning: ${printable(to)} lacks chunks: run \`agarose repair\` later`);
    warnOfUnpurged(pops);
  });
}

/** Removes the object that was copied, and no other that has taken its place. */
async function removeOld(object: ObjectInfo, deployment: Deployment): Promise<void> {
  const { key } = object;
  const removed = await deployment.remove(key, object);
  for (const { region, problem } of removed?.regionsWithoutTombstone ?? []) {
    logLine(`warning: ${region} still has ${printable(key)}: ${printable(problem)}; \`agarose repair\` removes it`);
  }
}

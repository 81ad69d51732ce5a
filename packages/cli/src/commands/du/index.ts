/**
 * `agarose du`: what objects take in the buckets, and what that costs.
 */
import type { Command } from "commander";
import { systemClock } from "@agarose/core";
import type { Config } from "../../lib/config.ts";
import { READING, withContext, type GlobalOptions } from "../../lib/context.ts";
import { Breaker } from "../../lib/objects/commit/ask-regions.ts";
import { EXIT_FAILED, EXIT_OK, formatBytes, formatCount, logLine, printable, printResult } from "../../lib/output.ts";
import { keyGroups } from "../../lib/walk/key-groups.ts";
import { mapOrdered } from "../../lib/walk/ordered-pool.ts";
import { addBytes, measureKey, NO_BYTES, type KeyUse, type RegionBytes } from "./measure-key.ts";

interface DuOptions extends GlobalOptions {
  readonly cost?: boolean;
}

interface RegionUse extends RegionBytes {
  readonly region: string;
  /** All of it. */
  readonly bytes: number;
  /** With `--cost`; absent when the region has no price. */
  readonly usdPerMonth?: number;
  /** Why it could not be listed. */
  readonly problem?: string;
}

interface Use {
  readonly objects: number;
  /** Of the objects as readers see them. */
  readonly objectBytes: number;
  readonly storedBytes: number;
  readonly orphanedBytes: number;
  /** Stored bytes for each byte of an object; absent when there is none. */
  readonly overhead?: number;
  readonly usdPerMonth?: number;
  readonly orphanedUsdPerMonth?: number;
  readonly regions: readonly RegionUse[];
}

const KINDS = ["chunks", "manifests", "claims", "marks", "repairs"] as const;
const KEYS_AT_A_TIME = 32;
const GB = 1e9;

/** Adds `agarose du [PREFIX]`. The command exits with 1 when a region or a manifest could not be read. */
export function register(program: Command): void {
  program
    .command("du")
    .description("what the keys that begin with a prefix take in each region, and what of it no manifest names")
    .argument("[prefix]", "all keys when left out", "")
    .option("--cost", "also dollars a month, by storageUsdPerGbMonth of each region in the configuration")
    .action(async (prefix: string, _options: unknown, command: Command) => {
      process.exitCode = await du(prefix, command.optsWithGlobals<DuOptions>());
    });
}

async function du(prefix: string, options: DuOptions): Promise<number> {
  return withContext(options, READING, async (command) => {
    const context = { ...command, breaker: new Breaker(systemClock) };
    const problems = new Map<string, string>();
    const groups = keyGroups(context.stores, prefix, context.signal, {
      kinds: KINDS,
      onFailure: ({ region: { name } }, error) => {
        context.breaker.open(name);
        problems.set(name, error.message);
      },
    });
    const totals = new Map<string, RegionBytes>();
    let [objects, objectBytes, unknown] = [0, 0, 0];
    const measured = mapOrdered(groups, KEYS_AT_A_TIME, async (group) => {
      const stores = context.stores.filter(({ region }) => !problems.has(region.name));
      return { key: group.key, ...(await measureKey(group, { ...context, stores })) };
    });
    for await (const use of measured) {
      if (use.objectBytes !== undefined) objects++;
      objectBytes += use.objectBytes ?? 0;
      addTo(totals, use);
      if (use.problem === undefined) continue;
      if (unknown++ === 0) logLine(`warning: chunks of ${printable(use.key)} count as named: ${use.problem}`);
    }
    const regions = context.config.regions.map((region) => {
      const problem = problems.get(region.name);
      return { ...regionUse(region, totals.get(region.name) ?? NO_BYTES, options), ...(problem && { problem }) };
    });
    const use = useOf({ objects, objectBytes, regions });
    printResult(context.json, { ...use, unknown }, linesOf(use, options));
    for (const [region, problem] of problems) logLine(`warning: ${region} is missing in these sums: ${problem}`);
    if (unknown > 1) logLine(`warning: so do those of ${formatCount(unknown - 1, "other key")}`);
    warnOfPrices(regions, options);
    return problems.size + unknown > 0 ? EXIT_FAILED : EXIT_OK;
  });
}

function addTo(totals: Map<string, RegionBytes>, { regions }: KeyUse): void {
  for (const [name, bytes] of regions) totals.set(name, addBytes(totals.get(name) ?? NO_BYTES, bytes));
}

function regionUse(
  { name, storageUsdPerGbMonth }: Config["regions"][number],
  use: RegionBytes,
  { cost = false }: DuOptions,
): RegionUse {
  const bytes = use.chunks + use.manifests + use.orphaned + use.other;
  const usdPerMonth = storageUsdPerGbMonth === undefined ? undefined : (bytes / GB) * storageUsdPerGbMonth;
  return { region: name, ...use, bytes, ...(cost && usdPerMonth !== undefined && { usdPerMonth }) };
}

function useOf({ objects, objectBytes, regions }: Pick<Use, "objects" | "objectBytes" | "regions">): Use {
  const sum = (of: (region: RegionUse) => number): number => regions.reduce((all, region) => all + of(region), 0);
  const storedBytes = sum(({ bytes }) => bytes);
  const isPriced = regions.some(({ usdPerMonth }) => usdPerMonth !== undefined);
  const orphanedUsd = ({ usdPerMonth = 0, bytes, orphaned }: RegionUse): number =>
    bytes === 0 ? 0 : (usdPerMonth * orphaned) / bytes;
  return {
    objects,
    objectBytes,
    storedBytes,
    orphanedBytes: sum(({ orphaned }) => orphaned),
    ...(objectBytes > 0 && { overhead: storedBytes / objectBytes }),
    ...(isPriced && { usdPerMonth: sum(({ usdPerMonth = 0 }) => usdPerMonth), orphanedUsdPerMonth: sum(orphanedUsd) }),
    regions,
  };
}

function linesOf(use: Use, { cost = false }: DuOptions): string[] {
  const header = ["region", "chunks", "manifests", "orphaned", "other", "all", ...(cost ? ["$/month"] : [])];
  const rows = use.regions.map(({ region, chunks, manifests, orphaned, other, bytes, usdPerMonth }) => [
    region,
    ...[chunks, manifests, orphaned, other, bytes].map(formatBytes),
    ...(cost ? [usdPerMonth === undefined ? "-" : usdPerMonth.toFixed(4)] : []),
  ]);
  const widths = header.map((_, i) => Math.max(...[header, ...rows].map((row) => row[i]!.length)));
  const table = [header, ...rows].map((row) =>
    row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join("  "),
  );
  const { objects, objectBytes, storedBytes, overhead, orphanedBytes, usdPerMonth, orphanedUsdPerMonth } = use;
  const times = overhead === undefined ? "" : `, ${overhead.toFixed(2)} for each byte`;
  const stored = `${formatCount(objects, "object")} of ${formatBytes(objectBytes)}: ${formatBytes(storedBytes)} stored${times}`;
  const garbage = orphanedBytes > 0 ? [`${formatBytes(orphanedBytes)} are orphaned: \`agarose gc\` removes them`] : [];
  const dollars =
    usdPerMonth === undefined
      ? []
      : [`$${usdPerMonth.toFixed(4)} a month, of which $${orphanedUsdPerMonth!.toFixed(4)} for orphaned bytes`];
  return [...table, stored, ...garbage, ...dollars];
}

function warnOfPrices(regions: readonly RegionUse[], { cost = false }: DuOptions): void {
  const without = regions.filter(({ usdPerMonth }) => usdPerMonth === undefined).map(({ region }) => region);
  if (!cost || without.length === 0) return;
  logLine(`warning: no price of ${without.join(", ")}: add "storageUsdPerGbMonth" to these regions`);
}

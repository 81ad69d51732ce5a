/** `agarose du`: what objects take in the buckets, and what that costs. */
import { READING, withContext } from "../../lib/context.ts";
import { EXIT_FAILED, EXIT_OK, formatBytes, formatCount, logLine, printable, tableLines } from "../../ui/output.ts";
import { printResults } from "../../ui/report-stream.ts";
import { measureUse, type RegionUse, type Use } from "@agarose/storage/maintenance/measure-use";
import type { Values } from "../../command.ts";
import type { args } from "./index.ts";

type Options = Values<typeof args>;

/** Runs `agarose du [PREFIX]`. The command exits with 1 when a region or a manifest could not be read. */
export async function du({ prefix, ...options }: Options): Promise<number> {
  return withContext(options, READING, async (context) => {
    const { use, unknown, firstUnknown, problems } = await measureUse(prefix, options, context);
    if (firstUnknown) {
      logLine(`warning: chunks of ${printable(firstUnknown.key)} count as named: ${firstUnknown.problem}`);
    }
    const { regions, ...sums } = use;
    await printResults(options, regions, { ...sums, unknown }, linesOf(use, options), "regions");
    for (const [region, problem] of problems) logLine(`warning: ${region} is missing in these sums: ${problem}`);
    if (unknown > 1) logLine(`warning: so do those of ${formatCount(unknown - 1, "other key")}`);
    warnOfPrices(regions, options);
    return problems.size + unknown > 0 ? EXIT_FAILED : EXIT_OK;
  });
}

function linesOf(use: Use, { cost = false }: Pick<Options, "cost">): string[] {
  const header = ["region", "chunks", "manifests", "kept", "orphaned", "other", "all", ...(cost ? ["$/month"] : [])];
  const rows = use.regions.map(({ region, chunks, manifests, kept, orphaned, other, bytes, usdPerMonth }) => [
    region,
    ...[chunks, manifests, kept, orphaned, other, bytes].map(formatBytes),
    ...(cost ? [usdPerMonth === undefined ? "-" : usdPerMonth.toFixed(4)] : []),
  ]);
  const table = tableLines([header, ...rows], (column) => column > 0);
  const { objects, objectBytes, storedBytes, overhead, keptBytes, orphanedBytes, usdPerMonth, orphanedUsdPerMonth } =
    use;
  const times = overhead === undefined ? "" : `, ${overhead.toFixed(2)} for each byte`;
  const stored = `${formatCount(objects, "object")} of ${formatBytes(objectBytes)}: ${formatBytes(storedBytes)} stored${times}`;
  const history = keptBytes > 0 ? [`${formatBytes(keptBytes)} are of replaced versions that \`keep\` keeps`] : [];
  const garbage = orphanedBytes > 0 ? [`${formatBytes(orphanedBytes)} are orphaned: \`agarose gc\` removes them`] : [];
  const dollars =
    usdPerMonth === undefined
      ? []
      : [`$${usdPerMonth.toFixed(4)} a month, of which $${orphanedUsdPerMonth!.toFixed(4)} for orphaned bytes`];
  return [...table, stored, ...history, ...garbage, ...dollars];
}

function warnOfPrices(regions: readonly RegionUse[], { cost = false }: Pick<Options, "cost">): void {
  const without = regions.filter(({ usdPerMonth }) => usdPerMonth === undefined).map(({ region }) => region);
  if (!cost || without.length === 0) return;
  logLine(`warning: no price of ${without.join(", ")}: add "storageUsdPerGbMonth" to these regions`);
}

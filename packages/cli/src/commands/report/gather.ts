/**
 * The facts of a report: one walk over the listings of all regions, and one question to each PoP.
 */
import { adminTokenOf } from "@agarose/storage/pops/admin-token";
import type { CommandContext } from "../../lib/context.ts";
import { verifyObject, type ObjectVerdict } from "@agarose/storage/objects/verify-object";
import { stateOf } from "@agarose/storage/objects/verdicts";
import { formatBytes, formatCount, printable } from "../../ui/output.ts";
import { quickVerdict } from "@agarose/storage/listing/listed-verdict";
import { measureUse, type Use } from "../du/measure-use.ts";
import { popReport, type PopReport } from "../status/pop-report.ts";

/** What a report shows. */
export interface Facts {
  /** When it was made, as ISO 8601. */
  readonly at: string;
  readonly prefix: string;
  readonly use: Use;
  /** Objects by chunks beyond k, fewest first. Below 0 they cannot be read. */
  readonly redundancy: readonly { readonly beyondK: number; readonly objects: number }[];
  /** The objects that are nearest to being lost; at most 20. */
  readonly endangered: readonly Endangered[];
  readonly pops: readonly PopReport[];
  /** What somebody should look at, in sentences. */
  readonly attention: readonly string[];
}

/** An object that is not as it should be. */
export interface Endangered {
  readonly key: string;
  readonly state: string;
  readonly beyondK: number;
  readonly chunks: number;
  readonly chunksSound: number;
}

const ENDANGERED_MAX = 20;
const POP_TIMEOUT_MS = 10_000;

/** Gathers all facts by listings: it reads no chunk. Rejects when no region answers. */
export async function gather(prefix: string, context: CommandContext): Promise<Facts> {
  const counts = new Map<number, number>();
  let endangered: Endangered[] = [];
  const note = (verdict: ObjectVerdict): void => {
    const { key, beyondK, chunks, chunksSound } = verdict;
    counts.set(beyondK, (counts.get(beyondK) ?? 0) + 1);
    const state = stateOf(verdict);
    if (state === "sound" || state === "unchecked") return;
    endangered.push({ key, state, beyondK, chunks, chunksSound });
    if (endangered.length > 2 * ENDANGERED_MAX) endangered = nearestToLoss(endangered);
  };
  const [{ use, unknown, problems }, pops] = await Promise.all([
    measureUse(prefix, { cost: true }, context, async (group, { objectBytes }) => {
      if (objectBytes === undefined) return;
      note((await quickVerdict(group, context)) ?? (await verifyObject(group.key, context, true)));
    }),
    Promise.all(context.config.pops.map((pop) => askPop(pop))),
  ]);
  const redundancy = [...counts]
    .map(([beyondK, objects]) => ({ beyondK, objects }))
    .toSorted((a, b) => a.beyondK - b.beyondK);
  const worst = nearestToLoss(endangered);
  const attention = [
    ...[...problems].map(([region, problem]) => `${region} is missing in this report: ${problem}`),
    ...(unknown > 0 ? [`${formatCount(unknown, "key")} could not be measured in full`] : []),
    ...redundancy.flatMap(({ beyondK, objects }) => endangeredPoint(beyondK, objects)),
    ...(worst.length > 0 ? [`the first object to repair is ${printable(worst[0]!.key)}: run agarose scrub`] : []),
    ...(use.orphanedBytes > 0 ? [`${formatBytes(use.orphanedBytes)} are orphaned: agarose gc removes them`] : []),
    ...pops.flatMap(({ name, problems: own }) => own.map((problem) => `${name}: ${problem}`)),
  ];
  return { at: new Date().toISOString(), prefix, use, redundancy, endangered: worst, pops, attention };
}

function endangeredPoint(beyondK: number, objects: number): string[] {
  if (beyondK > 0) return [];
  const what = formatCount(objects, "object");
  return [beyondK < 0 ? `${what} cannot be read by what the regions list` : `${what} cannot lose another chunk`];
}

function nearestToLoss(found: readonly Endangered[]): Endangered[] {
  return found.toSorted((a, b) => a.beyondK - b.beyondK).slice(0, ENDANGERED_MAX);
}

function askPop(pop: { readonly name: string; readonly url: string }): Promise<PopReport> {
  return popReport(pop, { fetch, token: adminTokenOf(pop.name), nowMs: Date.now(), timeoutMs: POP_TIMEOUT_MS });
}

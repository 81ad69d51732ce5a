/** Verdicts and outcomes of repairs, in lines for people. */
import { LEAF_LIST } from "@agarose/core/format";
import {
  hasKeptDamage,
  isDamage,
  isManifestDamage,
  stateOf,
  type ChunkDamage,
  type KeptVerdict,
  type ObjectVerdict,
  type UnreachableRegion,
} from "@agarose/storage/objects/verify-object";
import type { RepairOutcome } from "@agarose/storage/repair/repair-outcome";
import { failedLine, formatCount, itemLine, printable } from "./output.ts";

const STRIPES_SHOWN_MAX = 8;

/** A verdict for people: the state of the object, then what is wrong with it. Unreachable regions are omitted. */
export function verdictLines(verdict: ObjectVerdict): string[] {
  const { key, chunks, chunksSound, manifests, damage, kept = [] } = verdict;
  const whole = stateOf(verdict);
  return [
    itemLine(whole, key, whole === "sound" && chunks === 0 ? "inline" : `${chunksSound} of ${chunks} chunks`),
    ...manifests.filter(isManifestDamage).map(({ region, state, problem }) => {
      return `  manifest in ${region}: ${state}${problem ? ` (${printable(problem)})` : ""}`;
    }),
    ...damageLines(damage),
    ...kept.filter((version) => hasKeptDamage({ kept: [version] })).flatMap(keptLines),
  ];
}

function damageLines(damage: readonly ChunkDamage[]): string[] {
  return damage.filter(isDamage).map(({ chunk, region, code, stripes }) => {
    if (chunk === LEAF_LIST) return `  leaf list in ${region}: ${code}`;
    const more = stripes.length > STRIPES_SHOWN_MAX ? ", …" : "";
    return `  chunk ${chunk} in ${region}: ${code} (stripes ${stripes.slice(0, STRIPES_SHOWN_MAX).join(", ")}${more})`;
  });
}

function keptLines({ generation, chunks, chunksSound, damage }: KeptVerdict): string[] {
  return [`  kept generation ${generation}: ${chunksSound} of ${chunks} chunks`, ...damageLines(damage)];
}

/** A region that did not answer, for people. */
export function unreachableLine({ region, problem }: UnreachableRegion): string {
  return `unreachable  ${region}  ${printable(problem)}`;
}

/** An outcome for people. */
export function repairLines(object: RepairOutcome): string[] {
  const { key } = object;
  if (object.outcome === "failed") return [failedLine(key, object.error)];
  if (object.outcome === "damaged") return verdictLines(object.after);
  const { outcome, chunksWritten, manifestsWritten } = object;
  const written = `${formatCount(chunksWritten, "chunk")} and ${formatCount(manifestsWritten, "manifest")} written`;
  return [itemLine(outcome, key, outcome === "sound" ? "nothing to repair" : written)];
}

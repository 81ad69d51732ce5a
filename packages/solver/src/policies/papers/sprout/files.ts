/** The files that Sprout's optimiser plans for. */
import { SolverError } from "../../../errors.ts";

/** Files with their request rates and the places of their chunks. */
export interface SproutFile {
  /** Reads per second, or in any other unit that all files share; finite and >= 0. */
  readonly readsPerSecond: number;
  /** Chunks that a read needs: 1 up to the number of `servers`. */
  readonly k: number;
  /** The servers that store a chunk of it, one each: different indices into the list of servers. */
  readonly servers: readonly number[];
  /** Weight of one cached chunk in the unit of the capacity: an integer >= 1. Default 1. */
  readonly chunkWeight?: number;
}

/** Throws SCENARIO_INVALID for a capacity or a file out of range; `servers` is how many servers there are. */
export function checkFiles(files: readonly SproutFile[], servers: number, capacity: number): void {
  if (!Number.isSafeInteger(capacity) || capacity < 0) {
    throw new SolverError("SCENARIO_INVALID", `capacity must be an integer >= 0, got ${capacity}`, { capacity });
  }
  for (const [file, { k, servers: own, readsPerSecond, chunkWeight = 1 }] of files.entries()) {
    const isSound = Number.isInteger(k) && k >= 1 && k <= own.length && new Set(own).size === own.length;
    const isKnown = own.every((server) => Number.isInteger(server) && server >= 0 && server < servers);
    const isRate = Number.isFinite(readsPerSecond) && readsPerSecond >= 0;
    if (isSound && isKnown && isRate && Number.isSafeInteger(chunkWeight) && chunkWeight >= 1) continue;
    throw new SolverError(
      "SCENARIO_INVALID",
      `file ${file}: needs k of its distinct servers, a rate >= 0 and a chunk weight that is an integer >= 1`,
      { file },
    );
  }
}

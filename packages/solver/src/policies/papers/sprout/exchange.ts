/**
 * Moves single cached chunks from one file to another. The knapsack sees the queues as they are, and near saturation
 * one chunk more or less changes them: its choice can be one chunk away from a better one.
 */
import { descend, type Requests } from "./descend.ts";
import type { SproutFile } from "./files.ts";
import type { Server } from "./latency-bound.ts";
import { projectOnto } from "./project.ts";
import { costOf, crowdingOf } from "./requests.ts";

/** Numbers of cached chunks, and the best requests found for them. */
interface Choice extends Requests {
  readonly cached: Int32Array;
}

interface Exchange {
  readonly cached: Int32Array;
  /** Seconds of all reads that it promises to save at the present queues. */
  readonly gain: number;
}

/** Returns `from`, or a better choice that exchanges lead to; it tries at most `triesMax`, the most promising first. */
export function exchange(
  files: readonly SproutFile[],
  servers: readonly Server[],
  from: Choice,
  capacity: number,
  { stepsMax, triesMax }: { readonly stepsMax: number; readonly triesMax: number },
): Choice {
  let best = from;
  let tries = 0;
  for (let isDone = false; !isDone;) {
    isDone = true;
    for (const { cached } of exchangesOf(files, servers, best, capacity)) {
      if (tries++ >= triesMax) break;
      const scaled = best.probability.map((own, i) => projectOnto(files[i]!, files[i]!.k - cached[i]!, own));
      const found = descend(files, servers, scaled, stepsMax);
      if (!(found.meanBound < best.meanBound)) continue;
      best = { ...found, cached };
      isDone = false;
      break;
    }
  }
  return best;
}

/** All choices that give one file one chunk more, and another one as many fewer as that needs; best promise first. */
function exchangesOf(
  files: readonly SproutFile[],
  servers: readonly Server[],
  { cached, probability }: Choice,
  capacity: number,
): Exchange[] {
  const crowding = crowdingOf(files, servers, probability);
  const used = files.reduce((sum, { chunkWeight = 1 }, i) => sum + cached[i]! * chunkWeight, 0);
  const room = capacity - used;
  // One request fewer goes to the dearest server that is asked, one more to the cheapest that can be asked more often.
  const saved = files.map((file, i) => {
    const asked = file.servers.filter((j) => probability[i]![j]! > 1e-6);
    return file.readsPerSecond * Math.max(0, ...asked.map((j) => costOf(crowding, i, j)));
  });
  const paid = files.map((file, i) => {
    const open = file.servers.filter((j) => probability[i]![j]! < 1 - 1e-6);
    return file.readsPerSecond * Math.min(...open.map((j) => costOf(crowding, i, j)));
  });
  const exchanges: Exchange[] = [];
  for (const [taker, { k, chunkWeight = 1 }] of files.entries()) {
    if (cached[taker]! >= k) continue;
    for (const [giver, other] of files.entries()) {
      const fewer = Math.ceil(Math.max(0, chunkWeight - room) / (other.chunkWeight ?? 1));
      if (giver === taker || fewer > cached[giver]!) continue;
      const changed = cached.slice();
      changed[taker]! += 1;
      changed[giver]! -= fewer;
      exchanges.push({ cached: changed, gain: saved[taker]! - (fewer > 0 ? fewer * paid[giver]! : 0) });
    }
  }
  return exchanges.toSorted((a, b) => b.gain - a.gain);
}

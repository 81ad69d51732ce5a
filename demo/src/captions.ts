/**
 * What one sees, in plain words, with the numbers of the world that is running.
 */
import { byId, h } from "./dom.ts";
import { count } from "./format.ts";
import type { World, WorldState } from "./world.ts";

export function explain(world: World): void {
  const draw = (): void => {
    const { state } = world;
    if (!state) return;
    byId("lead").textContent = lead(state);
    byId("words").replaceChildren(
      ...words(state).flatMap(([term, text]) => [h("div", {}, h("dt", {}, term), h("dd", {}, text))]),
    );
    world.removeEventListener("change", draw);
  };
  world.addEventListener("change", draw);
}

function lead({ code: { k, m }, regions }: WorldState): string {
  return (
    `Each file is cut into ${k} data chunks, ${m} parity chunks are computed from them, and the ${k + m} are spread over ` +
    `${regions.length} regions. Any ${k} of them give the file back. So your browser asks for a little more than ${k}, uses ` +
    `whichever come first, and drops the rest.`
  );
}

function words({ code: { k, m }, regions, scale }: WorldState): [string, string][] {
  const perRegion = Math.ceil((k + m) / regions.length);
  const survives = Math.floor(m / perRegion);
  return [
    [
      "Why chunks?",
      `Three copies would cost 3 times the storage; ${k} + ${m} chunks cost ${((k + m) / k).toFixed(2)} times. Here ${count(survives, "whole region")} ` +
        `can be lost and every file still be read. Kill one above and see the lanes change colour, not break.`,
    ],
    [
      "What is the edge for?",
      `A read is as slow as the slowest chunk it needs. A PoP next to you therefore caches some chunks of each favourite: ` +
        `best those that would otherwise come from farthest away. Which ones is a knapsack, solved exactly at each Cron Trigger.`,
    ],
    [
      "d3, p1?",
      `d3 is data chunk 3; p1 is parity chunk 1. When a parity chunk was used, a data chunk was missing and was decoded, in ` +
        `WebAssembly, usually in a few milliseconds.`,
    ],
    [
      "What do the kinds mean?",
      `edge: all chunks from a cache. mixed: cache and regions. origin: regions only. degraded: something failed on the way ` +
        `and was replaced; the file is right all the same, because every chunk is checked against its SHA-256.`,
    ],
    [
      "Is this real?",
      `The buckets, the PoPs (in workerd) and the service worker are; the distances are emulated: latencies measured from ` +
        `Frankfurt for a paper (Agar, ICDCS 2017), times ${scale}, with jitter.`,
    ],
  ];
}

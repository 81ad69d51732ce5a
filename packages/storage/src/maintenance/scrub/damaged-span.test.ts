/** How damaged objects of a walk wait for their repair. */
import { expect, test } from "vitest";
import type { DeploymentParts } from "../../parts.ts";
import type { ObjectVerdict } from "../../objects/verify-object.ts";
import { DamagedSpan } from "./damaged-span.ts";
import { NO_TOTALS } from "./totals.ts";

const REGIONS = ["frankfurt", "dublin", "tokyo"];

function verdictOf(key: string, beyondK: number, manifests = REGIONS.length): ObjectVerdict {
  const states = REGIONS.map((region, index) => ({ region, state: index < manifests ? "sound" : "missing" }) as const);
  const damage = beyondK < 2 ? [{ chunk: 0, region: "tokyo", code: "CHUNK_MISSING", stripes: [0] }] : [];
  const sound = damage.length === 0 && manifests === REGIONS.length;
  const counts = { chunks: 4, chunksSound: 2 + beyondK, beyondK };
  return { key, version: "1", removed: false, sound, readable: beyondK >= 0, manifests: states, damage, ...counts };
}

/** A span of at most `max`, and the keys that it has worked off. */
function spanOf(max: number) {
  const done: string[] = [];
  const onDamaged = async ({ key }: { readonly key: string }): Promise<void> => void done.push(key);
  const span = new DamagedSpan({ dryRun: true, onDamaged, max }, {} as DeploymentParts);
  return { span, done };
}

test("the cursor may pass sound objects at once, and damaged ones when their span is full or the walk ends", async () => {
  const { span, done } = spanOf(3);
  const passes: boolean[] = [];
  for (const [key, beyondK] of [
    ["a", 2],
    ["b", 1],
    ["c", 2],
    ["d", 0],
    ["e", 1],
    ["f", 2],
    ["g", 1],
  ] as const) {
    span.add({ verdict: verdictOf(key, beyondK), isQueued: false });
    passes.push((await span.settle(NO_TOTALS, false)) !== undefined);
  }
  expect(passes).toEqual([true, false, false, false, true, true, false]);
  expect(done).toEqual(["d", "b", "e"]);
  expect(await span.settle(NO_TOTALS, true)).toMatchObject({ damaged: 1 });
  expect(done).toEqual(["d", "b", "e", "g"]);
});

test("the loss of manifests counts like that of chunks, equals keep their order, and what is lost comes last", async () => {
  const { span, done } = spanOf(100);
  span.add({ verdict: verdictOf("lost", -1), isQueued: false });
  span.add({ verdict: verdictOf("one-chunk", 1), isQueued: false });
  span.add({ verdict: verdictOf("two-manifests", 2, 2), isQueued: false });
  span.add({ verdict: verdictOf("one-manifest", 2, 1), isQueued: false });
  span.add({ verdict: verdictOf("queued", 2), isQueued: true });
  await span.settle(NO_TOTALS, true);
  expect(done).toEqual(["one-manifest", "one-chunk", "two-manifests", "queued", "lost"]);
});

import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { DOWN, startTestWorld, type World } from "../../world.ts";
import { completeLate } from "@agarose/storage/upload/transfers";

let world: World;
beforeEach(async () => void (world = await startTestWorld()));
afterEach(() => world.close());

/** The results of two puts: `tokyo` was left out of the first one, and took its share of the second. */
async function putAroundTokyo() {
  world.faults.set("tokyo", DOWN);
  const lacking = await world.put("lacking", randomBytes(5_000));
  world.faults.clear();
  const whole = await world.put("whole", randomBytes(5_000));
  expect([lacking.missing.length, whole.missing.length]).toEqual([1, 0]);
  return [lacking, whole];
}

const contextWith = (signal: AbortSignal) => world.parts({ signal });

test("an object gets what a region was left out of, once that region has taken another object's share", async () => {
  const results = await putAroundTokyo();
  expect(await completeLate(results, contextWith(new AbortController().signal))).toEqual(new Set(["lacking"]));
  expect(await world.verify("lacking")).toMatchObject({ sound: true });
});

test("many small objects are completed at a time, because each waits for the slowest region again and again", async () => {
  world.faults.set("tokyo", DOWN);
  const lacking = await Promise.all(Array.from({ length: 12 }, (_, n) => world.put(`lacking${n}`, randomBytes(5_000))));
  world.faults.clear();
  const results = [...lacking, await world.put("whole", randomBytes(5_000))];
  const waiting: (() => void)[] = [];
  let most = 0;
  let timer: NodeJS.Timeout | undefined;
  // Manifests are held until no more are asked for.
  const release = (): void => waiting.splice(0).forEach((go) => go());
  world.faults.set("frankfurt", async (request, _response, name) => {
    if (request.method !== "GET" || !name.startsWith("manifests/")) return false;
    clearTimeout(timer);
    timer = setTimeout(release, 500);
    await new Promise<void>((resolve) => (most = Math.max(most, waiting.push(resolve))));
    return false;
  });
  const complete = await completeLate(results, contextWith(new AbortController().signal));
  expect([complete.size, most]).toEqual([12, 12]);
});

test("an interruption ends it, and says which objects still lack something", async () => {
  const results = await putAroundTokyo();
  const interrupt = new AbortController();
  // It hangs, so that the repair is under way.
  world.faults.set("tokyo", () => {
    interrupt.abort(new DOMException("interrupted", "AbortError"));
    return true;
  });
  expect(await completeLate(results, contextWith(interrupt.signal))).toEqual(new Set());
  expect(interrupt.signal.aborted).toBe(true);
  world.faults.clear();
  expect(await world.verify("whole")).toMatchObject({ readable: true });
});

test("a region that takes chunks and drops them is looked at twice, and what it lacks is in the result", async () => {
  let dropped = 0;
  world.faults.set("tokyo", (request, response, name) => {
    if (request.method !== "PUT" || !name.startsWith("chunks/")) return false;
    dropped++;
    request.resume();
    request.once("end", () => response.writeHead(200).end());
    return true;
  });
  const put = await world.put("dropped", randomBytes(5_000));
  expect(dropped, "stored, and stored again").toBe(2);
  expect(put.missing.map((chunk) => put.placement[chunk])).toEqual(["tokyo"]);
  world.faults.clear();
  expect(await completeLate([put], contextWith(new AbortController().signal))).toEqual(new Set());
  expect(
    await completeLate([put, await world.put("whole", randomBytes(10))], contextWith(new AbortController().signal)),
  ).toEqual(new Set(["dropped"]));
  expect(await world.verify("dropped")).toMatchObject({ sound: true });
});

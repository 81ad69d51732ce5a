/** What the KV namespace of a scrubber may hold, from this version or another. */
import { NO_TOTALS } from "@agarose/storage/maintenance/scrub/totals";
import { expect, test } from "vitest";
import { lastWalk, noteWalk, openWalk, saveWalk, type ScrubberEnv } from "./walks.ts";

function envOf(values: Record<string, string> = {}): ScrubberEnv {
  const STATE = {
    get: async (name: string) => values[name] ?? null,
    put: async (name: string, value: string) => void (values[name] = value),
  };
  return { STATE } as unknown as ScrubberEnv;
}

const TOTALS = { ...NO_TOTALS, objects: 3, found: { 2: 3 }, regionsUnreachable: [{ region: "r0", problem: "down" }] };

test("walks are read as they were kept, with and without a key to go on behind", async () => {
  const env = envOf();
  expect([await openWalk(env), await lastWalk(env)]).toEqual([undefined, undefined]);
  for (const position of [
    { totals: TOTALS, isEnd: false },
    { after: "a/b", totals: TOTALS, isEnd: false },
  ]) {
    await noteWalk(env, { prefix: "a/", startMs: 1, position });
    expect(await openWalk(env)).toEqual({ prefix: "a/", startMs: 1, position });
  }
  await saveWalk(env, { totals: TOTALS, startMs: 1, endMs: 2 });
  expect([await openWalk(env), await lastWalk(env)]).toEqual([undefined, { totals: TOTALS, startMs: 1, endMs: 2 }]);
});

test.each(["", "null", "[]", "{", '{"startMs":1}'])("%j is no walk", async (text) => {
  expect([await openWalk(envOf({ open: text })), await lastWalk(envOf({ last: text }))]).toEqual([
    undefined,
    undefined,
  ]);
});

test("a walk whose totals lack a count is none: a sum with it would be no number", async () => {
  const { unread: _unread, ...older } = TOTALS;
  const open = JSON.stringify({ prefix: "", startMs: 1, position: { totals: older, isEnd: false } });
  const last = JSON.stringify({ totals: older, startMs: 1, endMs: 2 });
  expect([await openWalk(envOf({ open })), await lastWalk(envOf({ last }))]).toEqual([undefined, undefined]);
});

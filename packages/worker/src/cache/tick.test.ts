/** Periods beside a Durable Object that hangs. No real one does so on time, so it and the SQL are fakes. */
import { afterEach, expect, test, vi } from "vitest";
import type { Bindings } from "../runtime/isolate.ts";
import { PeriodicPopState } from "./tick.ts";

vi.mock("cloudflare:workers", () => ({
  DurableObject: class {
    readonly ctx: unknown;
    constructor(ctx: unknown) {
      this.ctx = ctx;
    }
  },
}));
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

/** Facts by name; every other table stays empty. */
function sql() {
  const facts = new Map<unknown, unknown>();
  return {
    exec(query: string, name?: unknown, json?: unknown) {
      if (query.startsWith("INSERT OR REPLACE INTO facts")) facts.set(name, json);
      const isKnown = query.startsWith("SELECT json FROM facts") && facts.has(name);
      return { toArray: () => (isKnown ? [{ json: facts.get(name) }] : []) };
    },
  };
}

test("a period waits 20 s at most for an exchange that hangs", async () => {
  vi.useFakeTimers();
  vi.spyOn(console, "log").mockImplementation(() => {});
  const never = new Promise<never>(() => {});
  const objects = {
    idFromName: (name: string) => name,
    get: () => ({ exchange: () => never, closePeriod: async () => [] }),
  };
  const env = {
    POP: "fra",
    UNSIGNED: "true",
    REGIONS: JSON.stringify(["a", "b", "c"].map((name) => ({ name, url: `https://${name}.invalid` }))),
    CHUNKS: { get: async () => null, put: async () => {}, delete: async () => {} },
    REQUEST_MONITOR: objects,
    POP_STATE: objects,
  } as unknown as Bindings;
  const storage = { sql: sql(), getAlarm: async () => null, setAlarm: async () => {} };
  const state = { storage, waitUntil: () => {} } as unknown as DurableObjectState;
  const object = new PeriodicPopState(state, env);
  vi.stubGlobal("fetch", async () => new Response(null, { status: 404 }));
  void object.alarm();
  await vi.advanceTimersByTimeAsync(1_000);
  const period = object.runPeriod();
  await vi.advanceTimersByTimeAsync(60_000);
  await period;
  expect(object.snapshot().lastPeriod).toMatchObject({ errors: [] });
}, 10_000);

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

const never = new Promise<never>(() => {});

/** A PoP whose calls of other objects `stub` answers. */
function startPopState(stub: Readonly<Record<string, () => Promise<unknown>>>, vars: object = {}): PeriodicPopState {
  vi.useFakeTimers();
  for (const level of ["log", "warn"] as const) vi.spyOn(console, level).mockImplementation(() => {});
  vi.stubGlobal("fetch", async () => new Response(null, { status: 404 }));
  const objects = { idFromName: (name: string) => name, get: () => stub };
  const env = {
    POP: "fra",
    UNSIGNED: "true",
    REGIONS: JSON.stringify(["a", "b", "c"].map((name) => ({ name, url: `https://${name}.invalid` }))),
    CHUNKS: { get: async () => null, put: async () => {}, delete: async () => {} },
    REQUEST_MONITOR: objects,
    POP_STATE: objects,
    PEER_STATE: objects,
    ...vars,
  } as unknown as Bindings;
  const storage = { sql: sql(), getAlarm: async () => null, setAlarm: async () => {} };
  const state = { storage, waitUntil: () => {} } as unknown as DurableObjectState;
  return new PeriodicPopState(state, env);
}

test("a period waits 20 s at most for an exchange that hangs", async () => {
  const object = startPopState({ exchange: () => never, closePeriod: async () => [] });
  void object.alarm();
  await vi.advanceTimersByTimeAsync(1_000);
  const period = object.runPeriod();
  await vi.advanceTimersByTimeAsync(60_000);
  await period;
  expect(object.snapshot().lastPeriod).toMatchObject({ errors: [] });
}, 10_000);

test.each(["toMeasure", "popular", "beginTurn", "closePeriod", "published"])(
  "a period ends although the call %s of another object is never answered",
  async (lost) => {
    // More than all of which every period measures.
    const peers = Array.from({ length: 10 }, (_, i) => ({ name: `p${i}`, url: `https://p${i}.invalid` }));
    const object = startPopState(
      {
        toMeasure: async () => [],
        popular: async () => [],
        beginTurn: async () => ({ isOurs: true, peers: [], inForce: { epoch: 0, peers: [] } }),
        closePeriod: async () => [],
        published: async () => {},
        [lost]: vi.fn(() => never),
      },
      { PEERS: JSON.stringify(peers), PEER_KEY: "k".repeat(64) },
    );
    const ended = vi.fn();
    void object.runPeriod().then(ended);
    await vi.advanceTimersByTimeAsync(40_000);
    expect(ended).toHaveBeenCalled();
    expect(object.snapshot().lastPeriod).toMatchObject({ errors: lost === "closePeriod" ? [expect.anything()] : [] });
  },
);

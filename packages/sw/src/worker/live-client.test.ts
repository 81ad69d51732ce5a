/** When a running worker fetches its configuration again, and what it then does. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { AgaroseError, type ErrorCode } from "@agarose/core";
import { SimulatedClock } from "@agarose/core/testing";
import type { ObjectClient } from "../client/object-client.ts";
import type { ClientConfig } from "../common/config.ts";
import { CONFIG_TTL_MS, LiveClient } from "./live-client.ts";

const URL_OF_FILE = "https://app.test/agarose.json";
const fileOf = (pop: string): object => ({ pops: [{ name: pop, url: `https://${pop}.test` }], unsigned: true });
const error = (code: ErrorCode): AgaroseError => new AgaroseError(code, "of a read");

let clock: SimulatedClock;
let answer: () => Response | Promise<Response>;
let fetched: number;
let stored: Map<string, Response>;

beforeEach(() => {
  clock = new SimulatedClock();
  answer = () => Response.json(fileOf("a"));
  fetched = 0;
  stored = new Map();
});
const unanswered: (() => void)[] = [];
afterEach(() => unanswered.splice(0).forEach((end) => end()));

function live(make = (config: ClientConfig) => ({ config }) as ObjectClient): LiveClient {
  const cache = {
    match: async (url: string) => stored.get(url)?.clone(),
    put: async (url: string, response: Response) => void stored.set(url, response),
  };
  const ports = {
    clock,
    caches: { open: async () => cache } as unknown as CacheStorage,
    fetch: (async () => {
      fetched++;
      return answer();
    }) as typeof globalThis.fetch,
  };
  return new LiveClient({ prefix: "/ec/", url: URL_OF_FILE }, ports, make);
}

const popOf = (client: ObjectClient | undefined): string | undefined => client?.config.pops[0]?.name;

/** The PoP of the client after what is under way. */
async function popNow(client: LiveClient): Promise<string | undefined> {
  await clock.advance(0);
  return popOf(await client.current());
}

describe("by age", () => {
  test("a read fetches a configuration of a minute again, in the background, and no read before does", async () => {
    const client = live();
    await client.current();
    answer = () => Response.json(fileOf("b"));
    await clock.advance(CONFIG_TTL_MS - 1);
    expect([await popNow(client), fetched]).toEqual(["a", 1]);
    await clock.advance(1);
    expect(popOf(await client.current()), "the read does not wait").toBe("a");
    expect([await popNow(client), fetched]).toEqual(["b", 2]);
  });

  test("a thousand reads at once share one fetch, and one that fails is not repeated for a minute", async () => {
    const client = live();
    await client.current();
    answer = () => Promise.reject(new TypeError("no network"));
    await clock.advance(CONFIG_TTL_MS);
    for (let read = 0; read < 1000; read++) await client.current();
    await clock.advance(CONFIG_TTL_MS - 1);
    expect([await popNow(client), fetched]).toEqual(["a", 2]);
  });
});

describe("after a read that failed", () => {
  test.each<ErrorCode>([
    "MANIFEST_UNTRUSTED",
    "NO_SOURCE",
    "NOT_ENOUGH_CHUNKS",
    "SOURCE_FAILED",
    "READ_TIMEOUT",
    "OBJECT_NOT_FOUND",
    "SECRET_MISSING",
    "SECRET_WRONG",
  ])("with %s, it is repeated by a configuration that has changed", async (code) => {
    const client = live();
    const failed = await client.current();
    await clock.advance(5_000);
    answer = () => Response.json(fileOf("b"));
    expect(popOf(await client.after(failed, error(code)))).toBe("b");
    expect(fetched).toBe(2);
  });

  test.each<ErrorCode>(["ABORTED", "KEY_INVALID", "RANGE_UNSATISFIABLE", "FORBIDDEN", "INTERNAL", "RATE_LIMITED"])(
    "with %s, nothing is fetched",
    async (code) => {
      const client = live();
      const failed = await client.current();
      await clock.advance(5_000);
      expect(await client.after(failed, error(code))).toBeUndefined();
      expect(fetched).toBe(1);
    },
  );

  test("it is not repeated by the same configuration, and many failures fetch less and less often", async () => {
    const client = live();
    const failed = await client.current();
    const atMs: number[] = [];
    for (let second = 1; second <= 200; second++) {
      await clock.advance(1_000);
      const before = fetched;
      const again = Array.from({ length: 50 }, () => client.after(failed, error("MANIFEST_UNTRUSTED")));
      expect(new Set(await Promise.all(again))).toEqual(new Set([undefined]));
      if (fetched > before) atMs.push(clock.now());
      expect(fetched - before, "reads at once share a fetch").toBeLessThan(2);
    }
    expect(atMs.slice(0, 6)).toEqual([1_000, 3_000, 7_000, 15_000, 31_000, 63_000]);
    expect(fetched).toBeLessThan(12);
  });

  test("one that another read has found out of date already is repeated without a fetch", async () => {
    const client = live();
    const failed = await client.current();
    await clock.advance(5_000);
    answer = () => Response.json(fileOf("b"));
    await client.after(failed, error("NO_SOURCE"));
    expect(popOf(await client.after(failed, error("NO_SOURCE")))).toBe("b");
    expect(fetched).toBe(2);
  });
});

describe("a page that registers", () => {
  test("has the configuration fetched, unless the worker has just started", async () => {
    const client = live();
    await client.onRegister();
    expect(fetched).toBe(1);
    answer = () => Response.json(fileOf("b"));
    await clock.advance(2_000);
    await Promise.all([client.onRegister(), client.onRegister()]);
    expect([await popNow(client), fetched]).toEqual(["b", 2]);
  });
});

describe("what is no configuration is refused, and the old one stays in force and in storage", () => {
  test.each<[string, () => Response | Promise<Response>]>([
    ["HTML with 200", () => new Response("<html>", { headers: { "content-type": "text/html" } })],
    ["HTML that says it is JSON", () => new Response("<html>", { headers: { "content-type": "application/json" } })],
    ["404", () => new Response("{}", { status: 404 })],
    ["503", () => Response.json(fileOf("b"), { status: 503 })],
    ["null", () => Response.json(null)],
    ["a list", () => Response.json([])],
    ["without PoPs and regions", () => Response.json({ unsigned: true })],
    ["without keys", () => Response.json({ ...fileOf("b"), unsigned: undefined })],
    ["with URLs that are none", () => Response.json({ pops: [{ name: "b", url: "javascript:0" }], unsigned: true })],
    ["one that no client can use", () => Response.json({ ...fileOf("b"), offline: 7 })],
    ["no network", () => Promise.reject(new TypeError("no"))],
    [
      "half a body",
      () =>
        Response.json(fileOf("b"))
          .text()
          .then((text) => new Response(text.slice(0, 20), { headers: { "content-type": "application/json" } })),
    ],
  ])("%s", async (_, wrong) => {
    const make = (config: ClientConfig): ObjectClient => {
      if (config.offline) throw new AgaroseError("CONFIG_INVALID", "offline");
      return { config } as ObjectClient;
    };
    const client = live(make);
    const failed = await client.current();
    answer = wrong;
    await clock.advance(5_000);
    expect(await client.after(failed, error("NO_SOURCE"))).toBeUndefined();
    expect([await popNow(client), fetched]).toEqual(["a", 2]);
    const restarted = live(make);
    expect(popOf(await restarted.current()), "a worker that starts").toBe("a");
  });

  test("a file that is never answered delays one read for a while, and is given up", async () => {
    const client = live();
    const failed = await client.current();
    answer = () => new Promise((_, reject) => unanswered.push(() => reject(new TypeError("ended"))));
    await clock.advance(5_000);
    const again = client.after(failed, error("NO_SOURCE"));
    await clock.advance(10_000);
    expect(await again).toBeUndefined();
    answer = () => Response.json(fileOf("b"));
    await clock.advance(60_000);
    expect(popOf(await client.after(failed, error("NO_SOURCE")))).toBe("b");
  });
});

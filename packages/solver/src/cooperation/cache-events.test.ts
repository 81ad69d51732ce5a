import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CacheEvents } from "./cache-events.ts";
import { checked } from "../checked.ts";
import { cacheMessageSchema, type CacheMessage } from "./cache-message.ts";
import { ObjectsInCache } from "./objects-in-cache.ts";
import { chooseVictim, compareC2p, compareLru } from "./replacement.ts";
import { seededRandom } from "../random.ts";

const KEYS = ["a", "b", "c", "d"];

/** Messages of arbitrary, even contradictory nodes: equal moments, older epochs, complete ones in between. */
const anyMessage: fc.Arbitrary<CacheMessage> = fc.record({
  node: fc.constantFrom("p", "q"),
  epoch: fc.nat(2),
  statedMs: fc.nat(6),
  isComplete: fc.boolean(),
  statements: fc.uniqueArray(
    fc.record({
      key: fc.constantFrom(...KEYS),
      chunks: fc.uniqueArray(fc.nat(5)).map((chunks) => chunks.toSorted((a, b) => a - b)),
      hits: fc.nat(3),
      readMs: fc.nat(6),
    }),
    { selector: ({ key }) => key },
  ),
});

function tableOf(messages: readonly CacheMessage[], objectsMax?: number): ObjectsInCache {
  const table = new ObjectsInCache(objectsMax);
  for (const message of messages) table.merge(message);
  return table;
}

function seenIn(table: ObjectsInCache): unknown {
  return KEYS.map((key) => [
    table.oic(key, 4),
    table.hits(key, 100_000),
    table.readMs(key, 100_000),
    new Map([...table.replicasOf(key)].toSorted(([a], [b]) => (a < b ? -1 : 1))),
  ]);
}

describe("ObjectsInCache", () => {
  test("any order and repetition of messages gives the same table", () => {
    let reordered = 0;
    fc.assert(
      fc.property(
        fc.array(anyMessage, { maxLength: 12 }),
        fc.nat(),
        fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
        (messages, seed, objectsMax) => {
          const random = seededRandom(seed);
          const replayed = random.shuffle([...messages, ...messages.filter(() => random.next() < 0.5)]);
          if (replayed.length > messages.length) reordered++;
          expect(seenIn(tableOf(replayed, objectsMax))).toEqual(seenIn(tableOf(messages, objectsMax)));
        },
      ),
      { numRuns: 1000 },
    );
    expect(reordered).toBeGreaterThan(100);
  });

  test("a repeated message says nothing new", () => {
    fc.assert(
      fc.property(fc.array(anyMessage, { minLength: 1, maxLength: 8 }), (messages) => {
        const table = tableOf(messages);
        for (const message of messages) expect(table.merge(message)).toBe(false);
      }),
    );
  });

  test("OiC is the fraction of k held anywhere: a chunk held twice counts once, functional chunks count", () => {
    const [p, q] = [new CacheEvents("p"), new CacheEvents("q")];
    p.recordHeld("a", [0, 3], 10);
    q.recordHeld("a", [3, 12], 10);
    const table = tableOf([p.take(210)!, q.take(210)!]);
    expect(table.oic("a", 4)).toBe(0.75);
    expect(table.oic("a", 4, [3, 5])).toBe(1);
    expect(table.oic("a", 2)).toBe(1);
    expect(table.oic("unknown", 4)).toBe(0);
    expect(table.replicasOf("a")).toEqual(
      new Map([
        ["p", [0, 3]],
        ["q", [3, 12]],
      ]),
    );
  });

  test("hits add up over peers and fade by 0.8 for each minute without a read", () => {
    const [p, q] = [new CacheEvents("p"), new CacheEvents("q")];
    for (const at of [0, 1000, 2000]) p.recordRead("a", at);
    q.recordRead("a", 500);
    const table = tableOf([p.take(2200)!, q.take(2200)!]);
    expect(table.hits("a", 2200)).toBe(4);
    expect(table.hits("a", 0)).toBe(4);
    expect(table.hits("a", 62_100)).toBeCloseTo(0.8 * 3 + 0.8 * 1, 12);
    expect(table.readMs("a", 5000)).toBe(2000);
    expect(table.readMs("a", 1500)).toBe(1500);
    expect(table.readMs("unknown", 5000)).toBe(-Infinity);
  });

  test("after a restart only the new epoch counts, even when messages of the old one arrive late", () => {
    const before = new CacheEvents("p", { epoch: 1 });
    before.recordHeld("a", [1], 100_000);
    const old = before.take(100_200)!;
    const after = new CacheEvents("p", { epoch: 2 });
    after.recordHeld("b", [2], 10);
    const table = tableOf([old, after.take(300)!, old]);
    expect([table.oic("a", 1), table.oic("b", 1)]).toEqual([0, 1]);
  });

  test("a digest repairs all that was lost, with lost and late messages in between", () => {
    let lost = 0;
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        const random = seededRandom(seed);
        const sender = new CacheEvents("p", { statementsMax: 2 });
        const table = new ObjectsInCache();
        const held = new Map<string, number[]>();
        const late: CacheMessage[] = [];
        let now = 0;
        for (let step = 0; step < 40; step++) {
          now += random.integer(150);
          const key = KEYS[random.integer(KEYS.length)]!;
          const chunks = [0, 1, 2].filter(() => random.next() < 0.4);
          if (random.next() < 0.5) sender.recordRead(key, now);
          else {
            held.set(key, chunks);
            sender.recordHeld(key, chunks, now);
          }
          const message = sender.take(now);
          if (!message) continue;
          const luck = random.next();
          if (luck < 0.3) lost++;
          else if (luck < 0.6) late.push(message);
          else table.merge(message);
        }
        table.merge(sender.digest(now));
        for (const message of late) table.merge(message);
        for (const key of KEYS) {
          expect(table.replicasOf(key).get("p") ?? [], key).toEqual(held.get(key) ?? []);
          expect(new Map(table.contentsOf("p")).get(key) ?? [], key).toEqual(held.get(key) ?? []);
        }
      }),
    );
    expect(lost).toBeGreaterThan(100);
  });

  test("keeps at most objectsMax objects of a node: those stated last", () => {
    const sender = new CacheEvents("p");
    const table = new ObjectsInCache(2);
    for (const [i, key] of KEYS.entries()) {
      sender.recordHeld(key, [0], i * 1000);
      table.merge(sender.take(i * 1000 + 200)!);
    }
    expect(KEYS.map((key) => table.oic(key, 1))).toEqual([0, 0, 1, 1]);
  });
});

describe("CacheEvents", () => {
  test("gathers for 200 ms from the first event on, and states each object once", () => {
    const events = new CacheEvents("p");
    expect(events.dueMs).toBe(Infinity);
    expect(events.take(1e9)).toBeUndefined();
    events.recordRead("a", 1000);
    events.recordHeld("a", [1, 2], 1050);
    events.recordRead("b", 1150);
    expect(events.dueMs).toBe(1200);
    expect(events.take(1199)).toBeUndefined();
    const message = events.take(1200)!;
    expect(message).toMatchObject({ node: "p", epoch: 0, statedMs: 1200, isComplete: false });
    expect(message.statements).toEqual([
      { key: "a", chunks: [1, 2], hits: 1, readMs: 1000 },
      { key: "b", chunks: [], hits: 1, readMs: 1150 },
    ]);
    expect(events.dueMs).toBe(Infinity);
  });

  test("under load reads are dropped, the least popular first; what is held waits for the next message", () => {
    const events = new CacheEvents("p", { statementsMax: 3 });
    for (const key of ["r1", "r2", "r2", "r3", "r3", "r3"]) events.recordRead(key, 0);
    for (const key of ["h1", "h2"]) events.recordHeld(key, [0], 0);
    expect(events.take(200)!.statements.map(({ key }) => key)).toEqual(["h1", "h2", "r3"]);
    expect(events.dropped).toBe(2);
    expect(events.dueMs).toBe(Infinity);
    for (const key of ["h1", "h2", "h3", "h4"]) events.recordHeld(key, [1], 300);
    expect(events.take(500)!.statements).toHaveLength(3);
    expect(events.dueMs).toBe(700);
    expect(events.take(700)!.statements.map(({ key }) => key)).toEqual(["h4"]);
  });

  test("a clock that goes back does not make a later statement look earlier", () => {
    const events = new CacheEvents("p");
    events.recordHeld("a", [1], 10_000);
    const first = events.take(10_200)!;
    events.recordHeld("a", [], 0);
    const second = events.take(200)!;
    expect(second.statedMs).toBeGreaterThan(first.statedMs);
    expect(tableOf([second, first]).oic("a", 1)).toBe(0);
  });

  test("forgets the hits of what is outside the cache beyond othersMax, but not that it has left", () => {
    const events = new CacheEvents("p", { othersMax: 1 });
    events.recordHeld("a", [1], 0);
    events.recordHeld("a", [], 10);
    events.recordRead("b", 20);
    events.recordRead("c", 30);
    const { statements } = events.take(200)!;
    expect(statements.map(({ key, chunks, hits }) => [key, chunks, hits])).toEqual([
      ["a", [], 0],
      ["b", [], 0],
      ["c", [], 1],
    ]);
  });

  test.each([NaN, Infinity, -Infinity])("refuses the time %s", (now) => {
    const events = new CacheEvents("p");
    for (const call of [
      () => events.recordRead("a", now),
      () => events.recordHeld("a", [0], now),
      () => events.take(now),
      () => events.digest(now),
      () => new ObjectsInCache().hits("a", now),
    ]) {
      expect(call).toThrow(expect.objectContaining({ code: "REQUEST_INVALID" }));
    }
    expect(events.dueMs).toBe(Infinity);
  });

  test.each([
    ["epoch", { epoch: -1 }],
    ["epoch", { epoch: 0.5 }],
    ["gatherMs", { gatherMs: NaN }],
    ["statementsMax", { statementsMax: 0 }],
    ["othersMax", { othersMax: Infinity }],
  ])("refuses a wrong %s", (field, settings) => {
    expect(() => new CacheEvents("p", settings)).toThrow(expect.objectContaining({ details: { field } }));
  });
});

const parseCacheMessage = (input: unknown): CacheMessage => checked(cacheMessageSchema, input, "", "REQUEST_INVALID");

describe("a message", () => {
  test("a message survives JSON", () => {
    const events = new CacheEvents("p", { epoch: 3 });
    events.recordHeld("a", [0, 12], 5);
    events.recordRead("b", 6);
    const message = events.take(205)!;
    expect(parseCacheMessage(JSON.parse(JSON.stringify(message)))).toEqual(message);
  });

  test("any JSON is either a message that can be merged or refused with REQUEST_INVALID", () => {
    let refused = 0;
    let taken = 0;
    const near = anyMessage.chain((message) => {
      const wrong = fc.constantFrom<unknown>(NaN, -1, 0.5, Infinity, null, "x", [], {}, [3, 1], [1, 1], [-1], 2 ** 60);
      return fc.oneof(
        fc.constant<unknown>(message),
        fc.tuple(fc.constantFrom(...Object.keys(message)), wrong).map(([f, w]): unknown => ({ ...message, [f]: w })),
        fc.tuple(fc.constantFrom("key", "chunks", "hits", "readMs"), wrong).map(([f, w]): unknown => {
          return { ...message, statements: message.statements.map((statement) => ({ ...statement, [f]: w })) };
        }),
      );
    });
    fc.assert(
      fc.property(fc.oneof(near, fc.jsonValue() as fc.Arbitrary<unknown>), (input) => {
        const table = new ObjectsInCache();
        try {
          table.merge(parseCacheMessage(input));
          taken++;
        } catch (error) {
          expect(error).toMatchObject({ name: "AgaroseError", code: "REQUEST_INVALID" });
          refused++;
        }
        for (const key of KEYS) {
          expect(table.oic(key, 3)).toBeGreaterThanOrEqual(0);
          expect(table.oic(key, 3)).toBeLessThanOrEqual(1);
          expect(table.hits(key, 10)).toBeGreaterThanOrEqual(0);
        }
      }),
      { numRuns: 1000 },
    );
    expect(Math.min(refused, taken)).toBeGreaterThan(100);
  });

  test("says which field is wrong and what it is", () => {
    const message = { node: "p", epoch: 0, statedMs: 0, isComplete: false };
    const statement = { key: "a", chunks: [2, 1], hits: 0, readMs: 0 };
    expect(() => parseCacheMessage({ ...message, statements: [statement] })).toThrow(
      "statements[0].chunks: must be ascending",
    );
    const sound = { ...statement, chunks: [1] };
    expect(() => parseCacheMessage({ ...message, statements: [sound, sound] })).toThrow(
      "statements: names a key twice",
    );
  });
});

describe("C2P's replacement", () => {
  const whole = { oic: 1, hits: 1, readMs: 0 };
  const part = { oic: 0.8, hits: 100, readMs: 1000 };

  test("a partly cached object leaves before a whole one, even if it is more popular (Algorithm 2)", () => {
    expect(compareC2p(part, whole, 30_000)).toBeLessThan(0);
    expect(chooseVictim([whole, part], 30_000)).toBe(part);
  });

  test("reads close together are ordered by time, others by hits (Algorithm 1)", () => {
    const early = { oic: 1, hits: 9, readMs: 0 };
    const close = { oic: 1, hits: 1, readMs: 10_000 };
    const far = { oic: 1, hits: 1, readMs: 100_000 };
    expect(compareLru(early, close, 30_000)).toBeLessThan(0);
    expect(compareLru(early, far, 30_000)).toBeGreaterThan(0);
    expect(compareLru(far, far, 30_000)).toBe(0);
  });

  test("Algorithm 1 can order in a circle, so it must not be used to sort", () => {
    const a = { oic: 1, hits: 3, readMs: 0 };
    const b = { oic: 1, hits: 2, readMs: 20 };
    const c = { oic: 1, hits: 1, readMs: 40 };
    expect(compareLru(a, b, 30)).toBeLessThan(0);
    expect(compareLru(b, c, 30)).toBeLessThan(0);
    expect(compareLru(c, a, 30)).toBeLessThan(0);
  });

  test("finds no victim without candidates, and refuses values that are not numbers", () => {
    expect(chooseVictim([], 30_000)).toBeUndefined();
    for (const wrong of [NaN, Infinity]) {
      for (const field of ["oic", "hits", "readMs"]) {
        expect(() => chooseVictim([{ ...whole, [field]: wrong }], 1)).toThrow(field);
      }
      expect(() => chooseVictim([whole], wrong)).toThrow("affinityMs");
    }
  });
});

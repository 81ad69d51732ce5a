import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { AgaroseError } from "@agarose/core";
import type { PeerMessage } from "@agarose/solver/cooperation";
import { parsePeerMessage, POPULAR_MAX, STATEMENTS_MAX } from "./peer-message.ts";

const SOUND: PeerMessage = {
  to: "fra",
  turn: 3,
  configuration: 12,
  cache: {
    node: "lhr",
    epoch: 1,
    statedMs: 5,
    isComplete: true,
    statements: [{ key: "a".repeat(32), chunks: [0, 4], hits: 0, readMs: 5 }],
  },
  popularity: {
    popular: [["photos/a.jpg", 1.5]],
    regions: [{ name: "dublin", meanMs: 90, sdMs: 3, msPerByte: 1e-5, down: false }],
    peers: [{ name: "fra", meanMs: 60, sdMs: 3, msPerByte: 0, down: false }],
  },
};

describe("a message of a peer", () => {
  test("is read as it was written", () => {
    expect(parsePeerMessage(JSON.stringify(SOUND))).toEqual(SOUND);
    const { popularity: _, ...events } = SOUND;
    expect(parsePeerMessage(JSON.stringify(events))).toEqual(events);
  });

  const { cache, popularity } = SOUND;
  const statement = cache.statements[0]!;
  test.each([
    ["is not JSON", "{"],
    ["is null", "null"],
    ["has no receiver", JSON.stringify({ ...SOUND, to: 7 })],
    ["has a ticket below 0", JSON.stringify({ ...SOUND, turn: -1 })],
    ["has half a configuration", JSON.stringify({ ...SOUND, configuration: 0.5 })],
    ["has no cache", JSON.stringify({ ...SOUND, cache: undefined })],
    ["has chunk 256", JSON.stringify({ ...SOUND, cache: { ...cache, statements: [{ ...statement, chunks: [256] }] } })],
    [
      "has more statements than one PoP caches objects",
      JSON.stringify({
        ...SOUND,
        cache: {
          ...cache,
          statements: Array.from({ length: STATEMENTS_MAX + 1 }, (_, i) => ({ ...statement, key: `v${i}` })),
        },
      }),
    ],
    ["has a popularity of nothing", JSON.stringify({ ...SOUND, popularity: null })],
    [
      "has too many popular keys",
      JSON.stringify({
        ...SOUND,
        popularity: { ...popularity, popular: Array.from({ length: POPULAR_MAX + 1 }, (_entry, i) => [`k${i}`, 1]) },
      }),
    ],
    ["has negative requests", JSON.stringify({ ...SOUND, popularity: { ...popularity, popular: [["k", -1]] } })],
    [
      "has a region without a latency",
      JSON.stringify({ ...SOUND, popularity: { ...popularity, regions: [{ name: "dublin", down: false }] } }),
    ],
    [
      "has a peer that is neither up nor down",
      JSON.stringify({ ...SOUND, popularity: { ...popularity, peers: [{ name: "fra", meanMs: 1, sdMs: 1 }] } }),
    ],
  ])("is refused when it %s", (_, text) => {
    expect(() => parsePeerMessage(text)).toThrow(expect.objectContaining({ code: "REQUEST_INVALID" }));
  });

  test("is read, or refused with REQUEST_INVALID, whatever it is", () => {
    let read = 0;
    let refused = 0;
    const anything = fc.oneof(
      fc.json(),
      fc.string(),
      fc.json().map((json) => JSON.stringify({ ...SOUND, popularity: JSON.parse(json) as unknown })),
      fc.nat().map((turn) => JSON.stringify({ ...SOUND, turn })),
    );
    fc.assert(
      fc.property(anything, (text) => {
        try {
          parsePeerMessage(text);
          read++;
        } catch (error) {
          expect(error).toBeInstanceOf(AgaroseError);
          expect(error).toMatchObject({ code: "REQUEST_INVALID" });
          refused++;
        }
      }),
    );
    expect(read).toBeGreaterThan(0);
    expect(refused).toBeGreaterThan(0);
  });
});

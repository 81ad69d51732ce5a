import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PeerTable, SILENT_AFTER_MS } from "./peer-table.ts";
import type { PeerMessage } from "./peer-message.ts";

const PEERS = ["iad", "lhr"];
const VERSIONS = ["a", "b", "c"];

function message(
  fields: Partial<PeerMessage["cache"]> & { turn?: number; requests?: number | undefined },
): PeerMessage {
  const { turn = 0, requests, ...cache } = fields;
  return {
    to: "fra",
    turn,
    configuration: 1,
    cache: { node: "lhr", epoch: 1, statedMs: 1, isComplete: false, statements: [], ...cache },
    ...(requests === undefined ? {} : { popularity: { popular: [["k", requests]], regions: [], peers: [] } }),
  };
}

/** Messages as honest senders write them: no two of one sender and epoch are of the same moment. */
const messages = fc
  .uniqueArray(fc.record({ node: fc.constantFrom(...PEERS), epoch: fc.nat(2), statedMs: fc.nat(20) }), {
    selector: (order) => JSON.stringify(order),
    maxLength: 12,
  })
  .chain((orders) =>
    fc.tuple(
      ...orders.map((order) =>
        fc
          .record({
            isComplete: fc.boolean(),
            turn: fc.nat(9),
            requests: fc.option(fc.nat(9), { nil: undefined }),
            statements: fc
              .uniqueArray(fc.constantFrom(...VERSIONS))
              .chain((keys) =>
                fc.tuple(
                  ...keys.map((key) =>
                    fc
                      .subarray([0, 1, 2, 3])
                      .map((chunks) => ({ key, chunks: chunks.toSorted((a, b) => a - b), hits: 0, readMs: 0 })),
                  ),
                ),
              ),
          })
          .map((rest) => message({ ...order, ...rest })),
      ),
    ),
  );

function contents(table: PeerTable): unknown {
  return {
    held: VERSIONS.map((version) => [...table.cache.replicasOf(version)].toSorted(([a], [b]) => (a < b ? -1 : 1))),
    records: PEERS.map((pop) => {
      const { receivedMs: _, ...record } = table.record(pop) ?? { receivedMs: 0 };
      return record;
    }),
  };
}

function tableOf(received: readonly PeerMessage[]): PeerTable {
  const table = new PeerTable();
  for (const one of received) table.merge(one, 0);
  return table;
}

describe("a peer table", () => {
  test("is the same whatever the order in which messages came, and however often", () => {
    const orders = messages.chain((sent) =>
      fc.tuple(
        fc.constant(sent),
        fc.shuffledSubarray(sent, { minLength: sent.length }),
        fc.subarray(sent as PeerMessage[]),
      ),
    );
    fc.assert(
      fc.property(orders, ([sent, shuffled, again]) => {
        const table = tableOf(sent);
        expect(contents(tableOf([...shuffled, ...again]))).toEqual(contents(table));
        for (const one of again) expect(table.merge(one, 1), "a replay is no news").toBe(false);
        expect(contents(table)).toEqual(contents(tableOf(sent)));
      }),
    );
  });

  test("makes good a lost event by the next digest", () => {
    const lost = message({ statedMs: 2, statements: [{ key: "a", chunks: [], hits: 0, readMs: 0 }] });
    const first = message({
      statedMs: 1,
      isComplete: true,
      statements: [{ key: "a", chunks: [1], hits: 0, readMs: 0 }],
    });
    const digest = message({ statedMs: 3, isComplete: true });
    expect(tableOf([first]).cache.replicasOf("a").get("lhr")).toEqual([1]);
    expect(contents(tableOf([first, digest])), "as if the event had come").toEqual(
      contents(tableOf([first, lost, digest])),
    );
  });

  test("does not take a replayed message for a sign of life", () => {
    const table = new PeerTable();
    const received = message({ statedMs: 5 });
    table.merge(received, 0);
    expect(table.isSilent("lhr", SILENT_AFTER_MS)).toBe(false);
    table.merge(received, SILENT_AFTER_MS);
    expect(table.isSilent("lhr", SILENT_AFTER_MS + 1)).toBe(true);
    expect(table.tickets(["lhr", "iad"], SILENT_AFTER_MS + 1)).toEqual([]);
  });

  test("follows a peer that has lost its memory, and not one that is quoted from before", () => {
    const held = message({
      epoch: 1,
      statedMs: 900,
      turn: 7,
      statements: [{ key: "a", chunks: [1], hits: 0, readMs: 0 }],
    });
    const reborn = message({ epoch: 2, statedMs: 10 });
    const table = tableOf([held, reborn, held]);
    expect(table.cache.replicasOf("a").size).toBe(0);
    expect(table.record("lhr")).toMatchObject({ epoch: 2, statedMs: 10, turn: 7 });
  });
});

/** PoPs that say what changed, over a wire that loses, repeats and reorders messages, and PoPs that forget. */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { CacheEvents } from "./cache-events.ts";
import type { PeerMessage } from "./peer-message.ts";
import { PeerTable } from "./peer-table.ts";

const POPS = ["a", "b", "c"];
const KEYS = 12;
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ hold: fc.nat(2), key: fc.nat(KEYS - 1), chunks: fc.subarray([0, 1, 2, 3]) }) },
  { weight: 3, arbitrary: fc.record({ period: fc.nat(2) }) },
  { weight: 2, arbitrary: fc.record({ gathered: fc.nat(2) }) },
  { weight: 4, arbitrary: fc.record({ deliver: fc.nat(1_000) }) },
  { weight: 1, arbitrary: fc.record({ repeat: fc.nat(1_000) }) },
  { weight: 3, arbitrary: fc.record({ lose: fc.nat(1_000) }) },
  { weight: 1, arbitrary: fc.record({ forgetPeers: fc.nat(2) }) },
  { weight: 1, arbitrary: fc.record({ forgetDigest: fc.nat(2) }) },
);

test("whatever is lost, three periods later all PoPs know what the others hold, and most messages are no digests", () => {
  const sent = { digests: 0, others: 0, asked: 0 };
  fc.assert(
    fc.property(fc.array(step, { minLength: 50, maxLength: 200 }), (script) => {
      const pops = POPS.map((name) => ({ name, events: eventsOf(name), table: new PeerTable(), held: held() }));
      let wire: { to: number; message: PeerMessage }[] = [];
      let nowMs = 0;
      const send = (from: number, isPeriod: boolean): void => {
        const { events, table } = pops[from]!;
        nowMs += 1_000;
        const others = POPS.filter((_, to) => to !== from);
        const isWanted = others.some((peer) => table.record(peer)?.lacksDigest);
        const cache = isPeriod ? events.ofPeriod(nowMs, isWanted) : events.take(nowMs);
        if (!cache) return;
        if (isWanted && isPeriod) sent.asked++;
        if (isPeriod) sent[cache.isComplete ? "digests" : "others"]++;
        for (const peer of others) {
          const lacksDigest = table.lacksDigest(peer);
          const message = { to: peer, turn: 0, configuration: 0, cache, base: events.digestMs, lacksDigest };
          wire.push({ to: POPS.indexOf(peer), message });
        }
      };
      const deliver = ({ to, message }: (typeof wire)[number]): void => void pops[to]!.table.merge(message, nowMs);
      for (const one of script) {
        if ("hold" in one) {
          const { events, held: own } = pops[one.hold]!;
          own.set(String(one.key), one.chunks);
          events.recordHeld(String(one.key), one.chunks, (nowMs += 1));
        } else if ("period" in one) send(one.period, true);
        else if ("gathered" in one) send(one.gathered, false);
        else if ("forgetPeers" in one) pops[one.forgetPeers]!.table = new PeerTable();
        else if ("forgetDigest" in one) {
          const pop = pops[one.forgetDigest]!;
          pop.events = eventsOf(pop.name);
          for (const [key, chunks] of pop.held) pop.events.recordHeld(key, chunks, nowMs);
        } else if (wire.length === 0) continue;
        else if ("deliver" in one) deliver(wire.splice(one.deliver % wire.length, 1)[0]!);
        else if ("repeat" in one) deliver(wire[one.repeat % wire.length]!);
        else wire.splice(one.lose % wire.length, 1);
      }
      wire = [];
      for (let period = 0; period < 3; period++) {
        for (const from of POPS.keys()) send(from, true);
        for (const one of wire.splice(0)) deliver(one);
      }
      for (const { table } of pops) {
        for (const { name, held: own, table: itsOwn } of pops) {
          if (table === itsOwn) continue;
          const expected = [...own].filter(([, chunks]) => chunks.length > 0);
          expect(new Map(table.cache.contentsOf(name))).toEqual(new Map(expected));
        }
      }
    }),
  );
  expect(sent.asked, "digests that a PoP asked for").toBeGreaterThan(0);
  expect(sent.others).toBeGreaterThan(sent.digests / 4);
});

const eventsOf = (name: string): CacheEvents => new CacheEvents(name, { epoch: 1 });

/** Most of what a PoP holds does not change. */
const held = (): Map<string, readonly number[]> => new Map();

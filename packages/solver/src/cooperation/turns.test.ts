import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isFirst, nextTurn, type Ticket } from "./turns.ts";

describe("turns", () => {
  test("go round by name and then by ticket", () => {
    const turns = new Map([
      ["fra", 0],
      ["iad", 0],
      ["lhr", 0],
    ]);
    const order: string[] = [];
    for (let i = 0; i < 7; i++) {
      const tickets = [...turns].map(([pop, turn]) => ({ pop, turn }));
      const first = tickets.filter((own) => isFirst(own, without(tickets, own)));
      expect(first.length, "exactly one").toBe(1);
      order.push(first[0]!.pop);
      turns.set(first[0]!.pop, nextTurn(first[0]!, without(tickets, first[0]!)));
    }
    expect(order).toEqual(["fra", "iad", "lhr", "fra", "iad", "lhr", "fra"]);
  });

  test("never let two PoPs go at once, however stale their knowledge of each other, and starve none", () => {
    const steps = fc.array(
      fc.oneof(
        fc.record({ act: fc.nat(2) }),
        fc.record({ deliver: fc.nat(1_000) }),
        fc.record({ lose: fc.nat(1_000) }),
        fc.record({ send: fc.nat(2) }),
      ),
      { minLength: 60, maxLength: 120 },
    );
    let overtaken = 0;
    fc.assert(
      fc.property(steps, (script) => {
        const pops = ["a", "b", "c"].map((pop) => ({ pop, turn: 0, known: new Map<string, number>(), acting: false }));
        const wire: { to: number; ticket: Ticket }[] = [];
        const send = (i: number): void => {
          const { pop, turn } = pops[i]!;
          for (const to of [0, 1, 2]) if (to !== i) wire.push({ to, ticket: { pop, turn } });
        };
        const hear = (at: number): void => {
          const [{ to, ticket }] = wire.splice(at, 1) as [(typeof wire)[number]];
          const { known } = pops[to]!;
          const before = known.get(ticket.pop) ?? 0;
          if (ticket.turn < before) overtaken++;
          known.set(ticket.pop, Math.max(before, ticket.turn));
        };
        const others = (i: number): Ticket[] =>
          pops.filter((_, j) => j !== i).map(({ pop }) => ({ pop, turn: pops[i]!.known.get(pop) ?? 0 }));
        const step = (i: number): void => {
          const own = pops[i]!;
          if (own.acting) {
            own.turn = nextTurn(own, others(i));
            own.acting = false;
            send(i);
          } else if (isFirst(own, others(i))) own.acting = true;
          expect(pops.filter(({ acting }) => acting).length).toBeLessThanOrEqual(1);
        };
        for (const one of script) {
          if ("act" in one) step(one.act);
          else if ("send" in one) send(one.send);
          else if (wire.length > 0 && "lose" in one) wire.splice(one.lose % wire.length, 1);
          else if (wire.length > 0 && "deliver" in one) hear(one.deliver % wire.length);
        }
        // Once messages come through, everyone has a turn.
        const turnsBefore = pops.map(({ turn }) => turn);
        for (let round = 0; round < 30; round++) {
          for (const i of [0, 1, 2]) send(i);
          while (wire.length > 0) hear(0);
          for (const i of [0, 1, 2]) step(i);
        }
        for (const [i, { turn }] of pops.entries()) expect(turn).toBeGreaterThan(turnsBefore[i]!);
      }),
    );
    expect(overtaken, "messages that came out of order").toBeGreaterThan(0);
  });
});

function without(tickets: readonly Ticket[], { pop }: Ticket): Ticket[] {
  return tickets.filter((ticket) => ticket.pop !== pop);
}

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { LeastFirst } from "./least-first.ts";

const OBJECTS = 12;
const step = fc.oneof(
  fc.record({ object: fc.nat(OBJECTS - 1), number: fc.constantFrom(0, 0.5, 1, 1, 2, 7, Infinity) }),
  fc.record({ object: fc.nat(OBJECTS - 1), number: fc.constant(undefined) }),
  fc.constant("take" as const),
);

test("takes the object with the least number, the lower one of equal ones, whatever was set and removed", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const heap = new LeastFirst(OBJECTS);
      const numbers = new Map<number, number>();
      for (const one of steps) {
        const [first] = [...numbers].toSorted(([a, x], [b, y]) => (x === y ? a - b : x - y));
        expect(heap.least).toBe(first?.[1] ?? Infinity);
        expect(heap.size).toBe(numbers.size);
        if (one === "take") {
          if (!first) continue;
          expect(heap.take()).toBe(first[0]);
          numbers.delete(first[0]);
        } else if (one.number === undefined) {
          heap.remove(one.object);
          numbers.delete(one.object);
        } else {
          heap.set(one.object, one.number);
          numbers.set(one.object, one.number);
        }
      }
    }),
  );
});

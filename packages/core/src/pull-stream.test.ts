import { expect, test } from "vitest";
import { pullStream, type PullSink } from "./pull-stream.ts";

/** A stream whose next part is what `arrive` resolves to. */
function waiting() {
  const cancelled: unknown[] = [];
  const failures: unknown[] = [];
  const arrival = Promise.withResolvers<number>();
  let sink!: PullSink<number>;
  const stream = pullStream<number>({
    start: (own) => void (sink = own),
    pull: async (own) => {
      const part = await arrival.promise;
      try {
        own.enqueue(part);
        own.close();
        own.error(new Error("late"));
      } catch (error) {
        failures.push(error);
      }
    },
    cancel: (reason) => void cancelled.push(reason),
  });
  return { stream, sink, arrival, cancelled, failures };
}

test("parts that are wanted arrive, and then the end", async () => {
  const { stream, arrival, failures } = waiting();
  const reader = stream.getReader();
  arrival.resolve(7);
  expect([await reader.read(), await reader.read()]).toEqual([
    { done: false, value: 7 },
    { done: true, value: undefined },
  ]);
  expect(failures).toEqual([]);
});

test("a part that arrives after the consumer has left goes nowhere, and fails nothing", async () => {
  const { stream, sink, arrival, cancelled, failures } = waiting();
  const reader = stream.getReader();
  const read = reader.read();
  await reader.cancel("enough");
  expect([sink.isOver, cancelled]).toEqual([true, ["enough"]]);
  arrival.resolve(7);
  await arrival.promise;
  expect([await read, failures]).toEqual([{ done: true, value: undefined }, []]);
});

test("a part that arrives after an error goes nowhere, and the first error stays", async () => {
  const { stream, sink, arrival, cancelled, failures } = waiting();
  const read = stream.getReader().read();
  sink.error(new Error("first"));
  sink.error(new Error("second"));
  arrival.resolve(7);
  await expect(read).rejects.toThrow("first");
  expect([cancelled, failures]).toEqual([[], []]);
});

test("nothing is asked for before the consumer wants it", async () => {
  let pulls = 0;
  const stream = pullStream<number>({
    pull: async (sink) => {
      pulls++;
      sink.enqueue(pulls);
    },
    cancel: () => {},
  });
  const reader = stream.getReader();
  await new Promise((resolve) => setTimeout(resolve));
  expect(pulls).toBe(0);
  await reader.read();
  expect(pulls).toBe(1);
});

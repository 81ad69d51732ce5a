/** Messages to a worker with reads under way. */
import { expect, test } from "vitest";
import type { ReadEvent } from "../events/read-events.ts";
import { keepAwake } from "./keep-awake.ts";
import { VirtualClock } from "../../test/virtual-clock.ts";

function page() {
  const clock = new VirtualClock();
  const messages: { atMs: number; message: unknown }[] = [];
  let emit: (event: ReadEvent) => void = () => expect.fail("no listener");
  const postMessage = (message: unknown): void => void messages.push({ atMs: clock.now(), message });
  keepAwake({ controller: { postMessage } as unknown as ServiceWorker }, (listener) => (emit = listener), clock);
  return { clock, messages, emit: (type: string, read = "a") => emit({ type, read } as ReadEvent) };
}

test("come every ten seconds while a read is under way, and end with the last one", async () => {
  const { clock, messages, emit } = page();
  await clock.pass(60_000);
  expect(messages).toEqual([]);
  const startMs = clock.now();
  emit("read-start", "a");
  emit("read-start", "b");
  await clock.pass(25_000);
  emit("read-end", "a");
  await clock.pass(10_000);
  emit("read-end", "b");
  await clock.pass(60_000);
  expect(messages.map(({ atMs }) => atMs - startMs)).toEqual([10_000, 20_000, 30_000]);
  expect(messages[0]!.message).toEqual({ agarose: "stay-awake" });
});

test("continue while events of the read arrive, and wake no worker that has ended", async () => {
  const { clock, messages, emit } = page();
  emit("read-start");
  for (let minute = 0; minute < 10; minute++) {
    await clock.pass(60_000);
    emit("request");
  }
  const heardMs = clock.now();
  await clock.pass(600_000);
  expect(messages.length).toBeGreaterThan(60);
  expect(messages.at(-1)!.atMs - heardMs).toBeLessThanOrEqual(120_000);
});

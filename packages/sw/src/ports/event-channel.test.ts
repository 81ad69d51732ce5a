import { expect, test } from "vitest";
import { CHANNEL, type ReadEvent } from "../events/read-events.ts";
import { onRead } from "../page/on-read.ts";
import { eventChannel } from "./event-channel.ts";

function ended(read: string): ReadEvent {
  const none = { kind: undefined, firstByteMs: undefined, error: undefined };
  return { type: "read-end", read, ms: 1, status: 200, bytes: 0, lineMbit: 20, decodeMs: 0, decodedShards: 0, ...none };
}

test("events that are sent together arrive in one message, in their order", async () => {
  const names = ["a", "b", "c"];
  const heard: string[] = [];
  let messages = 0;
  const raw = new BroadcastChannel(CHANNEL);
  raw.addEventListener("message", () => messages++);
  const over = Promise.withResolvers<void>();
  const stop = onRead(({ read }) => {
    heard.push(read);
    if (heard.length === 2 * names.length) over.resolve();
  });
  const send = eventChannel();
  for (const name of names) send(ended(name));
  await expect.poll(() => messages).toBe(1);
  for (const name of names) send(ended(name));
  await over.promise;
  expect(heard).toEqual([...names, ...names]);
  expect(messages).toBe(2);
  raw.close();
  stop();
});

test("a message that is no array of events is ignored", async () => {
  const heard: unknown[] = [];
  const stop = onRead((event) => heard.push(event));
  const other = new BroadcastChannel(CHANNEL);
  other.postMessage({ type: "read-end", read: "a" });
  other.postMessage([{ type: "unknown", read: "b" }, undefined, ended("c")]);
  await expect.poll(() => heard.length).toBe(1);
  expect(heard[0]).toMatchObject({ read: "c" });
  other.close();
  stop();
});

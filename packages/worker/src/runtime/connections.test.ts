import { expect, test } from "vitest";
import { Connections, CONNECTIONS_MAX, regionFetch } from "./connections.ts";

const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

/** A `fetch` whose answers are given by hand. */
function manualFetch() {
  const started: { url: string; init: RequestInit; answer: () => void }[] = [];
  const fetch = (url: string, init: RequestInit): Promise<Response> =>
    new Promise((resolve, reject) => {
      init.signal?.addEventListener("abort", () => reject(init.signal!.reason));
      started.push({ url, init, answer: () => resolve(new Response("x")) });
    });
  return { started, fetch };
}

test("six requests wait for headers at a time, and the next begins when one has them", async () => {
  const { started, fetch } = manualFetch();
  const port = regionFetch(new Connections(), new Set(["http://a.example"]), fetch);
  const all = Array.from({ length: 9 }, (_, i) => port(`http://a.example/${i}`, {}));
  await settled();
  expect(started).toHaveLength(CONNECTIONS_MAX);
  started[3]!.answer();
  await settled();
  expect(started.map(({ url }) => url).at(-1)).toBe("http://a.example/6");
  expect(started).toHaveLength(CONNECTIONS_MAX + 1);
  for (let i = 0; i < 9; i++) {
    started[i]!.answer();
    await settled();
  }
  expect(await Promise.all(all)).toHaveLength(9);
});

test("a request aborted while it queues is never made, and one aborted in flight makes room", async () => {
  const { started, fetch } = manualFetch();
  const port = regionFetch(new Connections(1), new Set(["http://a.example"]), fetch);
  const [first, second] = [new AbortController(), new AbortController()];
  const flying = port("http://a.example/0", { signal: first.signal });
  const queued = port("http://a.example/1", { signal: second.signal });
  const last = port("http://a.example/2", {});
  await settled();
  second.abort();
  await expect(queued).rejects.toThrow("aborted");
  first.abort();
  await expect(flying).rejects.toThrow("aborted");
  await settled();
  expect(started.map(({ url }) => url)).toEqual(["http://a.example/0", "http://a.example/2"]);
  started[1]!.answer();
  expect((await last).status).toBe(200);
});

test("a request whose turn has come does not let others overtake it", async () => {
  const connections = new Connections(1);
  const order: string[] = [];
  const first = connections.run(async () => void order.push("first"));
  const second = connections.run(async () => void order.push("second"));
  const late = first.then(() => connections.run(async () => void order.push("late")));
  await Promise.all([first, second, late]);
  expect(order).toEqual(["first", "second", "late"]);
});

test("only configured hosts are asked, without redirects and past HTTP caches", async () => {
  const { started, fetch } = manualFetch();
  const port = regionFetch(new Connections(), new Set(["http://a.example"]), fetch);
  await expect(port("http://a.example.evil/1", {})).rejects.toMatchObject({ code: "SOURCE_FAILED" });
  void port("http://a.example/bucket/x", { headers: { range: "bytes=0-1" } });
  await settled();
  expect(started).toHaveLength(1);
  expect(started[0]!.init).toMatchObject({ redirect: "manual", cache: "no-store", headers: { range: "bytes=0-1" } });
});

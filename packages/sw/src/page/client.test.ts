import { afterEach, expect, test, vi } from "vitest";
import { agaroseOf, createClient } from "./client.ts";
import { errorOf, type Agarose, type FetchOptions } from "./agarose.ts";
import { FakeWorld, sampleBytes } from "../../test/fake-world.ts";

const BYTES = sampleBytes(5_000);

afterEach(() => vi.unstubAllGlobals());

/** Reads `key`, whose response is whole before virtual time ends. */
async function read(world: FakeWorld, agarose: Agarose, input: string, init?: FetchOptions) {
  const whole = agarose.fetch(input, init).then(async (response) => {
    const error = await errorOf(response);
    return { response, code: error?.code, bytes: error ? undefined : new Uint8Array(await response.arrayBuffer()) };
  });
  return world.clock.settle(whole);
}

function worldOf(key: string): [FakeWorld, Agarose] {
  const world = new FakeWorld();
  world.put(key, BYTES);
  return [world, agaroseOf(world.client())];
}

test("reads an object by its key or its path, and a range of it", async () => {
  const [world, agarose] = worldOf("a/b c.bin");
  for (const input of ["a/b c.bin", "/ec/a/b%20c.bin", "http://localhost/ec/a/b%20c.bin"])
    expect((await read(world, agarose, input)).bytes).toEqual(BYTES);
  const part = await read(world, agarose, "a/b c.bin", { headers: { range: "bytes=10-19" } });
  expect([part.response.status, part.bytes]).toEqual([206, BYTES.subarray(10, 20)]);
});

test("takes the configuration file with its defaults, or reports what is wrong with it", () => {
  const pops = [{ name: "p", url: "https://p.test/" }];
  expect(createClient({ config: { pops, unsigned: true } }).fetch).toBeInstanceOf(Function);
  for (const wrong of [{}, "agarose.json", { pops: [{ name: "p", url: "/relative" }] }]) {
    expect(() => createClient({ config: wrong as object })).toThrow(
      expect.objectContaining({ code: "CONFIG_INVALID" }),
    );
  }
});

test("a token goes to the PoPs and to no bucket", async () => {
  const [world, agarose] = worldOf("members/a");
  await read(world, agarose, "members/a", { headers: { authorization: "Bearer secret" } });
  for (const { to, authorization } of world.requests())
    expect([to, authorization]).toEqual([to, to.startsWith("p") ? "Bearer secret" : undefined]);
  expect(new Set(world.requests().map(({ to }) => to[0]))).toEqual(new Set(["p", "r"]));
});

test("reports its progress up to the length of the object", async () => {
  const [world, agarose] = worldOf("a");
  const reported: number[] = [];
  const onProgress: FetchOptions["onProgress"] = ({ bytes, totalBytes }) => {
    expect(totalBytes).toBe(5_000);
    reported.push(bytes);
  };
  await read(world, agarose, "a", { onProgress });
  expect(reported.at(-1)).toBe(5_000);
  expect(reported).toEqual(reported.toSorted((a, b) => a - b));
});

test.each(["a/../b", "../a", "a//b", "a/./b/"])(
  "an object is read whose key no path could hold as it is: %s",
  async (key) => {
    const [world, agarose] = worldOf(key);
    const { response } = await read(world, agarose, key);
    expect(response.status).toBe(200);
  },
);

test.each([
  ["nothing", {}, 404, "OBJECT_NOT_FOUND"],
  ["..", {}, 400, "KEY_INVALID"],
  ["a", { headers: { range: "bytes=5000-" } }, 416, "RANGE_UNSATISFIABLE"],
])("a read that fails has a status and a code: %s", async (key, init, status, code) => {
  const [world, agarose] = worldOf("a");
  const answered = await read(world, agarose, key, init);
  expect([answered.response.status, answered.code]).toEqual([status, code]);
});

test("an aborted read rejects as fetch does", async () => {
  const [world, agarose] = worldOf("a");
  const reason = new DOMException("enough", "AbortError");
  const aborted = agarose.fetch("a", { signal: AbortSignal.abort(reason) }).catch((error: unknown) => error);
  expect(await world.clock.settle(aborted)).toMatchObject({ name: "AbortError" });
});

test.each([
  ["/api/list", {}],
  ["https://elsewhere.test/ec/a", {}],
  ["/ec/a", { method: "POST" }],
])("what is no object is fetched as always: %s", async (input, init) => {
  const [, agarose] = worldOf("a");
  const fetched = vi.fn<(request: Request) => Promise<Response>>(async ({ url }) => new Response(url));
  vi.stubGlobal("fetch", fetched);
  const { fetch } = agarose;
  expect(await (await fetch(input, init)).text()).toBe(new URL(input, "http://localhost/").href);
});

test("read events arrive until the listener is removed, in a page without a registration too", async () => {
  const [, agarose] = worldOf("a");
  const types: string[] = [];
  const listener = ({ data }: MessageEvent<{ readonly type: string }>): void => void types.push(data.type);
  agarose.addEventListener("read", listener);
  const channel = new BroadcastChannel("agarose");
  channel.postMessage([
    { type: "read-start", read: "1" },
    { type: "read-end", read: "1" },
  ]);
  await vi.waitFor(() => expect(types).toEqual(["read-start", "read-end"]), 60_000);
  agarose.removeEventListener("read", listener);
  channel.postMessage([{ type: "read-start", read: "2" }]);
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(types).toHaveLength(2);
  channel.close();
});

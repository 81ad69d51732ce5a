/** The strategy as a router of Workbox or Serwist calls it. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { AgaroseStrategy } from "./strategy.ts";
import type { HookName, HookParam, StrategyPlugin } from "./strategy-plugins.ts";
import { FakeWorld, sampleBytes } from "../../test/fake-world.ts";

const BYTES = sampleBytes(5_000);

let world: FakeWorld;

beforeEach(() => {
  vi.stubGlobal("location", new URL("https://app.test/sw.js"));
  world = new FakeWorld();
  world.put("a", BYTES);
});

afterEach(() => vi.unstubAllGlobals());

function handle(path: string, plugins: StrategyPlugin[] = [], init: RequestInit = {}) {
  const request = new Request(`https://app.test${path}`, init);
  const kept: Promise<unknown>[] = [];
  const event = { waitUntil: (work: Promise<unknown>) => void kept.push(work) };
  const [response, done] = new AgaroseStrategy(world.client(), { plugins }).handleAll({ request, event });
  const body = async (): Promise<Uint8Array> => new Uint8Array(await (await response).arrayBuffer());
  return { response: world.clock.settle(response), body: () => world.clock.settle(body()), done, kept };
}

/** Notes the hooks that are called, with their parameters. */
function recorder(): { plugin: StrategyPlugin; called: [HookName, HookParam][] } {
  const called: [HookName, HookParam][] = [];
  const hooks = ["handlerWillStart", "requestWillFetch", "fetchDidSucceed", "fetchDidFail", "handlerDidError"] as const;
  const ends = ["handlerWillRespond", "handlerDidRespond", "handlerDidComplete"] as const;
  const plugin = Object.fromEntries(
    [...hooks, ...ends].map((hook) => [hook, (param: HookParam) => void called.push([hook, param])]),
  );
  return { plugin, called };
}

/** Appends a mark to the response's headers. */
const marked = (mark: string): StrategyPlugin => ({
  handlerWillRespond: async ({ response }: HookParam) => {
    const headers = new Headers(response!.headers);
    headers.append("x-mark", mark);
    return new Response(response!.body, { status: response!.status, headers });
  },
});

test("a request to open an object as a page goes to the network, unless the app opts in", async () => {
  const fetched = vi.fn<(request: unknown) => Promise<Response>>(async () => new Response("of the network"));
  vi.stubGlobal("fetch", fetched);
  const opened = { method: "GET", mode: "navigate", url: "https://app.test/ec/a", headers: new Headers() };
  const request = opened as unknown as Request;
  const [response, done] = new AgaroseStrategy(world.client()).handleAll({ request });
  expect(await (await response).text()).toBe("of the network");
  await done;
  expect(fetched.mock.calls).toEqual([[request]]);
  const [read] = new AgaroseStrategy(world.client(), { navigations: true }).handleAll({ request });
  const body = read.then((answered) => answered.arrayBuffer());
  expect(new Uint8Array(await world.clock.settle(body))).toEqual(BYTES);
});

test("answers a read, and calls all its hooks in order with one state", async () => {
  const { plugin, called } = recorder();
  const { body, done, kept } = handle("/ec/a", [plugin]);
  expect(await body()).toEqual(BYTES);
  await world.clock.settle(done);
  expect(kept).toEqual([done]);
  expect(called.map(([hook]) => hook)).toEqual([
    "handlerWillStart",
    "requestWillFetch",
    "fetchDidSucceed",
    "handlerWillRespond",
    "handlerDidRespond",
    "handlerDidComplete",
  ]);
  const [[, first]] = called as [[HookName, HookParam]];
  for (const [, param] of called) expect(param.state).toBe(first.state);
});

test("the worker is kept alive until the body is read", async () => {
  const { body, done, response } = handle("/ec/a");
  let ended = false;
  void done.then(() => (ended = true));
  await response;
  expect(ended).toBe(false);
  await body();
  await world.clock.settle(done);
  expect(ended).toBe(true);
});

test("plugins replace the request and the response, each what the one before left", async () => {
  const ranged: StrategyPlugin = {
    requestWillFetch: ({ request }: HookParam) => new Request(request, { headers: { range: "bytes=10-19" } }),
  };
  const { response, body } = handle("/ec/a", [ranged, marked("1"), marked("2")]);
  const answered = await response;
  expect([answered.status, answered.headers.get("x-mark")]).toEqual([206, "1, 2"]);
  expect(await body()).toEqual(BYTES.subarray(10, 20));
});

test("a read that fails is an error status with its code, which plugins hear of", async () => {
  const { plugin, called } = recorder();
  const { response, done } = handle("/ec/nothing", [plugin]);
  const answered = await response;
  expect([answered.status, answered.headers.get("x-agarose-error")]).toEqual([404, "OBJECT_NOT_FOUND"]);
  await world.clock.settle(done);
  const failures = called.filter(([hook]) => hook === "fetchDidFail" || hook === "handlerDidError");
  expect(failures.map(([hook, { error }]) => [hook, (error as { code?: string }).code])).toEqual([
    ["fetchDidFail", "OBJECT_NOT_FOUND"],
    ["handlerDidError", "OBJECT_NOT_FOUND"],
  ]);
});

test("a plugin may answer in the place of an error", async () => {
  const { response } = handle("/ec/nothing", [{ handlerDidError: () => new Response("placeholder") }]);
  expect(await (await response).text()).toBe("placeholder");
});

test.each([
  ["/elsewhere/a", {}],
  ["/ec/a", { method: "POST", body: "x" }],
])("what a router should not have sent here is refused: %s %j", async (path, init) => {
  const answered = await handle(path, [], init).response;
  expect([answered.status, answered.headers.get("x-agarose-error")]).toEqual([400, "REQUEST_INVALID"]);
});

test("a plugin that throws fails the request, and the work on it ends", async () => {
  const error = new Error("no");
  const completed = vi.fn();
  const plugin: StrategyPlugin = { handlerWillStart: () => Promise.reject(error), handlerDidComplete: completed };
  const { response, done } = handle("/ec/a", [plugin]);
  await expect(response).rejects.toBe(error);
  await world.clock.settle(done);
  expect(completed).toHaveBeenCalledWith(expect.objectContaining({ error }));
});

test("a configuration that is wrong is refused when the strategy is made", () => {
  expect(() => new AgaroseStrategy({ pops: [] })).toThrow(expect.objectContaining({ code: "CONFIG_INVALID" }));
});

test("its worker handles the messages of pages", async () => {
  const listeners = new Map<string, (event: object) => void>();
  const skipWaiting = vi.fn<() => Promise<void>>(async () => {});
  vi.stubGlobal("addEventListener", (type: string, listener: (event: object) => void) => listeners.set(type, listener));
  vi.stubGlobal("skipWaiting", skipWaiting);
  vi.stubGlobal("clients", { claim: vi.fn<() => Promise<void>>(async () => {}) });
  const { client } = new AgaroseStrategy({ pops: [{ name: "p", url: "https://p.test" }], unsigned: true });
  expect([...listeners.keys()]).toEqual(["message"]);
  const preload = vi.spyOn(client, "preload").mockResolvedValue();
  const purge = vi.spyOn(client, "purge");
  const send = async (data: unknown): Promise<void> => {
    const work: Promise<unknown>[] = [];
    listeners.get("message")!({ data, waitUntil: (promise: Promise<unknown>) => void work.push(promise) });
    await Promise.all(work);
  };
  for (const message of ["something else", null, { agarose: "skip-waiting" }, { agarose: "claim" }])
    await send(message);
  expect(skipWaiting).toHaveBeenCalledOnce();
  expect(clients().claim).toHaveBeenCalledOnce();
  await send({ agarose: "preload", keys: ["a"] });
  expect(preload.mock.calls).toEqual([[["a"]]]);
  await send({ agarose: "purge", keys: ["a"], prefix: "b/" });
  const [isPurged] = purge.mock.calls[0]!;
  expect(["a", "b/c", "c"].map(isPurged)).toEqual([true, true, false]);
  // A second strategy that reads by the same client does not do it twice.
  listeners.clear();
  expect(new AgaroseStrategy(client).client).toBe(client);
  expect([...listeners.keys()]).toEqual([]);
});

function clients(): { claim: () => Promise<void> } {
  return (globalThis as unknown as { clients: { claim: () => Promise<void> } }).clients;
}

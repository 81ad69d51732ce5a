/** `handle` as a router of Workbox or Serwist calls it. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { handleBy } from "./handle.ts";
import { createHandle } from "../sw.ts";
import { FakeScope } from "../../test/fake-scope.ts";
import { FakeWorld, sampleBytes } from "../../test/fake-world.ts";

const BYTES = sampleBytes(5_000);

let world: FakeWorld;

beforeEach(() => {
  world = new FakeWorld();
  world.put("a", BYTES);
});

afterEach(() => vi.unstubAllGlobals());

/** The response to a request, and what keeps the worker alive. */
function handled(path: string, init: RequestInit = {}, navigations = false) {
  const client = world.client();
  const kept: Promise<unknown>[] = [];
  const event = { waitUntil: (work: Promise<unknown>) => void kept.push(work) };
  const routes = { origin: "https://app.test", prefix: "/ec/", navigations };
  const handle = handleBy((request, onEnd) => client.answer(request, onEnd), routes);
  const given = {
    method: "GET",
    url: `https://app.test${path}`,
    headers: new Headers(),
    ...init,
  } as unknown as Request;
  const response = handle(given, event);
  return { response: response && world.clock.settle(response), kept };
}

test("a request for an object has a response, and the worker is kept alive until its body is read", async () => {
  const { response, kept } = handled("/ec/a");
  let isOver = false;
  void Promise.all(kept).then(() => (isOver = true));
  const answered = (await response)!;
  expect([answered.status, isOver, kept.length]).toEqual([200, false, 1]);
  expect(new Uint8Array(await world.clock.settle(answered.arrayBuffer()))).toEqual(BYTES);
  await vi.waitFor(() => expect(isOver).toBe(true), 60_000);
});

test.each([
  ["another path", "/other", {}, false],
  ["a POST", "/ec/a", { method: "POST" }, false],
  ["a request to open an object as a page", "/ec/a", { mode: "navigate" }, false],
  ["a request to open an object as a page, where the app opts in", "/ec/a", { mode: "navigate" }, true],
] as const)("of %s", async (_what, path, init, navigations) => {
  const { response, kept } = handled(path, init as RequestInit, navigations);
  expect(kept).toHaveLength(navigations ? 1 : 0);
  expect((await response)?.status).toBe(navigations ? 200 : undefined);
});

test.each([
  ["/ec/nothing", 404, "OBJECT_NOT_FOUND"],
  ["/ec/%FF", 400, "KEY_INVALID"],
])("a read that fails is an error status with its code: %s", async (path, status, code) => {
  const { response, kept } = handled(path);
  const answered = (await response)!;
  expect([answered.status, answered.headers.get("x-agarose-error")]).toEqual([status, code]);
  await Promise.all(kept);
});

test("its worker handles the messages of pages, and listens to nothing else", async () => {
  const scope = new FakeScope();
  vi.stubGlobal("location", scope.location);
  const listen = vi.fn<FakeScope["addEventListener"]>(scope.addEventListener.bind(scope));
  vi.stubGlobal("addEventListener", listen);
  vi.stubGlobal("skipWaiting", () => scope.skipWaiting());
  const { pops } = world;
  createHandle({ pops: pops.map(({ name, url }) => ({ name, url })), unsigned: true });
  expect(listen.mock.calls.map(([type]) => type)).toEqual(["message"]);
  await scope.fire("message", { data: { type: "SKIP_WAITING" } });
  await scope.fire("message", { data: { type: "of another library" } });
  await scope.fire("message", { data: "text" });
  expect(scope.calls).toEqual(["skipWaiting"]);
});

test("a configuration that is wrong is refused when it is made", () => {
  vi.stubGlobal("location", new URL("https://app.test/sw.js"));
  expect(() => createHandle({ pops: [] })).toThrow(expect.objectContaining({ code: "CONFIG_INVALID" }));
});

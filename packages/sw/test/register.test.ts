/** What `register` refuses before it troubles the browser; the rest needs one and is tested end to end. */
import { afterEach, expect, test, vi } from "vitest";
import { register } from "../src/register.ts";
import { stamped, VERSION } from "../src/worker-file.ts";

afterEach(() => vi.unstubAllGlobals());

/** The links that are added to the page's head go to `links`. */
function stubPage(container: Partial<ServiceWorkerContainer>, links: HTMLLinkElement[] = []): void {
  const head = { append: (link: HTMLLinkElement) => void links.push(link) };
  vi.stubGlobal("document", { baseURI: "https://app.test/page", head, createElement: () => ({}) });
  vi.stubGlobal("navigator", { serviceWorker: container });
}

test.each(["/agarose-sw.js", "/lib/agarose-sw.offline.js?prefix=/media/"])(
  "a drop-in file without a configuration is refused at once: %s",
  async (url) => {
    const asked = vi.fn<ServiceWorkerContainer["register"]>();
    stubPage({ register: asked });
    await expect(register(url)).rejects.toMatchObject({ code: "CONFIG_INVALID", details: { url } });
    expect(asked).not.toHaveBeenCalled();
  },
);

const CONFIG = { pops: [{ name: "p", url: "https://p.test" }] };

/** A page whose server sends `body` for the worker's file, nothing for its decoder, and a good configuration. */
function serve(body: string, type: string, config: object = CONFIG): void {
  const answers: Record<string, () => Response> = {
    "/agarose.json": () => Response.json(config),
    "/agarose-decoder.js": () => new Response(null, { status: 404 }),
  };
  const fetch = vi.fn<typeof globalThis.fetch>(async (url) => {
    const answer = answers[new URL(String(url)).pathname];
    return answer ? answer() : new Response(body, { headers: { "content-type": type } });
  });
  vi.stubGlobal("fetch", fetch);
}

const URL_WITH_CONFIG = "/agarose-sw.js?config=/agarose.json";

test("a file that cannot be registered because it is HTML is refused with that reason", async () => {
  serve("<!doctype html>", "text/html");
  const refusal = new DOMException("unsupported MIME type", "SecurityError");
  stubPage({ register: vi.fn<ServiceWorkerContainer["register"]>().mockRejectedValue(refusal) });
  await expect(register(URL_WITH_CONFIG)).rejects.toMatchObject({
    code: "CONFIG_INVALID",
    details: { problem: "type", type: "text/html" },
  });
});

test("a stale file is registered all the same, and told of", async () => {
  serve((await stamped("0;")).replace(VERSION, "0.0.1"), "text/javascript");
  const registration = {} as ServiceWorkerRegistration;
  stubPage({
    register: vi.fn<ServiceWorkerContainer["register"]>().mockResolvedValue(registration),
    controller: {} as ServiceWorker,
  });
  const told = Promise.withResolvers<unknown>();
  await expect(register(URL_WITH_CONFIG, { onStale: told.resolve })).resolves.toBe(registration);
  expect(await told.promise).toMatchObject({ details: { problem: "version", version: "0.0.1", expected: VERSION } });
});

test.each([
  ["is said to be missing where there is no WebAssembly", false],
  ["is not asked for where there is", true],
])("the decoder of a worker that is not installed %s", async (_name, hasWasm) => {
  serve(await stamped("0;"), "text/javascript");
  if (!hasWasm) vi.stubGlobal("WebAssembly", undefined);
  const worker = Object.assign(new EventTarget(), { state: "redundant" }) as unknown as ServiceWorker;
  const registration = { installing: worker, scope: "https://app.test/" } as unknown as ServiceWorkerRegistration;
  const container = Object.assign(new EventTarget(), { register: async () => registration, controller: null });
  stubPage(container as unknown as ServiceWorkerContainer);
  vi.stubGlobal("location", new URL("https://app.test/page"));
  const decoder = "https://app.test/agarose-decoder.js";
  await expect(register(URL_WITH_CONFIG)).rejects.toMatchObject({
    code: "CONFIG_INVALID",
    details: hasWasm ? { scope: "https://app.test/" } : { problem: "missing", url: decoder },
  });
  const asked = vi.mocked(fetch).mock.calls.map(([url]) => url);
  expect(asked.includes(decoder)).toBe(!hasWasm);
});

test("a worker of one's own needs no configuration in its URL", async () => {
  const registration = {} as ServiceWorkerRegistration;
  const asked = vi.fn<ServiceWorkerContainer["register"]>().mockResolvedValue(registration);
  stubPage({ register: asked, controller: {} as ServiceWorker });
  await expect(register("/my-agarose-sw.js")).resolves.toBe(registration);
  expect(asked).toHaveBeenCalledOnce();
});

test.each([
  [false, ["https://p.test", "https://r.test:8443"]],
  [true, []],
])("connections to PoPs and regions are opened ahead of reads, not with Save-Data: %s", async (saveData, origins) => {
  const links: HTMLLinkElement[] = [];
  const registration = {} as ServiceWorkerRegistration;
  stubPage({ register: async () => registration, controller: {} as ServiceWorker }, links);
  Object.assign(navigator, { connection: { saveData } });
  const pops = [
    { name: "p", url: "https://p.test/pop" },
    { name: "q", url: "https://p.test" },
  ];
  serve("", "text/javascript", { pops, regions: [{ name: "r", url: "https://r.test:8443/bucket" }] });
  await register("/my-worker.js?config=/agarose.json");
  expect(links.map(({ rel, crossOrigin, href }) => [rel, crossOrigin, href])).toEqual(
    origins.map((origin) => ["preconnect", "anonymous", origin]),
  );
});

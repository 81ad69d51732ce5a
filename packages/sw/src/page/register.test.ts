/** `register` with emulated servers and browsers. The real ones are in the browser tests. */
import { afterEach, describe, expect, test, vi } from "vitest";
import { Agarose } from "./agarose.ts";
import { register } from "./register.ts";
import { stamped } from "../../test/stamped.ts";
import { WORKER_FILES } from "../common/worker-files.ts";
import { VERSION } from "./worker-file.ts";

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const ORIGIN = "https://app.test";
const URL_WITH_CONFIG = "/agarose-sw.js?config=/agarose.json";
const CONFIG = { pops: [{ name: "p", url: "https://p.test" }], unsigned: true };

class FakeWorker extends EventTarget {
  readonly scriptURL: string;
  readonly received: unknown[] = [];
  state: ServiceWorkerState;

  constructor(path: string, state: ServiceWorkerState) {
    super();
    this.scriptURL = `${ORIGIN}${path}`;
    this.state = state;
  }

  postMessage(message: unknown): void {
    this.received.push(message);
  }

  become(state: ServiceWorkerState): void {
    this.state = state;
    this.dispatchEvent(new Event("statechange"));
  }
}

class FakeRegistration extends EventTarget {
  readonly scope = `${ORIGIN}/`;
  installing: FakeWorker | null = null;
  waiting: FakeWorker | null = null;
  active: FakeWorker | null = null;
}

/** A page's `navigator.serviceWorker`: whatever is registered gets `registration`. */
class FakeContainer extends EventTarget {
  readonly registration = new FakeRegistration();
  readonly register = vi.fn<(url: string, options: object) => Promise<FakeRegistration>>(async () => this.registration);
  controller: FakeWorker | null = null;

  /** Without a worker, or with one that is in charge. */
  constructor(controller?: string) {
    super();
    if (controller === undefined) return;
    this.controller = new FakeWorker(controller, "activated");
    this.registration.active = this.controller;
  }

  async getRegistration(): Promise<FakeRegistration | undefined> {
    const { installing, waiting, active } = this.registration;
    return (installing ?? waiting ?? active) ? this.registration : undefined;
  }

  control(worker: FakeWorker): void {
    this.controller = worker;
    this.dispatchEvent(new Event("controllerchange"));
  }
}

/** A page with this container. The links that are added to its head go to `links`. */
function stubPage(container: FakeContainer, links: HTMLLinkElement[] = []): void {
  const head = { append: (link: HTMLLinkElement) => void links.push(link) };
  vi.stubGlobal("document", { baseURI: `${ORIGIN}/page`, head, createElement: () => ({}) });
  vi.stubGlobal("location", new URL(`${ORIGIN}/page`));
  vi.stubGlobal("navigator", { serviceWorker: container });
}

interface Served {
  /** Of the worker's file. Default: as it should be. */
  readonly worker?: Response;
  /** As it should be, too. */
  readonly codec?: () => Response;
  readonly config?: () => Response;
}

const SCRIPT = { headers: { "content-type": "text/javascript" } };
const noFile = (): Response => new Response(null, { status: 404 });

async function serve({ worker, codec, config = () => Response.json(CONFIG) }: Served = {}): Promise<void> {
  const sound = worker ?? new Response(stamped("0;"), SCRIPT);
  const answers: Record<string, () => Response> = {
    "/agarose.json": config,
    "/app/a&b.json": config,
    "/agarose-codec.js": codec ?? (() => new Response(stamped("1;", "agarose-codec.js"), SCRIPT)),
  };
  const fetch = async (url: string): Promise<Response> => {
    const answer = answers[new URL(url).pathname];
    return answer ? answer() : sound.clone();
  };
  vi.stubGlobal("fetch", vi.fn<typeof fetch>(fetch));
}

const offline = (): never => {
  throw new TypeError("Failed to fetch");
};
const unsound = (): Response => Response.json({ pops: [] });

test.each([
  [{}, URL_WITH_CONFIG],
  [{ prefix: "/media/" }, `${URL_WITH_CONFIG}&prefix=/media/`],
  [{ prefix: "/ec/", claim: false }, `${URL_WITH_CONFIG}&claim=no`],
  [{ navigations: true }, `${URL_WITH_CONFIG}&navigations=yes`],
  [{ worker: "/app/agarose-sw.js?v=2", config: "/app/a&b.json" }, "/app/agarose-sw.js?v=2&config=/app/a%26b.json"],
  [{ worker: "/agarose-sw-3f2a.js" }, "/agarose-sw-3f2a.js?config=/agarose.json"],
  [{ worker: "/my-worker.js" }, "/my-worker.js"],
  [{ worker: "/my-worker.js", config: "/agarose.json" }, "/my-worker.js?config=/agarose.json"],
])("the worker's URL has what the worker must know at once: %j", async (options, url) => {
  const container = new FakeContainer("/agarose-sw.js");
  stubPage(container);
  await serve();
  await register(options);
  expect(container.register.mock.calls.map(([registered]) => registered)).toEqual([url]);
});

test("a drop-in file as a module, which it cannot be, is refused at once", async () => {
  const container = new FakeContainer();
  stubPage(container);
  await expect(register({ type: "module" })).rejects.toMatchObject({ code: "CONFIG_INVALID" });
  expect(container.register).not.toHaveBeenCalled();
});

test("what it returns reads below the prefix", async () => {
  stubPage(new FakeContainer("/agarose-sw.js"));
  await serve();
  const agarose = await register({ prefix: "/media/" });
  vi.stubGlobal("fetch", async ({ url }: Request) => new Response(url, { headers: { "x-agarose-read": "edge" } }));
  expect(await (await agarose.fetch("a")).text()).toBe(`${ORIGIN}/media/a`);
});

test.each(Object.keys(WORKER_FILES))("a page that a foreign worker controls is not ready for %s", async (name) => {
  const container = new FakeContainer("/foreign.js");
  stubPage(container);
  await serve();
  await expect(register({ worker: `/${name}`, timeoutMs: 20 })).rejects.toMatchObject({
    code: "READ_TIMEOUT",
    details: { controller: `${ORIGIN}/foreign.js` },
  });
});

test.each(Object.keys(WORKER_FILES))("a page that %s controls moves to another file of Agarose", async (name) => {
  for (const other of Object.keys(WORKER_FILES)) {
    const container = new FakeContainer(`/${name}?config=/agarose.json`);
    stubPage(container);
    await serve();
    await expect(register({ worker: `/${other}`, timeoutMs: 2_000 })).resolves.toBeInstanceOf(Agarose);
  }
});

test.each(Object.entries(WORKER_FILES))(
  "a configuration with `offline` fits a file that has a store: %s",
  async (name, { store }) => {
    const container = new FakeContainer(`/${name}?config=/agarose.json`);
    container.registration.active = null;
    stubPage(container);
    await serve({ config: () => Response.json({ ...CONFIG, offline: { bytes: 1 } }) });
    const registered = register({ worker: `/${name}` });
    if (store) await expect(registered).resolves.toBeInstanceOf(Agarose);
    else await expect(registered).rejects.toMatchObject({ code: "CONFIG_INVALID", details: { field: "offline" } });
  },
);

test("a worker of one's own needs no configuration in its URL, and may be a module", async () => {
  const container = new FakeContainer("/my-agarose-sw.js");
  stubPage(container);
  await expect(register({ worker: "/my-agarose-sw.js", type: "module", scope: "/a/" })).resolves.toBeInstanceOf(
    Agarose,
  );
  expect(container.register.mock.calls).toEqual([
    ["/my-agarose-sw.js", { type: "module", scope: "/a/", updateViaCache: "none" }],
  ]);
});

describe("a configuration", () => {
  test.each([
    ["that is unsound", unsound],
    ["that cannot be fetched", offline],
  ])("%s is refused before a first worker is registered", async (_name, config) => {
    const container = new FakeContainer();
    stubPage(container);
    await serve({ config });
    await expect(register()).rejects.toMatchObject({ code: "CONFIG_INVALID" });
    expect(container.register).not.toHaveBeenCalled();
  });

  test("that cannot be fetched, as without a network, is not needed by a page whose worker is there", async () => {
    const container = new FakeContainer(URL_WITH_CONFIG);
    stubPage(container);
    await serve({ config: offline });
    const onStale = vi.fn<() => void>();
    await expect(register({ onStale })).resolves.toBeInstanceOf(Agarose);
    expect(onStale).not.toHaveBeenCalled();
  });

  test.each([
    [{ prefix: "/media/" }, "/photos/", "/media/"],
    [{}, "/media/", "/ec/"],
  ])("with another prefix than %j of register is refused by both names", async (options, prefix, expected) => {
    const container = new FakeContainer();
    stubPage(container);
    await serve({ config: () => Response.json({ ...CONFIG, prefix }) });
    await expect(register(options)).rejects.toMatchObject({
      code: "CONFIG_INVALID",
      message: expect.stringContaining(`register({ prefix: "${prefix}" })`),
      details: { field: "prefix", prefix, expected },
    });
    expect(container.register).not.toHaveBeenCalled();
  });

  test("with the prefix of register, or none, is taken", async () => {
    for (const config of [CONFIG, { ...CONFIG, prefix: "/media/" }]) {
      stubPage(new FakeContainer("/agarose-sw.js"));
      await serve({ config: () => Response.json(config) });
      await expect(register({ prefix: "/media/" })).resolves.toBeInstanceOf(Agarose);
    }
  });

  test("that has become unsound is reported when a worker has a sound one", async () => {
    const container = new FakeContainer(URL_WITH_CONFIG);
    stubPage(container);
    await serve({ config: unsound });
    const onStale = vi.fn<() => void>();
    await expect(register({ onStale })).resolves.toBeInstanceOf(Agarose);
    expect(onStale.mock.calls).toMatchObject([[{ code: "CONFIG_INVALID", details: { field: "configuration" } }]]);
  });
});

describe("the worker's file", () => {
  test("is named as the reason where HTML came in its place and it cannot be registered", async () => {
    const container = new FakeContainer();
    container.register.mockRejectedValue(new DOMException("unsupported MIME type", "SecurityError"));
    stubPage(container);
    await serve({ worker: new Response("<!doctype html>", { headers: { "content-type": "text/html" } }) });
    await expect(register()).rejects.toMatchObject({
      code: "CONFIG_INVALID",
      details: { problem: "type", type: "text/html" },
    });
  });

  test("is registered although it is stale, and reported", async () => {
    const container = new FakeContainer(URL_WITH_CONFIG);
    stubPage(container);
    const old = stamped("0;").replace(VERSION, "0.0.1");
    await serve({ worker: new Response(old, { headers: { "content-type": "text/javascript" } }) });
    const received = Promise.withResolvers<unknown>();
    await expect(register({ onStale: received.resolve })).resolves.toBeInstanceOf(Agarose);
    expect(await received.promise).toMatchObject({
      details: { problem: "version", version: "0.0.1", expected: VERSION },
    });
  });

  const anotherCodec = (): Response =>
    new Response(stamped("1;", "agarose-codec.js").replace(/codec \d+/, "codec 0"), SCRIPT);

  test.each([
    ["missing", noFile],
    ["version", anotherCodec],
    ["foreign", () => new Response(stamped("0;"), SCRIPT)],
  ])("is sound, and it was not installed: its codec is named as the reason: %s", async (problem, codec) => {
    const container = new FakeContainer();
    container.registration.installing = new FakeWorker("/agarose-sw.js", "redundant");
    stubPage(container);
    await serve({ codec });
    await expect(register()).rejects.toMatchObject({
      code: "CONFIG_INVALID",
      message: expect.stringContaining("/agarose-codec.js"),
      details: { problem, url: `${ORIGIN}/agarose-codec.js` },
    });
  });

  test("is sound and in charge: a codec that the next worker could not use is reported", async () => {
    stubPage(new FakeContainer(URL_WITH_CONFIG));
    await serve({ codec: anotherCodec });
    const received = Promise.withResolvers<unknown>();
    await register({ onStale: received.resolve });
    expect(await received.promise).toMatchObject({
      details: { problem: "version", version: "0", url: `${ORIGIN}/agarose-codec.js` },
    });
  });

  test("and its codec are sound and in charge: nothing is reported", async () => {
    stubPage(new FakeContainer(URL_WITH_CONFIG));
    await serve();
    const onStale = vi.fn<() => void>();
    await register({ onStale });
    await vi.waitFor(() => expect(fetch).toHaveBeenCalledTimes(3), 60_000);
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect(vi.mocked(fetch).mock.calls.map(([url]) => new URL(String(url)).pathname)).toEqual([
      "/agarose.json",
      "/agarose-sw.js",
      "/agarose-codec.js",
    ]);
    expect(onStale).not.toHaveBeenCalled();
  });
});

describe("control of the page", () => {
  test("is waited for, and asked of a worker as soon as that is active", async () => {
    const container = new FakeContainer();
    const worker = new FakeWorker("/agarose-sw.js", "installing");
    container.registration.installing = worker;
    stubPage(container);
    await serve();
    let isRegistered = false;
    const registered = register().then(() => (isRegistered = true));
    await vi.waitFor(() => expect(container.register).toHaveBeenCalled(), 60_000);
    expect(worker.received).toEqual([]);
    Object.assign(container.registration, { installing: null, active: worker });
    worker.become("activated");
    await vi.waitFor(() => expect(worker.received).toEqual([{ agarose: "claim" }]), 60_000);
    expect(isRegistered).toBe(false);
    container.control(worker);
    await registered;
  });

  test("is given by an older worker where a newer one fails to install, also after a hard reload", async () => {
    const container = new FakeContainer();
    const older = new FakeWorker("/agarose-sw.js", "activated");
    Object.assign(container.registration, { active: older, installing: new FakeWorker("/agarose-sw.js", "redundant") });
    stubPage(container);
    await serve();
    const registered = register();
    await vi.waitFor(() => expect(older.received).toEqual([{ agarose: "claim" }]), 60_000);
    container.control(older);
    await expect(registered).resolves.toBeInstanceOf(Agarose);
  });

  test("is not waited for where the worker leaves open pages alone", async () => {
    const container = new FakeContainer();
    const worker = new FakeWorker("/agarose-sw.js", "activated");
    container.registration.active = worker;
    stubPage(container);
    await serve();
    await expect(register({ claim: false })).resolves.toBeInstanceOf(Agarose);
    await expect(register({ worker: "/my-worker.js", claim: false })).resolves.toBeInstanceOf(Agarose);
    expect(worker.received, "no claim").toEqual([{ agarose: "configure" }]);
  });

  test("by another worker does not count, is named when it does not end, and gets no message", async () => {
    vi.useFakeTimers();
    const container = new FakeContainer("/other-sw.js");
    container.registration.waiting = new FakeWorker("/agarose-sw.js", "installed");
    stubPage(container);
    await serve();
    const registered = register({ timeoutMs: 300 });
    const refusal = expect(registered).rejects.toMatchObject({
      code: "READ_TIMEOUT",
      message: expect.stringContaining("300 ms"),
      details: { controller: `${ORIGIN}/other-sw.js` },
    });
    container.registration.waiting.become("installed");
    await vi.advanceTimersByTimeAsync(300);
    await refusal;
    expect(container.controller!.received).toEqual([]);
  });

  test("by another worker ends when a page lets the new one take over", async () => {
    const container = new FakeContainer("/other-sw.js");
    const worker = new FakeWorker("/agarose-sw.js", "installed");
    container.registration.waiting = worker;
    stubPage(container);
    await serve();
    const registered = register({ onUpdate: (activate) => activate() });
    await vi.waitFor(() => expect(worker.received).toEqual([{ type: "SKIP_WAITING" }]), 60_000);
    Object.assign(container.registration, { waiting: null, active: worker });
    container.control(worker);
    await expect(registered).resolves.toBeInstanceOf(Agarose);
  });

  test("by an older worker of Agarose counts, and a newer one that is found later is reported once it waits", async () => {
    const container = new FakeContainer("/lib/agarose-sw.js?config=/old.json");
    stubPage(container);
    await serve();
    const updates: (() => void)[] = [];
    await register({ onUpdate: (activate) => void updates.push(activate) });
    const newer = new FakeWorker("/agarose-sw.js", "installing");
    container.registration.installing = newer;
    container.registration.dispatchEvent(new Event("updatefound"));
    expect(updates).toHaveLength(0);
    newer.become("installed");
    expect(updates).toHaveLength(1);
    updates[0]!();
    expect(newer.received).toEqual([{ type: "SKIP_WAITING" }]);
  });
});

test.each([
  [false, ["https://p.test", "https://r.test:8443"]],
  [true, []],
])("connections to PoPs and regions are opened ahead of reads, not with Save-Data: %s", async (saveData, origins) => {
  const links: HTMLLinkElement[] = [];
  stubPage(new FakeContainer("/my-worker.js?config=/agarose.json"), links);
  Object.assign(navigator, { connection: { saveData } });
  const pops = [
    { name: "p", url: "https://p.test/pop" },
    { name: "q", url: "https://p.test" },
  ];
  await serve({
    config: () => Response.json({ pops, regions: [{ name: "r", url: "https://r.test:8443/bucket" }], unsigned: true }),
  });
  await register({ worker: "/my-worker.js", config: "/agarose.json" });
  expect(links.map(({ rel, crossOrigin, href }) => [rel, crossOrigin, href])).toEqual(
    origins.map((origin) => ["preconnect", "anonymous", origin]),
  );
});

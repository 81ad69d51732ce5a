import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { DemoOptions, Page } from "@agarose/dev-world";
import { startDemo } from "./server.ts";

let demo: Page;

beforeAll(async () => {
  const options: Partial<Record<keyof DemoOptions, unknown>> = {
    control: "http://control.test",
    world: {
      pops: [{ name: "fra", url: "http://fra.test" }],
      regions: [],
      state: { near: "fra" } as never,
      options: { geography: { pops: ["fra"], regionLatencyMs: { fra: {} } }, cacheBytes: 1 } as never,
      popBuckets: { fra: {} },
      linkBeside: async () => "http://cdn.test",
      cron: async () => {},
    },
    uploader: { copy: async () => "copy" },
    dropInFiles: async () => new Map([["agarose-sw.js", new TextEncoder().encode("/* worker */")]]),
  };
  demo = await startDemo(options as unknown as DemoOptions);
});

afterAll(() => demo.close());

/** The tests of `@agarose/dev-world/app-host` cover the other paths. */
describe("the page's host", () => {
  test("gives the page the control address and the client configuration", async () => {
    const pops = [{ name: "fra", url: "http://fra.test" }];
    const config = { pops, regions: [], publicKeys: [expect.stringMatching(/^ed25519:/)] };
    const world = await (await fetch(`${demo.url}world.json`)).json();
    expect(world).toEqual({ control: "http://control.test", config, copies: { fra: "http://cdn.test" } });
    expect(await (await fetch(`${demo.url}agarose.json`)).json()).toEqual(config);
  });

  test("serves the page and its modules", async () => {
    expect(await (await fetch(demo.url)).text()).toContain("<title>Agarose");
    const module = await fetch(`${demo.url}src/main.ts`);
    expect(module.headers.get("content-type")).toContain("javascript");
  });

  test("serves the service worker for the whole origin, and 404 for other files", async () => {
    const worker = await fetch(`${demo.url}agarose-sw.js?config=/agarose.json`);
    expect(worker.headers.get("service-worker-allowed")).toBe("/");
    expect(await worker.text()).toBe("/* worker */");
    expect((await fetch(`${demo.url}secret.js`)).status).toBe(404);
  });
});

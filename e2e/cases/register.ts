/**
 * The page's side of Agarose, `agarose.js`: how it registers, follows updates, and reads where no worker of ours
 * answers.
 */
import { expect } from "@playwright/test";
import type { AppFile } from "../fixtures/origin-host.ts";
import type { AppPage } from "../fixtures/app-page.ts";
import { sha256 } from "../fixtures/app.ts";
import { importPageSide, type InPage } from "../fixtures/initialised-app.ts";
import type { BrowserCase, Surroundings } from "./case.ts";

/** Opens the app with `agarose` in its page, no service worker yet. */
async function openPage(
  { openAppServedWith }: Surroundings,
  files: Readonly<Record<string, AppFile>> = {},
): Promise<AppPage> {
  const { page } = await openAppServedWith({}, files);
  await importPageSide(page);
  return page;
}

/**
 * Reads a key by the worker of the page, or by its own client: the hash of the bytes, or the code of the error.
 */
function fetched(page: AppPage, key: string, config?: object): Promise<string> {
  return page.evaluate(
    async ([wanted, own]) => {
      const { agarose, handle } = globalThis as unknown as InPage;
      const response = await (own ? agarose.createClient({ config: own }) : handle).fetch(wanted);
      const error = await agarose.errorOf(response);
      if (error) return error.code;
      const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", await response.arrayBuffer()));
      return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    },
    [key, config] as const,
  );
}

/** A worker that has nothing to do with Agarose and answers everything with a page, as single-page apps' do. */
const OTHER_WORKER = `
addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("fetch", (event) => {
  const { pathname } = new URL(event.request.url);
  if (pathname.startsWith("/ec/"))
    event.respondWith(new Response("<!doctype html>", { headers: { "content-type": "text/html" } }));
});`;

export const registerCases: readonly BrowserCase[] = [
  {
    name: "a newer worker waits, is reported, and takes over when the page lets it",
    async run(surroundings) {
      const page = await openPage(surroundings);
      const scripts = await page.evaluate(async () => {
        const { register } = (globalThis as unknown as InPage).agarose;
        const container = navigator.serviceWorker;
        await register({ scope: "/" });
        const activate = await new Promise<() => void>((onUpdate, onError) => {
          register({ worker: "/agarose-sw.js?release=2", scope: "/", onUpdate }).catch(onError);
        });
        const before = container.controller!.scriptURL;
        const changed = new Promise((resolve) =>
          container.addEventListener("controllerchange", resolve, { once: true }),
        );
        activate();
        await changed;
        return [before, container.controller!.scriptURL].map((script) => new URL(script).search);
      }, undefined);
      expect(scripts).toEqual(["?config=/agarose.json", "?release=2&config=/agarose.json"]);
    },
  },
  {
    name: "a worker that leaves open pages alone answers pages that load after it",
    async run(surroundings) {
      const page = await openPage(surroundings);
      const controlled = await page.evaluate(async () => {
        await (globalThis as unknown as InPage).agarose.register({ scope: "/", claim: false });
        const isControlled = (one: Window): boolean => one.navigator.serviceWorker.controller !== null;
        const frame = document.createElement("iframe");
        const loaded = new Promise((resolve) => frame.addEventListener("load", resolve));
        frame.src = "/blank";
        document.body.append(frame);
        await loaded;
        return [isControlled(window), isControlled(frame.contentWindow!)];
      }, undefined);
      expect(controlled).toEqual([false, true]);
    },
  },
  {
    name: "register takes a module worker of the app's own, and objects are read under it",
    async run(surroundings) {
      const { folder, putRandom, world } = surroundings;
      const key = `${folder}register/module`;
      const content = await putRandom(key, 300_000);
      const config = await (await fetch(`${world.app}agarose.json`)).text();
      const body = `import "/agarose-codec.js"; import "/agarose-sw.js"; agarose(${config});`;
      const page = await openPage(surroundings, { "/module.js": { contentType: "text/javascript", body } });
      await page.evaluate(async () => {
        const { register } = (globalThis as unknown as InPage).agarose;
        Object.assign(globalThis, { handle: await register({ worker: "/module.js", type: "module" }) });
      }, undefined);
      expect(await fetched(page, key)).toBe(sha256(content));
    },
  },
  {
    name: "a page without a service worker reads by a client of its own",
    async run(surroundings) {
      const { folder, putRandom, world } = surroundings;
      const key = `${folder}register/client`;
      const content = await putRandom(key, 5_000_000);
      const page = await openPage(surroundings);
      const config = (await (await fetch(`${world.app}agarose.json`)).json()) as object;
      expect(await fetched(page, key, config)).toBe(sha256(content));
      await world.region("frankfurt").set({ down: true });
      expect(await fetched(page, key, config)).toBe(sha256(content));
    },
  },
  {
    name: "another worker's answers are not taken for objects, and register replaces it when the page lets it",
    async run(surroundings) {
      const { folder, putRandom, world } = surroundings;
      const key = `${folder}register/other`;
      const content = await putRandom(key, 300_000);
      const page = await openPage(surroundings, {
        "/other-sw.js": { contentType: "text/javascript", body: OTHER_WORKER },
      });
      const other = await page.evaluate(async (path) => {
        const container = navigator.serviceWorker;
        const controlled = new Promise((resolve) => container.addEventListener("controllerchange", resolve));
        await container.register("/other-sw.js", { scope: "/" });
        await controlled;
        return (await fetch(path)).text();
      }, `/ec/${key}`);
      expect(other, "the other worker answers").toBe("<!doctype html>");
      const config = (await (await fetch(`${world.app}agarose.json`)).json()) as object;
      expect(await fetched(page, key, config)).toBe(sha256(content));
      const refusal = await page.evaluate(async () => {
        const { register } = (globalThis as unknown as InPage).agarose;
        return register({ scope: "/", timeoutMs: 500 }).then(
          () => "registered",
          (error: { code: string; details: object }) => ({ code: error.code, ...error.details }),
        );
      }, undefined);
      expect(refusal).toMatchObject({ code: "READ_TIMEOUT", controller: expect.stringContaining("/other-sw.js") });
      await page.evaluate(async () => {
        const { register } = (globalThis as unknown as InPage).agarose;
        const handle = await register({ scope: "/", onUpdate: (activate: () => void) => activate() });
        Object.assign(globalThis, { handle });
      }, undefined);
      expect(await fetched(page, key)).toBe(sha256(content));
    },
  },
];

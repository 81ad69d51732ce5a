/** The codec as its own file: kept with the worker that has imported it, and replaced with it. */
import type { Page } from "@playwright/test";
import { openApp, read, registerWorker, sha256 } from "../fixtures/app.ts";
import { importPageSide, type InPage } from "../fixtures/initialised-app.ts";
import { startOriginHost, type AppFile } from "../fixtures/origin-host.ts";
import { expect, test } from "../fixtures/test.ts";

const WORKER = "/agarose-sw.js?config=/agarose.json";
const CODEC = "/agarose-codec.js";
const REGION_DOWN = "frankfurt";
const HTML: AppFile = { contentType: "text/html", body: "<!doctype html>" };

async function scriptOf(url: URL): Promise<string> {
  return (await fetch(url)).text();
}

const script = (body: string): AppFile => ({ contentType: "text/javascript", body });

/** Looks for a new worker, and resolves to the state in which it stays. */
function update(page: Page): Promise<string> {
  return page.evaluate(async () => {
    const registration = (await navigator.serviceWorker.getRegistration())!;
    await registration.update().catch(() => {});
    const worker = registration.installing ?? registration.waiting;
    if (worker?.state === "installing")
      await new Promise((resolve) => worker.addEventListener("statechange", resolve, { once: true }));
    return worker?.state ?? "none";
  });
}

function takeOver(page: Page): Promise<void> {
  return page.evaluate(async () => {
    const container = navigator.serviceWorker;
    const changed = new Promise((resolve) => container.addEventListener("controllerchange", resolve, { once: true }));
    (await container.getRegistration())!.waiting!.postMessage({ type: "SKIP_WAITING" });
    await changed;
  });
}

test("a worker decodes by the codec that it was installed with, without a network for it, and an update brings both", async ({
  context,
  world,
  putRandom,
}) => {
  const content = await putRandom("codec/updated", 5_000_000);
  const files: Record<string, AppFile> = {};
  const host = await startOriginHost(world.app, {}, files);
  await world.region(REGION_DOWN).down();
  try {
    const page = await context.newPage();
    await page.goto(host.url);
    await registerWorker(page, WORKER, "classic");
    const decodes = async (): Promise<void> => {
      const answer = await read(page, "codec/updated");
      expect(answer).toMatchObject({ status: 200, sha256: sha256(content) });
      expect(answer.headers["server-timing"], "something was lost").toContain("decode;");
    };
    await decodes();

    // The next release is on the server, and the page is open: its worker still has its own codec, restarted too.
    const [worker, codec] = [await scriptOf(new URL(WORKER, host.url)), await scriptOf(new URL(CODEC, host.url))];
    files[CODEC] = HTML;
    const session = await context.newCDPSession(page);
    await session.send("ServiceWorker.enable");
    await session.send("ServiceWorker.stopAllWorkers");
    await decodes();
    files[WORKER] = script(`${worker}\n// release 2`);
    expect(await update(page), "a worker without its codec").toBe("redundant");
    await decodes();
    files[CODEC] = script(codec.replace(/version:\d+/, "version:0"));
    expect(await update(page), "a worker with a codec of another version").toBe("redundant");
    await decodes();

    files[CODEC] = script(`${codec}\n// release 2`);
    expect(await update(page)).toBe("installed");
    await decodes();
    await takeOver(page);
    files[CODEC] = HTML;
    await decodes();
  } finally {
    await host.close();
  }
});

test("register names the codec where the server has none", async ({ context, world }) => {
  const files: Record<string, AppFile> = { [CODEC]: HTML };
  const host = await startOriginHost(world.app, {}, files);
  try {
    const page = await openApp(context, world);
    await page.goto(host.url);
    await importPageSide(page);
    const refusal = await page.evaluate(async () => {
      const error = await (globalThis as unknown as InPage).agarose.register().catch((cause: unknown) => cause);
      return { ...(error as { code: string; details: object }) };
    });
    expect(refusal).toMatchObject({
      code: "CONFIG_INVALID",
      details: { problem: "type", url: new URL(CODEC, host.url).href },
    });
  } finally {
    await host.close();
  }
});

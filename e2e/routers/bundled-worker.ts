/** An app that bundles its own service worker from the sources in `e2e/routers/`. */
import { fileURLToPath } from "node:url";
import type { Page } from "@playwright/test";
import { build } from "esbuild";
import { registerWorker } from "../fixtures/app.ts";
import { startOriginHost, type OriginHost } from "../fixtures/origin-host.ts";
import { importPageSide } from "../fixtures/initialised-app.ts";
import { test as base } from "../fixtures/test.ts";

const ROUTERS = fileURLToPath(new URL("./", import.meta.url));

interface Fixtures {
  /**
   * Opens the blank page, with `agarose` in it, under `<name>.worker.ts`, which has the world's client configuration
   * and a placeholder to serve.
   */
  readonly openUnderWorker: (name: string) => Promise<Page>;
}

export const test = base.extend<Fixtures>({
  openUnderWorker: async ({ context, world }, use) => {
    // A script that Playwright puts in place of one from the network may not ask this machine's own addresses.
    const hosts: OriginHost[] = [];
    await use(async (name) => {
      const config = await (await fetch(`${world.app}agarose.json`)).text();
      const host = await startOriginHost(
        world.app,
        {},
        {
          "/worker.js": { contentType: "text/javascript", body: await bundled(name, config) },
          "/placeholder.txt": { contentType: "text/plain", body: "placeholder" },
        },
      );
      hosts.push(host);
      const page = await context.newPage();
      await page.goto(host.url);
      await importPageSide(page);
      await registerWorker(page, "/worker.js", "classic");
      return page;
    });
    for (const host of hosts) await host.close();
  },
});

async function bundled(name: string, config: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [`${ROUTERS}${name}.worker.ts`],
    bundle: true,
    write: false,
    format: "iife",
    platform: "browser",
    target: "es2022",
    define: { CONFIG: config, "process.env.NODE_ENV": '"production"' },
  });
  return outputFiles[0]!.text;
}

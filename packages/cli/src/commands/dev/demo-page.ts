/**
 * The demo page of the repository. A published package has none.
 */
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { World } from "@agarose/dev-world";

/** The folder of the demo, in a clone of the repository. */
export const DEMO = new URL("../../../../../demo/", import.meta.url);

/** Whether this is a clone that has the demo and its samples. */
export function hasDemo(): boolean {
  return existsSync(DEMO);
}

/** Builds the service worker, serves the page on `port` and returns its URL; adds to `closers` what ends it. */
export async function startDemoPage(
  world: World,
  control: string,
  port: number,
  closers: (() => Promise<unknown>)[],
): Promise<string> {
  const serviceWorkerDir = await mkdtemp(join(tmpdir(), "agarose-sw-"));
  closers.push(() => rm(serviceWorkerDir, { recursive: true, force: true }));
  const { buildServiceWorker } = await import("@agarose/sw/build");
  await buildServiceWorker(serviceWorkerDir);
  const { startDemo } = (await import(new URL("server.ts", DEMO).href)) as {
    startDemo(options: object): Promise<{ url: string; close(): Promise<void> }>;
  };
  const demo = await startDemo({
    port,
    world: {
      control,
      config: {
        prefix: "/ec/",
        pops: world.pops,
        regions: world.regions.map(({ name, endpoint, bucket }) => ({ name, url: `${endpoint}/${bucket}` })),
      },
    },
    edge: () => world.pops.find(({ name }) => name === world.state.near)!.url,
    serviceWorkerDir,
  });
  closers.push(() => demo.close());
  return demo.url;
}

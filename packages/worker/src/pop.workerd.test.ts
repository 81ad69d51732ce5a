/** The examples of the guide, as they are: in workerd without any binding, and on Node. */
import { spawn, type ChildProcess } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Miniflare } from "miniflare";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { freePort } from "@agarose/dev-world/free-port";
import { bundleWorker } from "../build.ts";
import { startBuckets, type BucketServer } from "../test/bucket-server.ts";
import { putObject, randomBytes, REGIONS } from "../test/objects.ts";

const EXAMPLE = fileURLToPath(new URL("../example", import.meta.url));
/** Below the package, where its imports resolve. */
const BUILDS = fileURLToPath(new URL("../.wrangler", import.meta.url));

let buckets: BucketServer;
let folder: string;
beforeAll(async () => {
  buckets = await startBuckets();
  await mkdir(BUILDS, { recursive: true });
  folder = await mkdtemp(join(BUILDS, "example-"));
  await cp(EXAMPLE, folder, { recursive: true });
  const regions = REGIONS.map((name) => ({ name, url: `${buckets.url}/${name}` }));
  const config = { regions, publicKeys: [], variables: { UNSIGNED: "true" } };
  await writeFile(join(folder, "agarose.json"), JSON.stringify(config));
});
afterAll(async () => {
  await buckets.close();
  await rm(folder, { recursive: true, force: true });
});

test("the Worker of the guide serves objects without a binding, and keeps what is read again in the Cache API", async () => {
  const content = randomBytes(150_000);
  await putObject(buckets, "photos/cat", content);
  const { script, wasm } = await bundleWorker(join(folder, "worker.ts"), join(folder, "built"));
  const codecs = wasm.map(async (path) => {
    return { type: "CompiledWasm" as const, path: basename(path), contents: new Uint8Array(await readFile(path)) };
  });
  const miniflare = new Miniflare({
    modules: [
      { type: "ESModule", path: "worker.js", contents: await readFile(script, "utf8") },
      ...(await Promise.all(codecs)),
    ],
    compatibilityDate: "2026-07-01",
  });
  try {
    const { href } = await miniflare.ready;
    expect(await (await fetch(href)).text()).toBe("Your own app");
    // All regions are as near in a new isolate, so that the manifest is requested of the first one.
    buckets.faults.set("r0", { down: true });
    const readAt = async (): Promise<string | null> => {
      const response = await fetch(new URL("/o/photos/cat", href));
      expect(new Uint8Array(await response.arrayBuffer())).toEqual(content);
      return response.headers.get("x-agarose-read");
    };
    // Where the look-up of the manifest has met the region that is down, no chunk is requested of it.
    expect(await readAt()).toMatch(/^(degraded|origin)$/);
    expect(buckets.fired.get("r0"), "a region that is down was asked").toBeGreaterThan(0);
    await vi.waitFor(async () => expect(await readAt()).toBe("edge"), { timeout: 60_000, interval: 100 });
  } finally {
    buckets.faults.clear();
    await miniflare.dispose();
  }
});

test("the server of the guide serves objects from Node, by Hono", async () => {
  const content = randomBytes(150_000);
  await putObject(buckets, "photos/dog", content);
  const port = await freePort();
  const server: ChildProcess = spawn(process.execPath, [join(folder, "server.ts")], {
    env: { ...process.env, PORT: String(port) },
    stdio: ["ignore", "inherit", "inherit"],
  });
  try {
    const url = `http://127.0.0.1:${port}`;
    await vi.waitFor(async () => expect(await (await fetch(url)).text()).toBe("Your own app"), {
      timeout: 60_000,
      interval: 100,
    });
    const response = await fetch(`${url}/o/photos/dog`, { headers: { range: "bytes=100-149999" } });
    expect([response.status, response.headers.get("content-range")]).toEqual([206, "bytes 100-149999/150000"]);
    expect(new Uint8Array(await response.arrayBuffer())).toEqual(content.slice(100));
  } finally {
    server.kill();
  }
});

/** An app that Vite builds with the plugin, and that takes `register` from `virtual:agarose`. */
import { fileURLToPath } from "node:url";
import type { LocalWorld } from "@agarose/dev-world/client";
import type { ClientConfigInput } from "@agarose/sw";
import { agarose } from "@agarose/sw/vite";
import { build, type Rolldown } from "vite";
import { sha256 } from "../fixtures/app.ts";
import { startOriginHost, type AppFile } from "../fixtures/origin-host.ts";
import { expect, test } from "../fixtures/test.ts";

const BASE = "/app/";
const TYPES: Readonly<Record<string, string>> = { js: "text/javascript", json: "application/json", html: "text/html" };

/** The files of the app by path, whose configuration keeps what it reads. */
async function built(world: LocalWorld): Promise<Record<string, AppFile>> {
  const own = (await (await fetch(`${world.app}agarose.json`)).json()) as ClientConfigInput;
  const { output } = (await build({
    root: fileURLToPath(new URL(".", import.meta.url)),
    base: BASE,
    configFile: false,
    logLevel: "silent",
    build: { write: false, target: "es2022" },
    plugins: [agarose({ config: { ...own, prefix: `${BASE}objects/`, offline: { bytes: 10_000_000 } } })],
  })) as Rolldown.RolldownOutput;
  const files = output.map((file): [string, AppFile] => {
    const contents = file.type === "chunk" ? file.code : file.source;
    const body = typeof contents === "string" ? contents : new TextDecoder().decode(contents);
    return [
      `${BASE}${file.fileName}`,
      { contentType: TYPES[file.fileName.replace(/^.*\./, "")] ?? "text/plain", body },
    ];
  });
  return Object.fromEntries(files);
}

test("its one worker is the one that its configuration needs, and reads below its prefix", async ({
  context,
  world,
  putRandom,
}) => {
  const content = await putRandom("vite/cat.bin", 300_000);
  const files = await built(world);
  const workers = Object.keys(files).filter((path) => /agarose-sw.*\.js$/.test(path));
  expect(workers).toEqual([`${BASE}agarose-sw.offline.js`]);
  const host = await startOriginHost(world.app, {}, files);
  try {
    const page = await context.newPage();
    await page.goto(new URL(`${BASE}index.html`, host.url).href);
    await expect(page).toHaveTitle(`${sha256(content)} by ${BASE}agarose-sw.offline.js`);
  } finally {
    await host.close();
  }
});

import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { CODEC_FILE, REMOVING_FILE, WORKER_FILES, workerFileOf } from "./worker-files.ts";

test.each(Object.entries(WORKER_FILES))("%s is known by its name, in any folder and with a hash", (name, file) => {
  const stem = name.slice(0, -".js".length);
  for (const path of [`/${name}`, `/a/b/${name}`, `/${stem}-3f2a.js`, `/assets/${stem}.D9xk_2.js`])
    expect(workerFileOf(path), path).toBe(file);
});

test.each([
  "/my-agarose-sw.js",
  "/agarose-sw.js/other.js",
  "/agarose-swx.js",
  "/agarose.js",
  "/agarose-sw.js.map",
  "/",
])("%s is none of them", (path) => {
  expect(workerFileOf(path)).toBeUndefined();
});

test("the package exports each of them, and no other worker", async () => {
  const { exports } = JSON.parse(await readFile(new URL("../../package.json", import.meta.url), "utf8"));
  const exported = Object.keys(exports).filter((name) => /^\.\/agarose-(sw|codec)/.test(name));
  expect(exported.toSorted()).toEqual([...Object.keys(WORKER_FILES), CODEC_FILE].map((name) => `./${name}`).toSorted());
  expect(WORKER_FILES[REMOVING_FILE]).toEqual({ removes: true });
});

/** A page of a hundred small pictures, as `<img>` elements: it takes a few requests, also on a busy machine. */
import type { Page } from "@playwright/test";
import type { LocalWorld } from "@agarose/dev-world/client";
import { openControlledApp, read, sha256 } from "../fixtures/app.ts";
import { bitmap } from "../fixtures/bitmap.ts";
import { expect, test as base } from "../fixtures/test.ts";

const PICTURES = 100;
/** Threads that keep the processors busy. */
const BUSY_THREADS = 4;
const NEAR = "frankfurt";

const test = base.extend({
  worldOptions: [{ world: "agar", scale: 0.12, jitter: 0.1, mbit: 4, code: "auto" }, { scope: "worker" }],
});

/** Stores pictures of 18 kB; returns their SHA-256 by key. */
async function putPictures(world: LocalWorld, folder: string): Promise<ReadonlyMap<string, string>> {
  const pictures = Array.from({ length: PICTURES }, (_, i) => [`${folder}/${i}.bmp`, bitmap(100, 60)] as const);
  for (const [key, content] of pictures) await world.put(key, content);
  return new Map(pictures.map(([key, content]) => [key, sha256(content)]));
}

/**
 * Puts a picture of every key into the page while all processors are busy. Returns what went wrong: the browser says of
 * a picture that it cannot be decoded also when the read failed, so the reads are made again for their status.
 */
function showPictures(page: Page, keys: readonly string[]): Promise<string[]> {
  return page.evaluate(
    async ({ paths, threads }) => {
      const spin = URL.createObjectURL(new Blob(["for (;;);"], { type: "text/javascript" }));
      const busy = Array.from({ length: threads }, () => new Worker(spin));
      const problems = await Promise.all(
        paths.map(async (path) => {
          const picture = new Image();
          picture.src = path;
          document.body.append(picture);
          try {
            await picture.decode();
            return picture.naturalWidth === 100 ? [] : [`${path}: ${picture.naturalWidth} pixels wide`];
          } catch (error) {
            const again = await fetch(path);
            return [`${path}: ${String(error)}; asked again ${again.status} ${(await again.text()).slice(0, 300)}`];
          }
        }),
      );
      for (const thread of busy) thread.terminate();
      return problems.flat();
    },
    { paths: keys.map((key) => `/ec/${key}`), threads: BUSY_THREADS },
  );
}

/** Requests of the client by the start of their path. */
async function requests(world: LocalWorld, path: string): Promise<number> {
  return (await world.log()).filter((entry) => entry.from === "client" && entry.path.startsWith(path)).length;
}

test("100 pictures come whole in a few requests, and again from known plans", async ({ context, world }) => {
  const pictures = await putPictures(world, "calm");
  const page = await openControlledApp(context, world);
  await world.reset();
  expect(await showPictures(page, [...pictures.keys()])).toEqual([]);
  expect(await requests(world, "/v1/plans")).toBeGreaterThan(0);
  // On a busy machine, some pictures are asked for so late that they are alone.
  expect(await requests(world, "/v1/read/")).toBeLessThan(PICTURES);
  const answers = await Promise.all([...pictures.keys()].map((key) => read(page, key)));
  expect(answers.map((answer) => answer.sha256)).toEqual([...pictures.values()]);
});

test("100 pictures come whole while a region dies", async ({ context, world }) => {
  const pictures = await putPictures(world, "region");
  const page = await openControlledApp(context, world);
  await world.reset();
  const problems = showPictures(page, [...pictures.keys()]);
  await expect.poll(() => requests(world, "/v1/plans"), { intervals: [20] }).toBeGreaterThan(0);
  await world.region(NEAR).down();
  expect(await problems).toEqual([]);
  expect(await world.region(NEAR).fired()).toBeGreaterThan(0);
});

test("100 pictures come whole while their PoP dies", async ({ context, world }) => {
  const pictures = await putPictures(world, "pop");
  const page = await openControlledApp(context, world);
  await world.reset();
  const problems = showPictures(page, [...pictures.keys()]);
  await expect.poll(() => requests(world, "/v1/plans"), { intervals: [20] }).toBeGreaterThan(0);
  await world.pop("fra").down();
  expect(await problems).toEqual([]);
  const answers = await Promise.all([...pictures.keys()].map((key) => read(page, key)));
  expect(answers.map((answer) => answer.sha256)).toEqual([...pictures.values()]);
  expect(await world.pop("fra").fired()).toBeGreaterThan(0);
});

test("an object that is inside its manifest is read in the page, in ranges, and at the edge", async ({
  context,
  world,
}) => {
  const content = bitmap(40, 20);
  await world.put("inline/small.bmp", content);
  const page = await openControlledApp(context, world);
  await world.reset();
  expect(await read(page, "inline/small.bmp")).toMatchObject({ status: 200, sha256: sha256(content) });
  const range = await read(page, "inline/small.bmp", { range: "bytes=100-199" });
  expect(range).toMatchObject({ status: 206, sha256: sha256(content.subarray(100, 200)) });
  const edge = await fetch(`${world.pops[0]!.url}/o/inline/small.bmp`, { headers: { range: "bytes=-50" } });
  expect(edge.status).toBe(206);
  expect(new Uint8Array(await edge.arrayBuffer())).toEqual(new Uint8Array(content.subarray(-50)));
  expect((await world.log()).filter(({ path }) => path.includes("/chunks/"))).toEqual([]);
});

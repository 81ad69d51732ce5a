/**
 * A page full of images beside a long read, over the emulated WAN: none is left behind for others that were asked for
 * later.
 */
import { randomBytes } from "node:crypto";
import { openControlledApp, sha256 } from "../fixtures/app.ts";
import { bitmap } from "../fixtures/bitmap.ts";
import { test } from "../fixtures/slow-test.ts";
import { expect } from "../fixtures/test.ts";

const IMAGES = 100;
const LONG_BYTES = 24_000_000;
/** Of the long read, the page takes half of this before the first image, and no more before the last one. */
const BESIDE_BYTES = 14_000_000;
/** How many later ones may come before an image: six to thirty do, by the network's jitter and the machine's load. */
const OVERTAKEN_MAX = 60;
/**
 * And on average: one to six do. By turns of single requests it would be 17, and 79 at most; where a region's latency
 * is taken for what is waited for its turn, up to 15.
 */
const OVERTAKEN_MEAN_MAX = 12;

test("100 images beside a long read all come, none of them after many that were asked for later", async ({
  context,
  world,
}) => {
  const names = Array.from({ length: IMAGES }, (_, i) => `image-${i}.bmp`);
  for (const name of names) await world.put(`images/${name}`, bitmap(100, 60));
  const content = randomBytes(LONG_BYTES);
  await world.put("images/long", content);

  const page = await openControlledApp(context, world);
  const seen = await page.evaluate(
    async ({ files, url, besideBytes }) => {
      const firstThere = Promise.withResolvers<void>();
      const allThere = Promise.withResolvers<void>();
      const parts: Uint8Array<ArrayBuffer>[] = [];
      let longBytes = 0;
      const reader = (await fetch(url)).body!.getReader();
      const long = (async () => {
        for (let part = await reader.read(); !part.done; part = await reader.read()) {
          parts.push(part.value as Uint8Array<ArrayBuffer>);
          longBytes += part.value.length;
          if (longBytes >= besideBytes / 2) await firstThere.promise;
          if (longBytes >= besideBytes) await allThere.promise;
        }
      })();
      const order: number[] = [];
      const longBytesAt: number[] = [];
      const widths = await Promise.all(
        files.map(async (file, i) => {
          const image = new Image();
          image.src = `/ec/images/${file}`;
          await image.decode();
          order.push(i);
          longBytesAt.push(longBytes);
          firstThere.resolve();
          return image.naturalWidth;
        }),
      );
      allThere.resolve();
      await long;
      const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", await new Blob(parts).arrayBuffer()));
      const hex = [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
      return { widths, order, longBytesAt, longSha256: hex };
    },
    { files: names, url: "/ec/images/long", besideBytes: BESIDE_BYTES },
  );

  expect(seen.widths).toEqual(Array<number>(IMAGES).fill(100));
  expect(seen.longSha256).toBe(sha256(content));
  expect(seen.longBytesAt.at(-1)!, "the long read went on beside them").toBeGreaterThan(seen.longBytesAt[0]!);
  const overtaken = seen.order.map((image, at) => seen.order.slice(0, at).filter((earlier) => earlier > image).length);
  const order = `the order in which they came: ${seen.order.join(" ")}`;
  expect(Math.max(...overtaken), order).toBeLessThanOrEqual(OVERTAKEN_MAX);
  expect(overtaken.reduce((sum, count) => sum + count, 0) / IMAGES, order).toBeLessThanOrEqual(OVERTAKEN_MEAN_MAX);
});

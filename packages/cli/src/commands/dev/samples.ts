/** Stores the samples of the demo in a local world. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { inParallel } from "@agarose/core";
import { DEMO } from "./page.ts";
import type { Uploader } from "./upload.ts";

interface Sample {
  readonly key: string;
  readonly file: string;
}

/** What the demo's own modules export; the command has no types of them. */
interface Samples {
  readonly MODEL: Sample;
  readonly MAP: Sample;
  readonly TABLE: Sample;
  readonly GLOBE: Sample;
  readonly VIDEO: Sample;
  readonly PHOTOS: readonly Sample[];
  readonly PICTURES: readonly { readonly key: string }[];
}

type Write = (path: string, folder: string) => Promise<unknown>;

/** Pictures that are stored at a time. */
const AT_ONCE = 10;

/**
 * Stores photographs and the video, and makes and stores the model, the map with its pictures, the table, the globe and
 * the video in pieces.
 */
export async function uploadSamples(uploader: Uploader): Promise<void> {
  const load = <T>(name: string): Promise<T> => import(new URL(`samples/${name}.ts`, DEMO).href) as Promise<T>;
  const { MODEL, MAP, TABLE, GLOBE, PHOTOS, PICTURES, VIDEO } = await load<Samples>("index");
  const { writeModel } = await load<{ writeModel: Write }>("make-model");
  const { writeMap } = await load<{ writeMap: Write }>("make-map");
  const { writeTable } = await load<{ writeTable: Write }>("make-table");
  const { writeGlobe } = await load<{ writeGlobe: Write }>("make-globe");
  const { writePieces } = await load<{ writePieces: (folder: string) => Promise<string[]> }>("make-pieces");
  const folder = await mkdtemp(join(tmpdir(), "agarose-samples-"));
  const samples = fileURLToPath(new URL("samples", DEMO));
  try {
    for (const { key, file } of [...PHOTOS, VIDEO]) await uploader.put({ key, path: join(samples, file) });
    const made = [
      [MODEL, writeModel],
      [MAP, writeMap],
      [TABLE, writeTable],
      [GLOBE, writeGlobe],
    ] as const;
    for (const [{ key, file }, write] of made) {
      const path = join(folder, file);
      await write(path, folder);
      await uploader.put({ key, path });
    }
    const pieces = (await writePieces(folder)).map((key) => ({ key, path: join(folder, key) }));
    const waiting = [...PICTURES.map(({ key }, i) => ({ key, path: join(folder, `${i}.png`) })), ...pieces];
    // As `agarose put` stores small files by default.
    await inParallel(AT_ONCE, waiting, (next) => uploader.put({ ...next, code: "auto" }));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

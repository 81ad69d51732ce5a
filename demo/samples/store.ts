/** Stores the samples in a local world. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { inParallel } from "@agarose/core/async";
import type { Uploader } from "@agarose/dev-world";
import { GLOBE, MAP, MODEL, PHOTOS, PICTURES, TABLE, VIDEO } from "./index.ts";
import { writeGlobe } from "./make-globe.ts";
import { writeMap } from "./make-map.ts";
import { writeModel } from "./make-model.ts";
import { writeTable } from "./make-table.ts";

/** Pictures that are stored at a time. */
const AT_ONCE = 10;

/**
 * Stores photographs and the video, and makes and stores the model, the map with its pictures, the table and the globe.
 */
export async function storeSamples(uploader: Uploader): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "agarose-samples-"));
  const samples = fileURLToPath(new URL(".", import.meta.url));
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
    const pictures = PICTURES.map(({ key }, i) => ({ key, path: join(folder, `${i}.png`) }));
    // As `agarose put` stores small files by default.
    await inParallel(AT_ONCE, pictures, (next) => uploader.put({ ...next, code: "auto" }));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

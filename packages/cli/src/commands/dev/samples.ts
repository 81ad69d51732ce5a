/** Stores the samples of the demo in a local world. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DEMO } from "./page.ts";
import type { Uploader } from "./upload.ts";

interface Sample {
  readonly key: string;
  readonly file: string;
}

/** Stores photographs, the video and the model. */
export async function uploadSamples(uploader: Uploader): Promise<void> {
  const { MODEL, PHOTOS, VIDEO } = (await import(new URL("samples/index.ts", DEMO).href)) as {
    MODEL: Sample;
    PHOTOS: readonly Sample[];
    VIDEO: Sample;
  };
  const { writeModel } = (await import(new URL("samples/make-model.ts", DEMO).href)) as {
    writeModel(path: string): Promise<void>;
  };
  const folder = await mkdtemp(join(tmpdir(), "agarose-samples-"));
  const samples = fileURLToPath(new URL("samples", DEMO));
  try {
    for (const { key, file } of [...PHOTOS, VIDEO]) await uploader.put({ key, path: join(samples, file) });
    await writeModel(join(folder, MODEL.file));
    await uploader.put({ key: MODEL.key, path: join(folder, MODEL.file) });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Puts the samples of the demo into a local world.
 */
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { AgaroseError } from "@agarose/core";
import type { World } from "@agarose/dev-world";
import { DEMO } from "./demo-page.ts";

interface Sample {
  readonly key: string;
  readonly file: string;
}

const CLI = fileURLToPath(new URL("../../../bin/agarose.js", import.meta.url));

/** Puts the samples with the real command line, as a user would. The links do not delay it. */
export async function uploadSamples(world: World): Promise<void> {
  const { MODEL, PHOTOS, VIDEO } = (await import(new URL("samples/index.ts", DEMO).href)) as {
    MODEL: Sample;
    PHOTOS: readonly Sample[];
    VIDEO: Sample;
  };
  const { writeModel } = (await import(new URL("samples/make-model.ts", DEMO).href)) as {
    writeModel(path: string): Promise<void>;
  };
  const folder = await mkdtemp(join(tmpdir(), "agarose-samples-"));
  const put = (sample: Sample, from: string): Promise<void> =>
    agarose(["--config", world.config, "put", join(from, sample.file), "--key", sample.key]);
  world.state.wan = false;
  try {
    const samples = fileURLToPath(new URL("samples", DEMO));
    await writeModel(join(folder, MODEL.file));
    await Promise.all([
      agarose([
        "--config",
        world.config,
        "put",
        ...PHOTOS.map(({ file }) => join(samples, file)),
        "--prefix",
        "photos/",
      ]),
      put(VIDEO, samples),
      put(MODEL, folder),
    ]);
  } finally {
    world.state.wan = true;
    world.log.length = 0;
    await rm(folder, { recursive: true, force: true });
  }
}

function agarose(args: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, [CLI, ...args, "--json"], { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  child.stdout.on("data", (part) => (output += String(part)));
  child.stderr.on("data", (part) => (output += String(part)));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => {
      if (code === 0) return resolve();
      reject(new AgaroseError("STORE_FAILED", `agarose ${args.join(" ")} ended with ${code}:\n${output}`, { code }));
    });
  });
}

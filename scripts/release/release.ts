/**
 * `npm run release`: publishes every packed package whose version the registry lacks, with provenance, and tags the
 * versions. Packages follow those that they depend on. The release workflow runs it; it needs that workflow's identity.
 *
 * `npm run release -- --dry-run` packs the same packages and shows what npm would publish. It needs no identity, and
 * publishes and tags nothing.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readFile } from "node:fs/promises";
import { packPackages } from "./packages.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const isDryRun = process.argv.includes("--dry-run");
/** Only a workflow has the identity that provenance needs. */
const HOW = isDryRun ? ["--dry-run"] : ["--provenance"];

for (const { name, folder, tarball } of await packPackages(join(ROOT, "dist/npm"))) {
  const { version } = JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as { version: string };
  if (!isDryRun && isPublished(`${name}@${version}`)) {
    console.log(`${name} ${version} is published already`);
  } else {
    execFileSync("npm", ["publish", tarball, ...HOW, "--access", "public"], { stdio: "inherit" });
  }
}
if (!isDryRun) execFileSync("changeset", ["git-tag"], { cwd: ROOT, stdio: "inherit" });

/** Asks the registry. Throws when the registry does not answer, so that no version is published in part. */
function isPublished(specifier: string): boolean {
  const { status, stdout } = spawnSync("npm", ["view", specifier, "version", "--json"], { encoding: "utf8" });
  if (status === 0) return stdout.trim() !== "";
  const { error } = JSON.parse(stdout || "{}") as { error?: { code?: string } };
  if (error?.code === "E404") return false;
  throw new Error(`npm view ${specifier} failed: ${stdout}`);
}

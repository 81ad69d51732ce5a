/**
 * Installs versitygw, the S3 server that the conformance suite runs against beside the embedded endpoint. Builds a
 * pinned version with `go install` into Go's own folder of binaries, where `findVersitygw` looks. A present binary is
 * kept.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { run } from "./set-up.mjs";

const VERSION = "v1.8.0";
const MODULE = `github.com/versity/versitygw/cmd/versitygw@${VERSION}`;

/** Resolves with `present`, `installed`, `no-go` (Go is missing, so the suite skips versitygw) or `failed`. */
export async function ensureVersitygw() {
  if (isPresent()) return "present";
  if (spawnSync("go", ["version"]).status !== 0) {
    console.error("  versitygw: skipped, because Go is not installed (https://go.dev/dl); its S3 tests are skipped");
    return "no-go";
  }
  console.error(`  versitygw: building ${VERSION} with Go, about a minute`);
  // Plain output only: its dependencies need no C compiler.
  const env = { ...process.env, CGO_ENABLED: "0" };
  if ((await run("go", ["install", MODULE], { stdio: ["ignore", "ignore", 2], env })) === 0) return "installed";
  console.error(`  versitygw: \`go install ${MODULE}\` failed: see above. It needs the Go module proxy.`);
  return "failed";
}

/** Whether a binary is in one of the folders that `findVersitygw` searches. */
function isPresent() {
  const goBin = process.env.GOBIN ?? join(process.env.GOPATH ?? join(homedir(), "go"), "bin");
  const folders = [...(process.env.PATH ?? "").split(delimiter), goBin];
  return folders.some((folder) => existsSync(join(folder, "versitygw")));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.exitCode = (await ensureVersitygw()) === "failed" ? 1 : 0;
}

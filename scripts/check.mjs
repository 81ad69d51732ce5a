/**
 * `npm run check [-- BASE]`: lint, types and tests of what changed since BASE (default: where this branch left main),
 * uncommitted work included. Tests in workerd and of other packages that a change could affect are left to `npm test`.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { environment, root, run, setUp } from "./set-up.mjs";

const env = environment(setUp());
const base = process.argv[2] ?? mergeBase();
const changed = [
  ...lines("git", ["diff", "--name-only", "--relative", base]),
  ...lines("git", ["ls-files", "--others", "--exclude-standard"]),
].filter((path) => existsSync(join(root, path)));
const folders = [...new Set(changed.map(folderOf))];
if (changed.length === 0) {
  console.log(`check: nothing has changed since ${base}`);
  process.exit();
}
console.log(`check: ${changed.length} files changed since ${base}, in ${folders.join(", ")}`);

const markdown = changed.filter((path) => path.endsWith(".md"));
const packages = folders.filter((folder) => folder !== "." && folder !== ".changeset");
const steps = [
  [
    "oxlint",
    ["--deny-warnings", "--no-error-on-unmatched-pattern", ...changed.filter((path) => /\.m?[jt]s$/.test(path))],
  ],
  ["prettier", ["--check", "--ignore-unknown", "--log-level", "warn", ...changed]],
  ...(markdown.length > 0 ? [["node", [join(root, "scripts/prose/index.js"), "--quiet", ...markdown]]] : []),
  ["node", [join(root, "scripts/types.mjs"), ...packages]],
  [
    "vitest",
    [
      "run",
      "--changed",
      base,
      "--exclude",
      "**/*.workerd.test.ts",
      "--passWithNoTests",
      ...packages.map((folder) => `${folder}/`),
    ],
  ],
];
for (const [command, args] of steps) {
  const code = await run(command, args, { env });
  if (code !== 0) process.exit(code);
}

/** The commit at which this branch left main, here or at the origin; HEAD where there is no main. */
function mergeBase() {
  const [commit] = ["origin/main", "main"].flatMap((branch) => lines("git", ["merge-base", branch, "HEAD"]));
  return commit ?? "HEAD";
}

/** `packages/core` of a path in it, the first folder of any other path. */
function folderOf(path) {
  const parts = path.split("/");
  if (parts.length === 1) return ".";
  return parts[0] === "packages" ? parts.slice(0, 2).join("/") : parts[0];
}

/** The lines that a command prints; none when it fails. */
function lines(command, args) {
  const { status, stdout } = spawnSync(command, args, { cwd: root, encoding: "utf8" });
  return status === 0 ? stdout.split("\n").filter(Boolean) : [];
}

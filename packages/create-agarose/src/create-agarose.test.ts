/** Projects as they are written, and input that is refused. */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { checkAnswers, defaultAnswers } from "./answers.ts";
import { AREAS } from "./areas.ts";
import { ask } from "./ask.ts";
import { projectFiles } from "./project-files.ts";
import { writeProject } from "./write-project.ts";

const BIN = fileURLToPath(new URL("../bin/create-agarose.js", import.meta.url));
const ROOT = new URL("../../..", import.meta.url);

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "create-agarose-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function run(...args: string[]): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [BIN, ...args], { cwd: folder }, (_error, stdout, stderr) =>
      resolve({ code: child.exitCode!, stdout, stderr }),
    );
  });
}

test("--yes writes a whole project, and names what is left to do", async () => {
  const { code, stdout, stderr } = await run("My App", "--yes", "--no-install");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toContain("npm run setup");
  const names = (await readdir(join(folder, "My App"), { recursive: true })).toSorted();
  expect(names).toEqual(expect.arrayContaining([".gitignore", "agarose.config.json", "dev.js", "src/main.ts"]));
  expect(names.filter((name) => /template|tmp/.test(name))).toEqual([]);
  const manifest = JSON.parse(await readFile(join(folder, "My App/package.json"), "utf8"));
  expect(manifest).toMatchObject({ name: "my-app", scripts: { setup: "agarose keys new && agarose init --worker" } });
  expect(await readdir(folder)).toEqual(["My App"]);
});

test.each([
  { what: "a folder with files", args: ["used", "--yes"], says: "has files, such as own.txt" },
  { what: "a name that npm refuses", args: ["a", "--yes", "--name", "Ä"], says: "--name" },
  { what: "an area that does not exist", args: ["a", "--yes", "--readers", "mars"], says: "europe, world" },
  { what: "a bucket that S3 refuses", args: ["a", "--yes", "--buckets", "A_b"], says: "--buckets" },
  { what: "an unknown option", args: ["a", "--frobnicate"], says: "--help" },
  { what: "two folders", args: ["a", "b", "--yes"], says: "one folder" },
  { what: "questions without a terminal", args: ["a"], says: "--yes" },
  { what: "a folder below a file", args: ["used/own.txt/a", "--yes"], says: "used/own.txt/a" },
])("$what is refused, and nothing is written", async ({ args, says }) => {
  await mkdir(join(folder, "used"));
  await writeFile(join(folder, "used/own.txt"), "own");
  const { code, stdout, stderr } = await run(...args, "--no-install");
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toMatch(/^USAGE: /);
  expect(stderr).toContain(says);
  expect((await readdir(folder, { recursive: true })).toSorted()).toEqual(["used", "used/own.txt"]);
});

/** A person who answers each question with the next line, and then closes the terminal. */
function typing(...lines: string[]) {
  const [input, output] = [new PassThrough(), new PassThrough()];
  let shown = "";
  output.on("data", (part: Buffer) => {
    shown += part.toString();
    if (!shown.endsWith("] ")) return;
    const line = lines.shift();
    if (line === undefined) input.end();
    else input.write(`${line}\n`);
  });
  return { terminal: { input, output }, shown: () => shown };
}

test("a question is asked again until its answer is sound, and given answers are not asked", async () => {
  const { terminal, shown: text } = typing("", "mars", "europe", "2", "");
  const asked = ask(defaultAnswers("shop"), { buckets: "goods" }, terminal);
  expect(await asked).toEqual({ name: "shop", readers: "europe", buckets: "goods", survive: "2", workers: "pops" });
  const shown = text();
  expect(shown).toContain('"mars" is not one of europe, world, north-america');
  expect(shown).not.toContain("buckets begin");
});

test("an input that ends before the last answer rejects", async () => {
  const { terminal } = typing("shop");
  await expect(ask(defaultAnswers("shop"), {}, terminal)).rejects.toThrow();
});

test.each(Object.keys(AREAS))("the configuration for %s is one that the command line takes", async (readers) => {
  const { parseConfig } = await import("@agarose/storage");
  for (const workers of ["pops", "everywhere"]) {
    for (const survive of ["1", "2"]) {
      const answers = checkAnswers({ ...defaultAnswers("a".repeat(60)), readers, workers, survive });
      const text = (await projectFiles(answers, { version: "0.1.0" })).get("agarose.config.json")!;
      const keys = { publicKeys: [`ed25519:${"A".repeat(43)}=`] };
      const config = parseConfig(JSON.stringify({ ...JSON.parse(text), ...keys }), "agarose.config.json");
      expect(config.regions).toHaveLength(6);
      for (const { bucket } of config.regions) expect(bucket.length).toBeLessThanOrEqual(63);
    }
  }
});

test("for Europe the local world is the default one, which has the regions and PoPs of the configuration", async () => {
  const { CONTINENTAL } = await import("@agarose/dev-world");
  expect(AREAS["europe"]!.regions.map(({ name }) => name)).toEqual(CONTINENTAL.regions);
  expect(AREAS["europe"]!.pops.map(({ name }) => name)).toEqual(CONTINENTAL.pops);
  for (const [survive, code] of [
    ["1", 'code: "auto"'],
    ["2", "code: { k: 8, m: 4 }"],
  ] as const) {
    const files = await projectFiles({ ...defaultAnswers("a"), survive }, { version: "0.1.0" });
    expect(files.has("geography.json")).toBe(false);
    expect(files.get("playwright.config.ts")).toContain(`worldOptions: { app: "dist", ${code} }`);
    expect(files.get("dev.js")).toContain(`LocalWorld.start({ app: server.resolvedUrls.local[0], ${code} })`);
    expect(files.get("tests/latency.spec.ts")).toContain('world.region("s3-frankfurt").down()');
  }
});

test.each(["world", "north-america"])(
  "for %s the local world and the latency test are at the places that were chosen",
  async (readers) => {
    const { parseScenario } = await import("@agarose/solver");
    const { regions, pops } = AREAS[readers]!;
    for (const survive of ["1", "2"]) {
      const files = await projectFiles({ ...defaultAnswers("a"), readers, survive }, { version: "0.1.0" });
      const scenario = parseScenario(JSON.parse(files.get("geography.json")!));
      expect(scenario.regions).toEqual(regions.map(({ name }) => name));
      expect(scenario.pops.map(({ name }) => name)).toEqual(pops.map(({ name }) => name));
      // Twelve chunks over six regions: each lost region takes two of them.
      expect(scenario.code).toEqual(survive === "1" ? { k: 9, m: 3 } : { k: 8, m: 4 });
      const { regionLatencyMs } = scenario.pops[0]!;
      expect(regionLatencyMs[regions[0]!.name], "the first PoP is beside the first region").toBe(15);
      expect(Math.max(...Object.values(regionLatencyMs))).toBeLessThan(300);
      const code = survive === "1" ? '"auto"' : "{ k: 8, m: 4 }";
      expect(files.get("dev.js")).toContain(`, geography: "geography.json", code: ${code} })`);
      expect(files.get("tests/latency.spec.ts")).toContain(`world.region("${regions[0]!.name}").down()`);
    }
  },
);

test("latencies grow with the distance: Tokyo is farther from Frankfurt than Virginia is, by half", async () => {
  const files = await projectFiles({ ...defaultAnswers("a"), readers: "world" }, { version: "0.1.0" });
  const { pops } = JSON.parse(files.get("geography.json")!) as { pops: { regionLatencyMs: Record<string, number> }[] };
  // Great circles of 6,540 and 9,330 km.
  expect(pops[0]!.regionLatencyMs["n-virginia"]).toBeGreaterThan(108);
  expect(pops[0]!.regionLatencyMs["n-virginia"]).toBeLessThan(118);
  expect(pops[0]!.regionLatencyMs["tokyo"]).toBeGreaterThan(150);
  expect(pops[0]!.regionLatencyMs["tokyo"]).toBeLessThan(160);
});

test("the versions of the template are those of this repository", async () => {
  const files = await projectFiles(defaultAnswers("a"), { version: "0.1.0" });
  const { devDependencies } = JSON.parse(files.get("package.json")!) as Record<string, Record<string, string>>;
  const ours = JSON.parse(await readFile(new URL("package.json", ROOT), "utf8")) as typeof devDependencies & {
    devDependencies: Record<string, string>;
  };
  const others = Object.entries(devDependencies!).filter(([name]) => !/agarose/.test(name));
  expect(others.length).toBeGreaterThan(4);
  for (const [name, version] of others) expect([name, version]).toEqual([name, ours.devDependencies[name]]);
});

test("of two runs into one folder, one writes it and the other is refused", async () => {
  const files = await projectFiles(defaultAnswers("a"), { version: "0.1.0" });
  const target = join(folder, "a");
  const outcomes = await Promise.allSettled([writeProject(target, files), writeProject(target, files)]);
  expect(outcomes.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
  expect(outcomes.find(({ status }) => status === "rejected")).toMatchObject({ reason: { code: "USAGE" } });
  expect(await readdir(folder)).toEqual(["a"]);
});

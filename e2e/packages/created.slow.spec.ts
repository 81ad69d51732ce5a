/** The project that `create-agarose` writes, installed from tarballs: its test, and its Worker as it is deployed. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { expect, test } from "@playwright/test";
import { environment, pack, Project } from "./packed.ts";

let tool: Project;
let app: Project;

test.beforeAll(async () => {
  test.setTimeout(900_000);
  const packed = await pack("npm-created");
  tool = await Project.create({});
  const wanted = packed.filter(({ name }) => ["@agarose/core", "create-agarose"].includes(name));
  const offline = await tool.install(wanted);
  test.skip(offline !== undefined, offline);
  const options = ["--yes", "--readers", "europe", "--packages", dirname(wanted[0]!.tarball), "--no-install"];
  await tool.run("npx", "create-agarose", "app", ...options);
  app = Project.at(join(tool.folder, "app"));
  const failed = await app.install([]);
  test.skip(failed !== undefined, failed);
  await app.run("npm", "run", "setup");
});

test.afterAll(() => rm(tool.folder, { recursive: true, force: true, maxRetries: 5 }));

test("type-checks, builds, and passes its own latency test at the places that were chosen", async () => {
  expect(JSON.parse(await app.read("agarose.config.json"))).toMatchObject({ publicKeys: [expect.any(String)] });
  const pops = [{ name: "fra" }, { name: "ams" }, { name: "mad" }];
  expect(JSON.parse(await app.read("agarose.config.json"))).toMatchObject({ code: "auto", pops });
  await app.run("npm", "run", "types");
  await app.run("npm", "run", "build");
  await app.write({ "own.config.ts": OWN_BROWSER });
  const said = await app.run("npx", "playwright", "test", "--config", "own.config.ts");
  expect(said).toContain("1 passed");
  expect(said).toContain("reads by test: agarose-reads/index.html");
  expect(await app.read("agarose-reads/index.html")).toMatch(/<td>passed<\/td><td>[1-9]\d*<\/td>/);
});

test("its Worker, by its wrangler.jsonc in workerd, serves an object from the buckets of the local world", async () => {
  expect(await app.read("wrangler.jsonc")).toContain("agarose-fra");
  const world = run("node", "dev.js");
  try {
    await world.line(/^control /);
    await app.run("npx", "agarose", "--config", "world.json", "put", "package.json", "--key", "deployed/a b.json");
    await app.run("npx", "agarose", "--config", "world.json", "init", "--dev-vars");
    const wrangler = run("npx", "wrangler", "dev", "--env", "fra", "--ip", "127.0.0.1", "--port", "0");
    try {
      const [, url] = await wrangler.line(/Ready on (http:\S+)/);
      const response = await fetch(`${url}/o/deployed/a%20b.json`);
      expect([response.status, response.headers.get("x-agarose-pop")]).toEqual([200, "fra"]);
      expect(await response.text()).toBe(await app.read("package.json"));
      expect(await (await fetch(`${url}/healthz`)).json()).toMatchObject({ ok: true, location: "weur" });
    } finally {
      // It has nothing to save, and its own processes do not all end by SIGTERM.
      await wrangler.end("SIGKILL");
    }
  } finally {
    await world.end();
  }
});

/** The configuration of a created project, with the browser of this machine. */
const OWN_BROWSER = `
import config from "./playwright.config.ts";
const launchOptions = { executablePath: process.env["CHROMIUM_PATH"] };
const reporter = [["list"], ["@agarose/dev-world/reporter"]];
export default { ...config, reporter, use: { ...config.use, launchOptions, readTrace: "on" } };
`;

interface Running {
  /** Resolves with the first line that matches. Rejects with all output when the command ends before. */
  line(pattern: RegExp): Promise<RegExpExecArray>;
  end(signal?: NodeJS.Signals): Promise<void>;
}

/** Starts a command in the project, in its own process group, because npx starts others. */
function run(command: string, ...args: string[]): Running {
  const child: ChildProcess = spawn(command, args, {
    cwd: app.folder,
    env: environment(),
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const closed = once(child, "close");
  let output = "";
  child.stderr!.on("data", (part: Buffer) => (output += part.toString()));
  const lines = createInterface({ input: child.stdout! });
  return {
    async line(pattern) {
      for await (const line of lines) {
        output += `${line}\n`;
        const found = pattern.exec(line);
        if (found) {
          child.stdout!.resume();
          return found;
        }
      }
      throw new Error(`${command} ${args.join(" ")} ended before ${pattern}:\n${output}`);
    },
    async end(signal = "SIGTERM") {
      if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid!, signal);
      await closed;
    },
  };
}

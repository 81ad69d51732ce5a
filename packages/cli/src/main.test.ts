/** The command line as scripts use it; what concerns the process itself runs in one of its own. */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  chunkPlace,
  DOWN,
  manifestName,
  REGIONS,
  runAgarose,
  spawnAgarose,
  startTestWorld,
  type RunResult,
  type World,
} from "../test/world.ts";

let world: World;

beforeAll(async () => {
  world = await startTestWorld({ stripeBytes: 100_000 });
});

afterAll(() => world.close());

const jsonOf = ({ stdout }: RunResult): Record<string, any> => JSON.parse(stdout.toString()) as Record<string, any>;
const inWorld = (name: string): string => join(world.dir, name);

test("--help lists every verb, in groups", async () => {
  const { code, stdout } = await spawnAgarose(["--help"]);
  expect(code).toBe(0);
  for (const verb of ["put", "get", "ls", "rm", "verify", "repair", "doctor", "init", "dev", "lab"]) {
    expect(stdout.toString()).toMatch(new RegExp(`^  ${verb}\\b`, "m"));
  }
});

test.each([[["--version"]], [["-V"]]])("%j prints the version of the package", async (argv) => {
  const { code, stdout } = await runAgarose(argv);
  const { version } = JSON.parse(await readFile(new URL("../package.json", import.meta.url), "utf8"));
  expect(stdout.toString()).toBe(`${version}\n`);
  expect(code).toBe(0);
});

test.each([
  [["--json"], "no command: `agarose --help` lists them"],
  [["frobnicate", "--json"], "unknown command 'frobnicate'"],
  [["put", "--json"], "missing required argument 'path'"],
])("bad usage is reported in JSON: %j", async (args, message) => {
  const { code, stdout } = await runAgarose(args);
  expect([code, JSON.parse(stdout.toString()).error]).toMatchObject([2, { code: "USAGE", message }]);
});

test.each([
  [["frobnicate"], "agarose --help"],
  [["get", "--output", "x"], "agarose get --help"],
  [["sync", "folder"], "agarose sync --help"],
])("bad usage of %j names %s", async (argv, help) => {
  const { code, stderr } = await runAgarose(argv);
  expect([code, stderr.toString()]).toEqual([2, expect.stringMatching(new RegExp(`^error: .*\nrun \`${help}\` for `))]);
});

test("a reader that is slower than the command gets all that it prints", async () => {
  // More than a pipe holds, so that the command ends with a write under way.
  const option = `--${"x".repeat(120_000)}`;
  const bin = fileURLToPath(new URL("../bin/agarose.js", import.meta.url));
  const shell = spawn("sh", [
    "-c",
    '"$@" 2>/dev/null | (sleep 1; cat)',
    "sh",
    process.execPath,
    bin,
    "ls",
    "--json",
    option,
  ]);
  let printed = "";
  shell.stdout.on("data", (part: Buffer) => (printed += part.toString()));
  await once(shell, "close");
  expect((JSON.parse(printed) as { error: { message: string } }).error.message).toContain(option);
});

describe("put and get", () => {
  test("a file goes under its base name with its type, and comes back", async () => {
    const body = randomBytes(250_000);
    await writeFile(inWorld("upload-cat.jpg"), body);
    const put = await world.run(["put", "--json", inWorld("upload-cat.jpg")]);
    expect(put.code).toBe(0);
    expect(jsonOf(put).objects).toMatchObject([{ key: "upload-cat.jpg", bytes: 250_000, outcome: "stored" }]);
    const dry = await world.run(["get", "upload-cat.jpg", "cat-back.jpg", "--dry-run"]);
    expect(dry.stdout.toString()).toBe("would write cat-back.jpg  244.1 KiB  image/jpeg\n");
    expect((await world.run(["get", "upload-cat.jpg", "-", "--dry-run"])).code).toBe(2);
    expect(await world.files()).toEqual([]);
    const get = await world.run(["get", "upload-cat.jpg", "cat-back.jpg", "--json"]);
    expect(jsonOf(get)).toMatchObject({
      key: "upload-cat.jpg",
      bytes: 250_000,
      contentType: "image/jpeg",
      read: "origin",
    });
    expect((await readFile(inWorld("cat-back.jpg"))).equals(body)).toBe(true);
    expect(await world.files()).toEqual(["cat-back.jpg"]);
  });

  test("a folder goes under its name with all that is in it, a prefix before it", async () => {
    await mkdir(inWorld("upload-tree/sub/deep"), { recursive: true });
    await writeFile(inWorld("upload-tree/page.html"), "<p>");
    await writeFile(inWorld("upload-tree/sub/ä b.txt"), "text");
    await writeFile(inWorld("upload-tree/sub/deep/empty"), "");
    const put = await world.run(["put", "--prefix", "site/", "--header", "cache-control: max-age=5", "upload-tree"]);
    expect(put.code).toBe(0);
    const ls = jsonOf(await world.run(["ls", "site/", "--long", "--json"]));
    expect(ls.objects.map(({ key, bytes, contentType }: Record<string, unknown>) => [key, bytes, contentType])).toEqual(
      [
        ["site/upload-tree/page.html", 3, "text/html; charset=utf-8"],
        // In UTF-8 order.
        ["site/upload-tree/sub/deep/empty", 0, "application/octet-stream"],
        ["site/upload-tree/sub/ä b.txt", 4, "text/plain; charset=utf-8"],
      ],
    );
    const manifest = JSON.parse((await world.read("tokyo", manifestName("site/upload-tree/page.html"))).toString());
    expect(manifest.headers).toEqual({ "cache-control": "max-age=5" });
  });

  test("a path with .. goes under its base name, and so does the folder that .. is", async () => {
    await mkdir(inWorld("upload-dots/inner"), { recursive: true });
    await writeFile(inWorld("upload-dots/file"), "x");
    const paths = ["upload-dots/inner/../file", "upload-dots/inner/.."];
    const put = jsonOf(await world.run(["put", ...paths, "--json"]));
    expect(put["objects"].map(({ key }: { key: string }) => key)).toEqual(["file", "upload-dots/file"]);
  });

  test("stdin goes under its key, and to stdout comes back, whole or in part", async () => {
    const body = randomBytes(300_000);
    expect((await world.spawn(["put", "-", "--key", "from/stdin"], { stdin: body })).code).toBe(0);
    expect((await world.run(["get", "from/stdin", "-"])).stdout.equals(body)).toBe(true);
    const part = await world.run(["get", "from/stdin", "-", "--range", "99990-100009"]);
    expect(part.stdout.equals(body.subarray(99_990, 100_010))).toBe(true);
    const end = await world.run(["get", "from/stdin", "-", "--range", "-7"]);
    expect(end.stdout.equals(body.subarray(-7))).toBe(true);
  });

  test("a file that cannot be stored does not keep the others back", async () => {
    await writeFile(inWorld("upload-good"), "good");
    await writeFile(inWorld("upload-bad"), "bad");
    for (const region of ["tokyo", "dublin", "paulo"]) {
      world.faults.set(region, (request, response, name) => {
        if (request.method !== "PUT" || !name.startsWith("chunks/upload-bad")) return false;
        response.writeHead(403).end();
        request.resume();
        return true;
      });
    }
    const put = await world.run(["put", inWorld("upload-bad"), inWorld("upload-good"), "--json"]);
    world.faults.clear();
    expect(put.code).toBe(1);
    expect(jsonOf(put).objects).toMatchObject([
      { key: "upload-bad", outcome: "failed", error: { code: "CREDENTIALS_REFUSED" } },
      { key: "upload-good", outcome: "stored" },
    ]);
  });

  test("a range that cannot be met, or is none, is an error and leaves no file", async () => {
    await world.put("short", randomBytes(10));
    const before = await world.files();
    const unmet = await world.run(["get", "short", "out", "--range", "10-", "--json"]);
    expect([unmet.code, jsonOf(unmet).error.code]).toEqual([1, "RANGE_UNSATISFIABLE"]);
    expect((await world.run(["get", "short", "out", "--range", "x"])).code).toBe(2);
    expect(await world.files()).toEqual(before);
  });

  test("a read that fails leaves the file that was there, and nothing else", async () => {
    const put = await world.put("spoiled", randomBytes(400_000));
    for (const chunk of [0, 1, 2]) {
      const [region, name] = chunkPlace(put, chunk);
      // Only the last stripe is bad, so that the read fails in the middle.
      await world.tamper(region, name, (bytes) => {
        bytes[bytes.length - 1]! ^= 1;
        return bytes;
      });
    }
    await writeFile(inWorld("kept"), "old");
    const before = await world.files();
    const get = await world.run(["get", "spoiled", "kept"]);
    expect(get.code).toBe(1);
    expect(get.stderr).toMatch(/^NOT_ENOUGH_CHUNKS: /);
    expect((await readFile(inWorld("kept"))).toString()).toBe("old");
    expect(await world.files()).toEqual(before);
  });

  test("SIGTERM in the middle of a put leaves the version before", async () => {
    const old = randomBytes(1000);
    await world.put("killed", old);
    await writeFile(inWorld("upload-killed"), randomBytes(5_000_000));
    const reached = Promise.withResolvers<void>();
    for (const region of REGIONS) {
      world.faults.set(region, async (request, _response, name) => {
        if (request.method === "PUT" && name.startsWith("chunks/")) {
          reached.resolve();
          await new Promise((resolve) => setTimeout(resolve, 5000).unref());
        }
        return false;
      });
    }
    const put = ["put", "--key", "killed", "upload-killed", "--json"];
    const { code, stdout } = await world.spawn(put, { killWhen: reached.promise });
    expect([code, JSON.parse(stdout.toString()).error.code]).toEqual([1, "ABORTED"]);
    world.faults.clear();
    expect((await world.get("killed")).equals(old)).toBe(true);
  });
});

describe("ls and rm", () => {
  test("what is removed is gone, and only that", async () => {
    await world.put("rm/a", randomBytes(1000));
    await world.put("rm/a", randomBytes(2000));
    await world.put("rm/ab", randomBytes(1000));
    const rm = jsonOf(await world.run(["rm", "rm/a", "--json"]));
    expect(rm.objects).toMatchObject([
      { key: "rm/a", generation: 3, chunksRemoved: 6, regionsWithoutTombstone: [], leftovers: [] },
    ]);
    // The chunks of the version before are left to gc.
    expect((await world.names("chunks/")).filter((name) => name.includes("rm/a!"))).toHaveLength(6);
    const ls = await world.run(["ls", "rm/"]);
    expect(ls.stdout.toString()).toBe("rm/ab\n");
    expect((await world.run(["rm", "rm/a"])).code).toBe(1);
  });

  test("--prefix removes all objects below it", async () => {
    for (const key of ["many/1", "many/2", "many-other"]) await world.put(key, randomBytes(10));
    const rm = jsonOf(await world.run(["rm", "many/", "-r", "--json"]));
    expect(rm.objects.map(({ key }: { key: string }) => key)).toEqual(["many/1", "many/2"]);
    expect(jsonOf(await world.run(["ls", "many", "--json"])).objects).toMatchObject([{ key: "many-other" }]);
  });

  test("with a region down ls still lists, and rm says what it could not remove", async () => {
    const put = await world.put("left", randomBytes(10));
    world.faults.set("dublin", DOWN);
    const ls = jsonOf(await world.run(["ls", "left", "--json"]));
    expect(ls).toMatchObject({ objects: [{ key: "left" }], complete: true, regionsFailed: [{ region: "dublin" }] });
    const rm = await world.run(["rm", "left", "--json"]);
    expect(rm.code).toBe(1);
    expect(jsonOf(rm).objects[0]).toMatchObject({
      chunksRemoved: 5,
      regionsWithoutTombstone: [{ region: "dublin" }],
      leftovers: [{ region: "dublin" }],
    });
    expect(world.fired.get("dublin")).toBeGreaterThan(0);
    world.faults.clear();
    expect((await world.run(["rm", "left"])).code).toBe(0);
    expect((await world.names()).filter((name) => name.includes(put.upload))).toEqual([]);
  });
});

describe("a key with control characters", () => {
  const key = "esc\u001b]0;owned\u0007\nnext\u009b";
  const verbs = ["put", "ls", "verify", "repair", "gc", "rm", "get"];

  test.each(verbs)("is printed with escapes by %s", async (verb) => {
    await writeFile(inWorld("upload-esc"), "x");
    const put = await world.run(["put", inWorld("upload-esc"), "--key", key]);
    if (verb === "repair") await world.tamper("tokyo", manifestName(key), () => undefined);
    if (verb === "get") await world.run(["rm", key]);
    const args = { ls: [], gc: [] }[verb] ?? [key];
    const { stdout, stderr } = verb === "put" ? put : await world.run([verb, ...args]);
    const printed = stdout.toString() + stderr;
    if (verb !== "gc") expect(printed).toContain("esc");
    // eslint-disable-next-line no-control-regex
    expect(printed).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
  });
});

describe("verify", () => {
  test("with a region down, objects are unchecked and not damaged, and the region is named once", async () => {
    for (const key of ["down/a", "down/b"]) await world.put(key, randomBytes(1000));
    world.faults.set("dublin", DOWN);
    const verify = await world.run(["verify", "--prefix", "down/"]);
    const json = jsonOf(await world.run(["verify", "--prefix", "down/", "--json"]));
    world.faults.clear();
    expect(world.fired.get("dublin")).toBeGreaterThan(0);
    expect(verify.code).toBe(1);
    const lines = verify.stdout.toString().trimEnd().split("\n");
    expect(lines.filter((line) => line.includes("dublin"))).toEqual([expect.stringMatching(/^unreachable  dublin  /)]);
    expect(lines.at(-1)).toBe(
      "2 objects, 0 damaged, 0 unreadable, 2 not checked in full because a region did not answer",
    );
    expect(json).toMatchObject({ damaged: 0, unreadable: 0, unchecked: 2, regionsUnreachable: [{ region: "dublin" }] });
  });

  test("exit 1 and the damage when something is damaged", async () => {
    const put = await world.put("verified", randomBytes(1000));
    expect((await world.run(["verify", "verified"])).code).toBe(0);
    const [region, name] = chunkPlace(put, 3);
    await world.tamper(region, name, () => undefined);
    const damaged = await world.run(["verify", "--prefix", "verif", "--json"]);
    expect(damaged.code).toBe(1);
    expect(jsonOf(damaged)).toMatchObject({
      damaged: 1,
      unreadable: 0,
      objects: [{ key: "verified", readable: true, damage: [{ chunk: 3, region, code: "CHUNK_MISSING" }] }],
    });
    const unknown = await world.run(["verify", "no-such-key", "--json"]);
    expect([unknown.code, jsonOf(unknown).error.code]).toEqual([1, "OBJECT_NOT_FOUND"]);
  });
});

describe("errors", () => {
  test.each([
    ["a key that is ..", ["get", ".."], 2, "KEY_INVALID"],
    ["an unknown key", ["get", "unknown"], 1, "OBJECT_NOT_FOUND"],
    ["two paths for one key", ["put", "a", "b", "--key", "k"], 2, "USAGE"],
    ["stdin without a key", ["put", "-"], 2, "USAGE"],
    ["a file that is not there", ["put", "no-such-file"], 2, "FILE_UNREADABLE"],
    ["a header that cannot be served", ["put", "x", "--header", "set-cookie: a"], 2, "USAGE"],
    ["--config of a verb that reads none", ["lab", "solve", "-", "--config", "x"], 2, "USAGE"],
    ["--config before such a verb", ["--config", "x", "simulate", "x.json"], 2, "USAGE"],
    ["--config of one that is called without lab", ["solve", "-", "--config", "x"], 2, "USAGE"],
    ["--config of such an inner verb", ["bench", "codec", "--config", "x"], 2, "USAGE"],
    ["an unknown verb", ["frobnicate"], 2, "USAGE"],
    ["an unknown option", ["ls", "--frobnicate"], 2, "USAGE"],
    ["a missing argument", ["get"], 2, "USAGE"],
  ])("%s", async (_name, args, exit, errorCode) => {
    const { code, stdout } = await world.run([...args, "--json"]);
    expect(JSON.parse(stdout.toString()).error.code).toBe(errorCode);
    expect(code).toBe(exit);
  });

  test("without --json they are on stderr as `CODE: message`", async () => {
    const { stdout, stderr } = await world.run(["get", "unknown"]);
    expect(stdout.length).toBe(0);
    expect(stderr).toMatch(/^OBJECT_NOT_FOUND: no object "unknown"/);
  });

  test("wrong and missing credentials", async () => {
    const wrong = await world.run(["ls", "--json"], { AWS_SECRET_ACCESS_KEY: "wrong" });
    expect([wrong.code, jsonOf(wrong).error.code]).toEqual([1, "CREDENTIALS_REFUSED"]);
    const missing = await world.run(["put", "agarose.config.json", "--json"], {
      AWS_ACCESS_KEY_ID: "",
      AWS_SECRET_ACCESS_KEY: "",
      AWS_EC2_METADATA_DISABLED: "true",
      HOME: world.dir,
    });
    expect([missing.code, jsonOf(missing).error.code]).toEqual([1, "CREDENTIALS_REFUSED"]);
  });

  test("a wrong configuration names the field", async () => {
    await writeFile(inWorld("upload-bad.json"), JSON.stringify({ regions: [], code: { k: 4, m: 2 } }));
    const { code, stderr } = await runAgarose(["ls", "--config", inWorld("upload-bad.json")]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^CONFIG_INVALID: .*`regions`/);
  });
});

test("doctor passes on a sound world", async () => {
  const doctor = await world.run(["doctor", "--json"]);
  expect(jsonOf(doctor)).toMatchObject({ ok: true });
  expect(doctor.code).toBe(0);
});

/** A disk that is full under an adoption, the bodies of a gateway, and a sync: a typed error, and no half of a file. */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { CreateMultipartUploadCommand, S3Client } from "@aws-sdk/client-s3";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { startWithOrigin, type WithOrigin } from "../../test/origin.ts";
import { allOf, KEYS } from "../../test/three-regions.ts";
import { S3Store } from "../buckets/s3-store.ts";
import { Deployment, openDeployment } from "../deployment.ts";
import { startGateway } from "../gateway/gateway.ts";
import { closeParts, openParts } from "../parts.ts";
import { writeWholeFile } from "./whole-file.ts";

const KIB = 1024;
const run = promisify(execFile);

async function mountSmall(): Promise<string | undefined> {
  const folder = await mkdtemp(join(tmpdir(), "agarose-full-"));
  try {
    await run("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", folder]);
    return folder;
  } catch {
    await rm(folder, { recursive: true });
    return undefined;
  }
}

async function unmount(folder: string): Promise<void> {
  await run("umount", ["--lazy", folder]);
  await rm(folder, { recursive: true });
}

const probe = await mountSmall();
if (probe !== undefined) await unmount(probe);

describe.skipIf(probe === undefined)("a file system of 64 KiB (needs the right to mount)", () => {
  let world: WithOrigin;
  let store: Deployment;
  let full: string;
  beforeEach(async () => {
    world = await startWithOrigin();
    store = await openDeployment(world.fields);
    full = (await mountSmall())!;
  });
  afterEach(async () => {
    vi.unstubAllEnvs();
    store.close();
    await world.close();
    await unmount(full);
  });
  const bytes = randomBytes(200 * KIB);

  test("an adoption fails with DISK_FULL, and the next one finds nothing half-stored", async () => {
    await world.put("film", bytes);
    vi.stubEnv("TMPDIR", full);
    await expect(store.get("film")).rejects.toMatchObject({ code: "DISK_FULL" });
    expect(await allOf(store.adopt())).toMatchObject([{ outcome: "failed", error: { code: "DISK_FULL" } }]);
    expect(await readdir(full), "nothing is left on it").toEqual([]);
    vi.unstubAllEnvs();
    expect(Buffer.concat(await allOf((await store.get("film")).body)).equals(bytes)).toBe(true);
  });

  test.each(["no folder for uploads", "a folder for uploads"])("a gateway with %s answers 503", async (what) => {
    vi.stubEnv("TMPDIR", full);
    const context = openParts(world.config, {}, new AbortController().signal);
    const uploads = what.startsWith("a ") ? { dir: full, lock: () => () => {} } : undefined;
    const usual = { pairs: [KEYS] as const, port: 0, host: "127.0.0.1", spoolBytes: 2 ** 30 };
    const gateway = await startGateway({ ...usual, context, uploads });
    const bucket = { ...world.config.regions[0]!, endpoint: gateway.url, bucket: "agarose" };
    const client = new S3Store(bucket, { credentials: KEYS, attempts: 1 });
    const sdk = new S3Client({
      endpoint: gateway.url,
      region: "us-east-1",
      credentials: KEYS,
      forcePathStyle: true,
      maxAttempts: 1,
    });
    try {
      const put = client.put("film", bytes, { bytes: bytes.length, contentType: "video/mp4" });
      await expect(put).rejects.toMatchObject({
        details: { status: 503 },
        message: expect.stringContaining("DISK_FULL"),
      });
      await writeFile(join(full, "filler"), Buffer.alloc(64 * KIB)).catch(() => {});
      const small = client.put("note", Buffer.from("note"), { bytes: 4, contentType: "text/plain" });
      await expect(small).rejects.toMatchObject({
        details: { status: 503 },
        message: expect.stringContaining("DISK_FULL"),
      });
      if (uploads) {
        const begun = sdk.send(new CreateMultipartUploadCommand({ Bucket: "agarose", Key: "film" }));
        await expect(begun).rejects.toMatchObject({ name: "ServiceUnavailable", message: /DISK_FULL/ });
      }
      await rm(join(full, "filler"));
      await client.put("note", Buffer.from("note"), { bytes: 4, contentType: "text/plain" });
      expect(await client.head("note"), "with room again").toBe(4);
      expect(await client.head("film")).toBeUndefined();
    } finally {
      sdk.destroy();
      client.close();
      await gateway.close(0);
      closeParts(context);
    }
  });

  test("a sync into it fails for what has no room, and leaves no part of it", async () => {
    await store.put("app/film", bytes);
    await store.put("app/note", "newer");
    await writeFile(join(full, "note"), "older");
    const outcomes = await allOf(store.sync({ prefix: "app/" }, { folder: full }));
    expect(outcomes).toContainEqual(expect.objectContaining({ key: "app/film", outcome: "failed" }));
    const failed = outcomes.find(({ outcome }) => outcome === "failed") as { error: { code: string } };
    expect(failed.error.code).toBe("DISK_FULL");
    expect(await readdir(full)).toEqual(["note"]);
    expect(await readFile(join(full, "note"), "utf8")).toBe("newer");
    // A folder needs room, too: that of a file system without any is DISK_FULL as well.
    await writeFile(join(full, "filler"), Buffer.alloc(64 * KIB)).catch(() => {});
    await expect(writeWholeFile(join(full, "other"), (write) => write(bytes))).rejects.toMatchObject({
      code: "DISK_FULL",
    });
  });
});

test.each(["/dev/null", "/dev/null/below"])("a sync into %s, which is no folder, is USAGE", async (folder) => {
  const world = await startWithOrigin();
  const store = await openDeployment(world.fields);
  try {
    await store.put("app/note", "note");
    const walked = allOf(store.sync({ prefix: "app/" }, { folder }));
    await expect(walked).rejects.toMatchObject({ code: "USAGE", message: expect.stringMatching(/\/dev\/null/) });
  } finally {
    store.close();
    await world.close();
  }
});

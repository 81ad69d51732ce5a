/** The page's checks of the worker file that its server sends. */
import { readFile } from "node:fs/promises";
import { expect, test, vi } from "vitest";
import { stamped } from "../../test/stamped.ts";
import { checkWorkerFile, VERSION } from "./worker-file.ts";

const URL_OF_FILE = "https://app.test/agarose-sw.js";
const SCRIPT = 'addEventListener("fetch", () => {});\n';

/** Checks a file that is served like that; rejects as `checkWorkerFile` does. */
function check(body: string, type = "text/javascript; charset=utf-8", status = 200): Promise<void> {
  const answer = new Response(body, { status, headers: { "content-type": type } });
  return checkWorkerFile(URL_OF_FILE, vi.fn<typeof fetch>().mockResolvedValue(answer));
}

test("the version is that of the package", async () => {
  const { version } = JSON.parse(await readFile(new URL("../../package.json", import.meta.url), "utf8"));
  expect(VERSION).toBe(version);
});

test("the file that belongs to the page passes", async () => {
  await expect(check(stamped(SCRIPT))).resolves.toBeUndefined();
});

test("reports a page in its place as a page", async () => {
  await expect(check("<!doctype html><title>App</title>", "text/html")).rejects.toMatchObject({
    code: "CONFIG_INVALID",
    message: expect.stringMatching(/HTML page.*text\/html, text\/javascript is expected.*npx agarose init/),
    details: { url: URL_OF_FILE, problem: "type", type: "text/html" },
  });
});

test("a missing file is named as such", async () => {
  await expect(check("", "text/plain", 404)).rejects.toMatchObject({
    code: "CONFIG_INVALID",
    message: expect.stringContaining("is answered with 404, 200 is expected"),
    details: { problem: "missing", status: 404 },
  });
});

test("reports a file of another version with both versions", async () => {
  const stale = stamped(SCRIPT).replace(VERSION, "0.0.9");
  await expect(check(stale)).rejects.toMatchObject({
    message: expect.stringContaining(`is of version 0.0.9, this page needs ${VERSION}`),
    details: { problem: "version", version: "0.0.9", expected: VERSION },
  });
});

test.each([
  ["cut short", (file: string) => file.slice(0, -3)],
  ["rewritten", (file: string) => file.replace("fetch", "fetcH")],
])("reports a file that was %s with both checksums", async (_, spoil) => {
  const error = await check(spoil(stamped(SCRIPT))).catch((cause: unknown) => cause);
  expect(error).toMatchObject({ code: "CONFIG_INVALID", details: { problem: "checksum" } });
  const { expected, actual } = (error as { details: Record<string, string> }).details;
  expect((error as Error).message).toContain(`its checksum is ${actual}, ${expected} is written in it`);
});

test("distinguishes another script from ours", async () => {
  await expect(check(SCRIPT)).rejects.toMatchObject({ details: { problem: "foreign" } });
});

/**
 * The handshake between a page and the worker file that its app serves: the file's first line says which version it is
 * and what its other bytes hash to, so that a page can recognise a stale, altered or missing file.
 */
import { AgaroseError } from "@agarose/core";
import { CODEC_FILE, CODEC_VERSION } from "../common/worker-files.ts";

/** The version of this package. */
export const VERSION = "0.1.0";

/** Hex digits of the SHA-256 in the first line: enough against accidents. */
const CHECKSUM_DIGITS = 16;
const STAMP = /^\/\*! agarose-(\w+) (\S+) ([0-9a-f]+) \*\/\n/;

/** The facts in a file's first line. The codec has its own version, so that a release need not change it. */
function kindOf(name: string): readonly [kind: string, version: string] {
  return name === CODEC_FILE ? ["codec", String(CODEC_VERSION)] : ["sw", VERSION];
}

/** The first line of the file `name`. `hash` is the SHA-256 of all other lines, in hex. */
export function stampOf(name: string, hash: string): string {
  return `/*! agarose-${kindOf(name).join(" ")} ${hash.slice(0, CHECKSUM_DIGITS)} */`;
}

/**
 * Looks at the file at `url` as the server sends it. Resolves when it is the one that belongs to this page.
 *
 * @throws CONFIG_INVALID when it is missing, another kind of file (a single-page app's HTML), of another version, or
 *   altered;
 *   `details.problem` is `missing`, `type`, `foreign`, `version` or `checksum`.
 */
export async function checkWorkerFile(url: string, fetch: typeof globalThis.fetch): Promise<void> {
  const response = await fetch(url, { cache: "no-cache" });
  const type = response.headers.get("content-type") ?? "no type";
  if (response.status !== 200) {
    const { status } = response;
    throw wrong(url, "missing", `is answered with ${status}, 200 is expected`, { status });
  }
  const text = await response.text();
  if (!/\bjavascript\b/i.test(type)) {
    const what = /^\s*</.test(text) ? "an HTML page, as of a single-page app's fallback," : "something else";
    throw wrong(url, "type", `is ${what} in its place (${type}, text/javascript is expected)`, { type });
  }
  const [line, kind, version, expected] = STAMP.exec(text) ?? [];
  const [ownKind, ownVersion] = kindOf(url.replace(/[?#].*/s, "").replace(/.*\//, ""));
  if (line === undefined || kind !== ownKind)
    throw wrong(url, "foreign", "is not this file of Agarose: its first line does not say so", {});
  if (version !== ownVersion) {
    const details = { version, expected: ownVersion };
    throw wrong(url, "version", `is of version ${version}, this page needs ${ownVersion}`, details);
  }
  const actual = await checksum(text.slice(line.length));
  if (actual === expected) return;
  throw wrong(url, "checksum", `was altered or cut short: its checksum is ${actual}, ${expected} is written in it`, {
    expected,
    actual,
  });
}

async function checksum(script: string): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(script)));
  const hex = Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.slice(0, CHECKSUM_DIGITS);
}

function wrong(url: string, problem: string, what: string, details: Record<string, unknown>): AgaroseError {
  return new AgaroseError(
    "CONFIG_INVALID",
    `service worker ${url} ${what}: write the file again with \`npx agarose init\` and serve it unchanged`,
    { url, problem, ...details },
  );
}

/** `agarose stat`: what the manifest of an object says. */
import { systemClock } from "@agarose/core";
import { parseKey } from "@agarose/core/format";
import { shownManifest } from "@agarose/storage/encryption/secrets-of";
import { readOrAdopt } from "@agarose/storage/origin/read-through";
import { Breaker } from "@agarose/storage/regions/ask-regions";
import type { Values } from "../../command.ts";
import { READING, withContext } from "../../lib/context.ts";
import { formatBytes, printable, printResult, tableLines } from "../../ui/output.ts";
import type { args } from "./index.ts";

/** Runs `agarose stat KEY`. It reads only the manifest, and no chunk. */
export async function stat({ key, consistency, ...options }: Values<typeof args>): Promise<void> {
  parseKey(key);
  await withContext(options, READING, async (command) => {
    const context = { ...command, clock: systemClock, breaker: new Breaker(systemClock) };
    const manifest = await readOrAdopt(key, context, { consistency });
    const { bytes, contentType, headers, modified, version, generation, sha256 } = await shownManifest(
      manifest,
      command.config,
    );
    const code = "inline" in manifest ? "inline" : `${manifest.k}+${manifest.m}`;
    const regions = [...new Set(manifest.placement)];
    const result = { key, bytes, contentType, headers, modified, version, generation, sha256, code, regions };
    const rows: [string, string][] = [
      ["key", printable(key)],
      ["length", `${formatBytes(bytes)}${bytes < 1024 ? "" : ` (${bytes} bytes)`}`],
      ["type", contentType],
      ...Object.entries(headers),
      ["modified", modified],
      ["version", version],
      ["generation", `${generation}`],
      ["sha256", sha256],
      ["code", code],
      ["regions", regions.join(", ") || "all, in the manifest"],
    ];
    printResult(command, result, tableLines(rows));
  });
}

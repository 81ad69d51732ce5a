/** A worker file as `build.ts` writes it. */
import { createHash } from "node:crypto";
import { stampOf } from "../src/page/worker-file.ts";

/** `script` below its first line, as the file `name`. */
export function stamped(script: string, name = "agarose-sw.js"): string {
  return `${stampOf(name, createHash("sha256").update(script).digest("hex"))}\n${script}`;
}

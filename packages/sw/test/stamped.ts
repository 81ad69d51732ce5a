/** A worker file as `build.ts` writes it. */
import { createHash } from "node:crypto";
import { stampOf } from "../src/page/worker-file.ts";

/** `script` below its first line. */
export function stamped(script: string): string {
  return `${stampOf(createHash("sha256").update(script).digest("hex"))}\n${script}`;
}

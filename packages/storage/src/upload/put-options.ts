/** Options of the commands that store files: response headers, and how many objects at a time. */
import { AgaroseError } from "@agarose/core";
import { HEADERS_ALLOWED } from "@agarose/core/format";
import { describedAsStored } from "./object-headers.ts";
import { freeDescriptors } from "../files/descriptors.ts";
import { AdaptiveWidth } from "../listing/adaptive-pool.ts";

/**
 * Objects at a time without `jobs`. A large one counts as many, because its stripes are in memory. A region may get two
 * chunks of each: `SOCKETS` of a client are enough for all.
 */
const WIDTH = { start: 16, min: 2, max: 64 };
/** The file, and two connections to each of six regions. */
const DESCRIPTORS = 13;
const UNIT_BYTES = 256 * 1024;
const UNITS_MAX = 12;

/**
 * How many units may be under way: those of `jobs`, or as many as the stores take. Neither is more than this process
 * has `descriptors` for.
 */
export function widthOf(jobs: number | undefined, descriptors = freeDescriptors()): AdaptiveWidth {
  const most = Math.max(1, Math.floor(descriptors / DESCRIPTORS));
  const { start, min, max } = jobs === undefined ? WIDTH : { start: jobs, min: jobs, max: jobs };
  return new AdaptiveWidth({ start: Math.min(start, most), min: Math.min(min, most), max: Math.min(max, most) });
}

/** How much of the width a file takes; standard input, whose length no one knows, as a large one. */
export function unitsOf(bytes = Infinity): number {
  return Math.min(UNITS_MAX, 1 + Math.floor(bytes / UNIT_BYTES));
}

/** Headers of lines `name: value`. Throws USAGE. */
export function parseHeaders(lines: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    lines.map((line) => {
      const [, name = "", value = ""] = /^([^:]+):\s*(.+)$/u.exec(line) ?? [];
      const lower = name.trim().toLowerCase();
      if (HEADERS_ALLOWED.has(lower)) {
        // Here already, so that no command begins with what cannot be stored.
        return [lower, describedAsStored({ contentType: "", headers: { [lower]: value } }).headers[lower]!];
      }
      const allowed = [...HEADERS_ALLOWED].join(", ");
      throw new AgaroseError(
        "USAGE",
        `the header ${JSON.stringify(line)} is not "name: value" with a name of: ${allowed}`,
      );
    }),
  );
}

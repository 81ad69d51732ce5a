/** The codes of all sizes in one line for people. */
import type { CodesBySize } from "@agarose/solver/codes-by-size";
import { formatBytes } from "../maintenance/amounts.ts";

/** Such as "auto: up to 16 KiB inline, up to 46 KiB 1+1, above 5+1 (1.44x storage for images and some video)". */
export function codesLine({ codes, storage }: CodesBySize): string {
  const parts = codes.map(({ bytesMax, k, m, inline }) => {
    const size = bytesMax === undefined ? "above" : `up to ${formatBytes(bytesMax)}`;
    return `${size} ${inline ? "inline" : `${k}+${m}`}`;
  });
  return `auto: ${parts.join(", ")} (${storage.toFixed(2)}x storage for images and some video)`;
}

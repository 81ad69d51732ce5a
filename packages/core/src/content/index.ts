/** `@agarose/core/content`: from stored bytes to the content of an object (docs/reference/format.md, "Compression"). */
export { openContent, shownBytes, storedRangeOf } from "./open.ts";
export type { OpenedObject } from "./opened-object.ts";

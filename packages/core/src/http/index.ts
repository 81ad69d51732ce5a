/** `@agarose/core/http`: ranges, conditions and the responses of an object. */
export { contentRange, parseRange, type ByteRange } from "./range.ts";
export { partsAnswer, type ObjectPart, type PartsAnswer } from "./object-parts.ts";
export {
  codingsOf,
  errorAnswer,
  etagOf,
  failedCondition,
  isRangeValid,
  keyInPath,
  keyOfPath,
  objectAnswer,
  unshared,
  type ObjectAnswer,
  type Validators,
} from "./object-response.ts";

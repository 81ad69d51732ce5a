/**
 * The wire of S3 as a server speaks it: signatures, bodies, conditions, lists and errors.
 */
export * from "./wire/index.ts";

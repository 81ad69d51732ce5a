/**
 * The names and bounds that help texts state. They are apart from the index because that one loads every policy.
 */
export { LOG_FORMATS, type LogFormat } from "./traces/log-formats.ts";
export { READS_MAX } from "./traces/trace.ts";

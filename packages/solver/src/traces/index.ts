/** Access logs as sequences of reads. */
export { guessLogFormat } from "./guess-format.ts";
export { LOG_FORMATS, type LogFormat, type LogRecord } from "./log-formats.ts";
export { sampleTrace } from "./sample.ts";
export { READS_MAX, TraceBuilder, type Trace, type TraceOptions, type TraceReport } from "./trace.ts";

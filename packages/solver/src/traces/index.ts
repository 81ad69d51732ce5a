/** Access logs as sequences of reads. */
export { guessLogFormat, LOG_FORMATS, type LogFormat, type LogRecord } from "./log-formats.ts";
export { READS_MAX, sampleTrace, TraceBuilder, type Trace, type TraceOptions, type TraceReport } from "./trace.ts";

/** Structured logs: one JSON object a line, as Workers Logs indexes them, each with an `event` to filter by. */
import { toAgaroseError } from "@agarose/core";

export type LogLevel = "info" | "warn" | "error";

/** @param fields must serialise as JSON; an `error` among them becomes its code and message. */
export function log(level: LogLevel, event: string, fields: Readonly<Record<string, unknown>> = {}): void {
  const { error, ...others } = fields;
  const line = JSON.stringify({ level, event, ...others, ...("error" in fields ? errorFields(error) : {}) });
  if (level === "info") console.log(line);
  else if (level === "warn") console.warn(line);
  else console.error(line);
}

/** The stack is of use for defects of ours only: other errors are expected, and say what happened. */
function errorFields(cause: unknown): Record<string, unknown> {
  const error = toAgaroseError(cause);
  const { code, message } = error;
  if (code !== "INTERNAL") return { code, message };
  return { code, message, stack: cause instanceof Error ? cause.stack : undefined };
}

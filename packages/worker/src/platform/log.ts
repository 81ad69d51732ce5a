/** Structured logs: one JSON object a line, which Workers Logs indexes, each with an `event` to filter by. */
import { toAgaroseError } from "@agarose/core";

/** How serious an event is. */
export type LogLevel = "info" | "warn" | "error";

/** Writes one line. `fields` must serialise as JSON; an `error` among them becomes its code and message. */
export function log(level: LogLevel, event: string, fields: Readonly<Record<string, unknown>> = {}): void {
  const { error, ...others } = fields;
  const line = JSON.stringify({ level, event, ...others, ...("error" in fields ? errorFields(error) : {}) });
  if (level === "info") console.log(line);
  else if (level === "warn") console.warn(line);
  else console.error(line);
}

/** Only defects of this program need their stack: other errors are expected, and their message says what happened. */
function errorFields(cause: unknown): Record<string, unknown> {
  const error = toAgaroseError(cause);
  const { code, message } = error;
  if (code !== "INTERNAL") return { code, message };
  return { code, message, stack: cause instanceof Error ? cause.stack : undefined };
}

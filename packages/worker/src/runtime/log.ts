/** Structured logs: one JSON object a line, which Workers Logs indexes, each with an `event` to filter by. */
import { toAgaroseError } from "@agarose/core";

/** How serious an event is. */
type LogLevel = "info" | "warn" | "error";

/** The meaning of each event. The reference of events and metrics is made from it. */
export const LOG_EVENTS = {
  period: "A period of the cache manager is over. The fields are those of `lastPeriod` in `/v1/status`, without keys.",
  "period failed": "The period could not run; the cache stays as it is until the next one.",
  "exchange failed": "An exchange could not run; the next one retries.",
  "period without peers": "The period could not read the contents of the other PoPs, and decided without them.",
  purge: "A purge is done, with its prefix or keys and the number of removed entries.",
  "request failed": "A request was answered with 500: a defect of this program.",
  "read cut off": "The body of a read failed after its headers were sent.",
  "leaf list not read": "A read could not get the hashes of an object's blocks, and requests whole chunks.",
  "manifest not used":
    "A region's copy of a manifest is unsigned, forged, damaged or of a newer format: the first one with this code.",
  "traced request": "A request whose trace is sampled (`LOG_TRACES`), with its trace, span, route, status and time.",
  "message to a peer failed": "Another PoP did not accept a message. The digest of the next period repeats it.",
  "notifying peers failed":
    "The PoP's messages to the others were not sent. The digest of the next period repeats them.",
  "publishing peers failed": "The contents of the other PoPs could not be written where isolates read them.",
  "announcing peers to isolates failed": "Isolates were not notified of the other PoPs, and learn of them later.",
  "a Durable Object refused": "Counts of requests could not be stored. They will be resent.",
  "a data point was refused": "Workers Analytics Engine did not accept a data point.",
} as const;

/** The `event` of a line. */
type LogEvent = keyof typeof LOG_EVENTS;

/** Writes one line. `fields` must serialise as JSON; an `error` among them becomes its code and message. */
export function log(level: LogLevel, event: LogEvent, fields: Readonly<Record<string, unknown>> = {}): void {
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

/**
 * Prints the reference of events, metrics and logs as Markdown: the events from the types that a listener gets, metrics
 * and logs from the catalogues that the Worker writes by.
 */
import { LOG_EVENTS, METRICS, type MetricDescription } from "@agarose/worker/reference";
import { SourceTypes } from "../../../docs/.vitepress/source-types.ts";
import { code, table } from "../table.ts";

const events = new SourceTypes("packages/sw/src/events/read-events.ts").variantsOf("ReadEvent", "type", ["read"]);
const metrics: [string, MetricDescription][] = Object.entries(METRICS);

process.stdout.write(`
## Fields of the events

Each event also has \`read\`, the id of the read.
${events
  .map(
    ({ tag, meaning, fields }) => `
### ${code(tag)}

${meaning}

${table(
  ["field", "type", "meaning"],
  fields.map((field) => [code(field.name), code(field.type), field.meaning]),
)}`,
  )
  .join("")}
## Every metric

${table(
  ["metric", "type", "meaning", "alert when"],
  metrics.map(([name, { type, help, labels, alert }]) => [
    code(labels.length > 0 ? `${name}{${labels.join(",")}}` : name),
    type,
    help,
    alert ?? "",
  ]),
)}
## Every event of the logs

${table(
  ["event", "what happened"],
  Object.entries(LOG_EVENTS).map(([event, meaning]) => [code(event), meaning]),
)}`);

import { ADMIN_TOKEN_VARIABLE } from "@agarose/storage/pops/admin-token";
import { defineCommand, valued } from "../../command.ts";
import { parseDuration } from "@agarose/storage/maintenance/amounts";

/** Its arguments and options. */
export const args = {
  timeout: valued("<duration>", "how long to wait for a PoP", {
    parse: parseDuration({ max: 600_000 }),
    default: "10s",
  }),
};

/** `agarose status`. */
export const command = defineCommand({
  name: "status",
  category: "Deployment",
  description: `show the state of all PoPs; set ${ADMIN_TOKEN_VARIABLE} to their ADMIN_TOKEN, or ${ADMIN_TOKEN_VARIABLE}_<POP> to that of one`,
  summary: "show the state of all PoPs",
  examples: [["status", "print a table of the PoPs"]],
  args,
  failsWhen: "a PoP does not answer, or reports a problem",
  run: async (values) => (await import("./status.ts")).status(values),
});

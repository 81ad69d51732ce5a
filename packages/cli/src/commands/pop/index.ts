import { defineCommand, flag, option, positional, valued } from "../../command.ts";
import { parseAddress } from "../../ui/units.ts";

/** Its arguments and options. */
export const args = {
  name: positional("[name]", "name of the PoP; default: the variable POP"),
  data: valued("<folder>", "folder of the chunk cache and the state; one process at a time may use it"),
  listen: valued("<address>", "host and port to listen on", { default: "127.0.0.1:8787", parse: parseAddress }),
  vars: option("<file>", "JSON object of the Worker's variables and secrets; the environment overrides it"),
  behindProxy: flag("take the client's address from the last entry of X-Forwarded-For"),
};

/** `agarose pop`. */
export const command = defineCommand({
  name: "pop",
  category: "Servers",
  description: "run one PoP on this machine: the Worker's application with a cache on disk and state in SQLite",
  summary: "run one PoP on this machine",
  examples: [["pop frankfurt --data /var/lib/agarose --listen :8787", "listen on all addresses of this machine"]],
  args,
  run: async (values) => (await import("./pop.ts")).pop(values),
});

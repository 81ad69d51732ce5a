import { defineCommand, negatedFlag, option, valued } from "../../command.ts";
import { CONSISTENCY } from "../../ui/args.ts";
import { BUCKET } from "@agarose/storage/gateway/bucket";
import { parseSize } from "@agarose/storage/maintenance/amounts";
import { parseAddress, parseHost } from "../../ui/units.ts";

/** The environment variables of the key id that clients sign with, and of its secret. */
export const [KEY_ID, SECRET] = ["AGAROSE_GATEWAY_ACCESS_KEY_ID", "AGAROSE_GATEWAY_SECRET_ACCESS_KEY"] as const;

/** Its arguments and options. */
export const args = {
  listen: valued("<address>", "host and port to listen on; port 0 is any free one", {
    default: "127.0.0.1:9000",
    parse: parseAddress,
  }),
  domain: option("<name>", `also answer clients that send requests to ${BUCKET}.<name>`, {
    parse: parseHost,
  }),
  keys: option("<file>", "JSON list of the pairs of keys of clients, in place of the two variables"),
  spool: valued("<size>", "most bytes of uploads that may wait on disk", { default: "16GiB", parse: parseSize }),
  uploads: option("<folder>", "keep multipart uploads here, so that they survive a restart, for a week"),
  repair: negatedFlag("leave chunks that regions have missed to `agarose repair`"),
  consistency: CONSISTENCY,
};

/** `agarose gateway`. */
export const command = defineCommand({
  name: "gateway",
  category: "Servers",
  description: `serve the objects as an S3 bucket named ${BUCKET}; clients sign with ${KEY_ID} and ${SECRET}`,
  summary: "serve the objects as an S3 bucket",
  examples: [
    ["gateway --listen 127.0.0.1:9000", "serve programs on this machine"],
    ["gateway --keys clients.json", "serve several clients, each with its own rights"],
  ],
  args,
  run: async (values) => (await import("./gateway.ts")).gateway(values),
});

/** The definitions of `agarose cp` and `agarose mv`. */
import { defineCommand, positional } from "../../command.ts";
import { DRY_RUN, NO_PURGE } from "../../ui/args.ts";

/** Its arguments and options. */
export const args = {
  from: positional("<from>", "key of the object"),
  to: positional("<to>", "key of the copy; one that ends in / is put before the base name"),
  purge: NO_PURGE,
  dryRun: DRY_RUN,
};

/** `agarose cp`. */
export const copy = defineCommand({
  name: "cp",
  category: "Objects",
  description: "copy an object to another key, with its type and headers",
  examples: [
    ["cp photos/cat.jpg photos/pet.jpg", "copy an object"],
    ["cp photos/cat.jpg backup/", "copy it to backup/cat.jpg"],
  ],
  args,
  failsWhen: "the object could not be read or stored",
  run: async (values) => (await import("./cp.ts")).transfer("copied", values),
});

/** `agarose mv`. */
export const move = defineCommand({
  name: "mv",
  category: "Objects",
  description: "move an object to another key: the old one is removed once the new one is stored",
  summary: "move an object to another key",
  examples: [["mv photos/cat.jpg photos/pet.jpg", "rename an object"]],
  args,
  failsWhen: "the object could not be read or stored, or its old key could not be removed",
  run: async (values) => (await import("./cp.ts")).transfer("moved", values),
});

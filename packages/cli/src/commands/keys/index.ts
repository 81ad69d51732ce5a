/** The definitions of `agarose keys` and its verbs. */
import { defineCommand, flag, positional, valued, type CommandGroup } from "../../command.ts";
import { CURSOR, DRY_RUN, JSON_LINES, KEYS, KEY_PREFIX, YES, jobs } from "../../ui/args.ts";

const FINISH_DRY_RUN = { ...DRY_RUN, description: "with --finish: check, and show which keys would be dropped" };

const newArgs = {
  file: positional("[file]", "file of the private key, which must not exist yet", "agarose.key.pem"),
};

const create = defineCommand({
  name: "new",
  description: "write a new private key, and its public key into a configuration that has none",
  examples: [["keys new", "write agarose.key.pem"]],
  args: newArgs,
  run: async (values) => (await import("./keys.ts")).create(values.file, values),
});

const show = defineCommand({
  name: "show",
  description: "print the public key of the configured private key, and those that are trusted",
  examples: [["keys show", "print the public keys"]],
  args: {},
  run: async (values) => (await import("./keys.ts")).show(values),
});

/** Arguments and options of `agarose keys rotate`. */
export const rotateArgs = {
  file: positional("<file>", "file of the new private key; the first step writes it"),
  sign: flag("second step: sign with the new key"),
  finish: flag("third step: trust only the new key"),
  dryRun: FINISH_DRY_RUN,
  yes: YES,
};

const rotate = defineCommand({
  name: "rotate",
  description: "replace the signing key in three steps; each prints the next one",
  examples: [
    ["keys rotate new.pem", "write a key that readers trust in addition to the old one"],
    ["keys rotate new.pem --sign", "sign with it"],
    ["keys rotate new.pem --finish", "trust only the new key"],
  ],
  args: rotateArgs,
  run: async (values) => (await import("./rotate.ts")).rotate(values.file, values),
});

/** Arguments and options of `agarose keys secret`. */
export const secretArgs = {
  file: positional("<file>", "file of the new secret; the first step writes it"),
  prefix: valued("<prefix>", "encrypt only objects below this prefix; default: all", { default: "" }),
  encrypt: flag("second step of a replacement: encrypt with the new secret"),
  finish: flag("third step: drop the old secret"),
  dryRun: FINISH_DRY_RUN,
  yes: YES,
};

const secret = defineCommand({
  name: "secret",
  description: "make the secret that encrypts objects, or replace it in three steps; each prints the next one",
  examples: [["keys secret photos.secret --prefix photos/", "encrypt objects below photos/ from now on"]],
  args: secretArgs,
  run: async (values) => (await import("./secret.ts")).makeSecret(values.file, values),
});

/** Arguments and options of `agarose keys apply`. */
export const applyArgs = {
  keys: KEYS,
  prefix: KEY_PREFIX,
  vouch: flag("also sign manifests that no trusted key has signed: you vouch for them"),
  acceptNewest: flag("with --vouch: where regions hold different manifests, take the newest"),
  dryRun: DRY_RUN,
  jobs: jobs("4"),
  cursor: CURSOR,
  jsonLines: JSON_LINES,
};

const apply = defineCommand({
  name: "apply",
  description:
    "sign objects that the current key has not signed, and encrypt data keys by the first secret; moves no chunk; a " +
    "run that was killed is completed by the next one",
  examples: [
    ["keys apply --dry-run", "list the objects that a rotation has left"],
    ["keys apply", "sign them, and encrypt their data keys"],
    ["keys apply --vouch", "sign the objects that were stored before there was a key"],
  ],
  args: applyArgs,
  failsWhen: "an object could not be signed or encrypted again",
  run: async (values) => (await import("./apply.ts")).apply(values),
});

/** `agarose keys` and its verbs. */
export const command: CommandGroup = {
  name: "keys",
  category: "Deployment",
  description: "make, show, replace or apply the key that signs manifests, and the secrets that encrypt objects",
  examples: [
    ["keys show", "print the public keys"],
    ["keys rotate new.pem", "begin to replace the key that signs"],
  ],
  commands: [create, show, rotate, secret, apply],
};

/** `agarose share`: a link to an object, or to all below a prefix, at a PoP whose `SIGNING_KEY` signs it. */
import { createHmac } from "node:crypto";
import { AgaroseError } from "@agarose/core";
import { encodeKey, parseKey } from "@agarose/core/format";
import { readOrAdopt } from "@agarose/storage/origin/read-through";
import { signedPrefixText, signedText } from "@agarose/worker/reference";
import type { Values } from "../../command.ts";
import { READING, withContext } from "../../lib/context.ts";
import { printResult } from "../../ui/output.ts";
import type { args } from "./index.ts";

const SIGNING_KEY = "AGAROSE_SIGNING_KEY";
const EXPIRES_MS = 86_400_000;

/** Runs `agarose share KEY`. It asks the regions whether the object exists, and no PoP. */
export async function share({
  key,
  prefix,
  expires = EXPIRES_MS,
  pop,
  ...options
}: Values<typeof args>): Promise<void> {
  parseKey(key);
  if (prefix && !key.endsWith("/")) {
    throw new AgaroseError("USAGE", `a link to ${key} would open other keys that begin so, too: end it with a slash`);
  }
  const signingKey = process.env[SIGNING_KEY];
  if (!signingKey) throw new AgaroseError("USAGE", `${SIGNING_KEY} is not set: give it the SIGNING_KEY of the PoPs`);
  await withContext(options, READING, async (context) => {
    const { pops } = context.config;
    const chosen = pop === undefined ? pops[0] : pops.find(({ name }) => name === pop);
    if (!chosen) {
      const names = pops.map(({ name }) => name).join(", ") || "none";
      const wanted = pop === undefined ? "a PoP" : `the PoP ${pop}`;
      throw new AgaroseError("USAGE", `a link leads to ${wanted}, and \`pops\` of the configuration has ${names}`);
    }
    // Objects below a prefix may come later.
    if (!prefix) await readOrAdopt(key, context);
    const seconds = Math.floor((context.nowMs() + expires) / 1000);
    const text = prefix ? signedPrefixText(key, seconds) : signedText(key, seconds);
    const signature = createHmac("sha256", signingKey).update(text).digest("hex");
    const query = `${prefix ? `prefix=${encodeKey(key)}&` : ""}expires=${seconds}&signature=${signature}`;
    const url = `${chosen.url}/o/${encodeKey(key)}?${query}`;
    printResult(context, { key, url, expires: new Date(seconds * 1000).toISOString() }, [url]);
  });
}

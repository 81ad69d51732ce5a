/** `agarose share`: a link to an object, or to all below a prefix, at a PoP whose `SIGNING_KEY` signs it. */
import { createHmac, randomBytes } from "node:crypto";
import { AgaroseError } from "@agarose/core";
import { encodeKey, parseKey } from "@agarose/core/format";
import { readOrAdopt } from "@agarose/storage/origin/read-through";
import { signedText } from "@agarose/worker/reference";
import type { Values } from "../../command.ts";
import { READING, withContext } from "../../lib/context.ts";
import { printResult } from "../../ui/output.ts";
import type { args } from "./index.ts";

const SIGNING_KEY = "AGAROSE_SIGNING_KEY";
const EXPIRES_MS = 86_400_000;
/** Nobody guesses so many. */
const PASSWORD_BYTES = 12;

/** Runs `agarose share KEY`. It asks the regions whether the object exists, and no PoP. */
export async function share({
  key,
  prefix,
  password: isLocked,
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
    const password = isLocked ? randomBytes(PASSWORD_BYTES).toString("base64url") : undefined;
    const text = signedText(key, seconds, { isPrefix: prefix, password });
    const signature = createHmac("sha256", signingKey).update(text).digest("hex");
    const terms = `${prefix ? `prefix=${encodeKey(key)}&` : ""}${password === undefined ? "" : "password&"}`;
    const url = `${chosen.url}/o/${encodeKey(key)}?${terms}expires=${seconds}&signature=${signature}`;
    const lines = password === undefined ? [url] : [url, `password: ${password}`];
    printResult(context, { key, url, expires: new Date(seconds * 1000).toISOString(), password }, lines);
  });
}

/**
 * Which requests may read which keys, and which may use the admin routes.
 *
 * A key is private when its longest configured prefix is. A private key needs the read token or a signed URL; without
 * both secrets it is closed to everybody. Pure except for hashing: the time is a parameter.
 */
import { AgaroseError } from "@agarose/core";
import { Secrets } from "@agarose/core/encryption";
import { fromBase64 } from "@agarose/core/format";
import * as v from "valibot";
import { equalSecrets, fromHex, hmacKey, verify } from "../runtime/crypto.ts";
import { json, parseVariables, secret, type Parsed } from "../runtime/variables.ts";

const prefixes = v.array(v.string());
const secretRules = v.array(
  v.strictObject({
    prefix: v.string(),
    secrets: v.pipe(
      v.array(v.pipe(v.string(), v.regex(/^aes256:[A-Za-z0-9+/]{43}=$/, "is not aes256: and base64 of 32 bytes"))),
      v.minLength(1, "is empty"),
      v.maxLength(2, "has more than 2 secrets"),
    ),
  }),
);

/** The variables of this room. */
export const ACCESS_VARIABLES = {
  PRIVATE_PREFIXES: json(
    "Key prefixes that need READ_TOKEN or a URL signed with SIGNING_KEY; the longest matching prefix decides.",
    "JSON list of key prefixes",
    prefixes,
    { fallback: "[]" },
  ),
  PUBLIC_PREFIXES: json(
    "Exceptions within PRIVATE_PREFIXES: key prefixes that anyone may read.",
    "JSON list of key prefixes",
    prefixes,
    { fallback: "[]" },
  ),
  READ_TOKEN: secret("The token that opens every private key, for servers."),
  SIGNING_KEY: secret("The key that signs URLs of private keys, and of all keys below a prefix."),
  ENCRYPTION: json(
    "Secrets of encrypted objects. With them, `/o/` decrypts, and plans of private keys contain data keys.",
    'JSON list of {"prefix", "secrets"}, one or two secrets each: "aes256:" and base64 of 32 bytes',
    secretRules,
    { fallback: "[]", secret: true },
  ),
  ADMIN_TOKEN: secret("The token of the admin routes, which are closed without it."),
};

/** The settings of this room. `secrets` decrypt what the PoP serves. */
export interface AccessSettings extends Omit<Parsed<typeof ACCESS_VARIABLES>, "encryption"> {
  readonly secrets: Secrets;
}

/** Checks the variables of this room. Throws CONFIG_INVALID. */
export function parseAccessSettings(env: object): AccessSettings {
  const { encryption, ...settings } = parseVariables(ACCESS_VARIABLES, env);
  return { ...settings, secrets: new Secrets(encryption) };
}

interface AccessRequest {
  readonly key: string;
  readonly authorization: string | undefined;
  readonly query: URLSearchParams;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
}

/** How far the clocks of signer and PoP may differ, in favour of the client. */
const CLOCK_SKEW_SECONDS = 60;
/** A longer signature is refused: a leaked URL must expire. */
export const LIFETIME_SECONDS_MAX = 7 * 86_400;

/** The inputs that decide whether a key is private. */
type PrefixSettings = Pick<AccessSettings, "privatePrefixes" | "publicPrefixes">;

/** Returns whether a key is private: the longest prefix decides, and of equal ones the private one. */
export function isPrivate(key: string, { privatePrefixes, publicPrefixes }: PrefixSettings): boolean {
  const closed = longestPrefix(key, privatePrefixes);
  return closed >= 0 && closed >= longestPrefix(key, publicPrefixes);
}

/**
 * Resolves to the name of the token by which the request may read a private key, or to undefined for a key that anyone
 * may read. Rejects with FORBIDDEN where it may not.
 */
export async function checkAccess(
  request: AccessRequest,
  settings: Omit<AccessSettings, "adminToken" | "secrets">,
): Promise<string | undefined> {
  if (!isPrivate(request.key, settings)) return undefined;
  const [, token] = /^Bearer (.+)$/i.exec(request.authorization ?? "") ?? [];
  if (token !== undefined && settings.readToken && (await equalSecrets(token, settings.readToken))) {
    return "READ_TOKEN";
  }
  const problem = await problemOfSignature(request, settings.signingKey);
  if (problem === undefined) return `signature ${request.query.get("signature")}`;
  throw new AgaroseError(
    "FORBIDDEN",
    `${JSON.stringify(request.key)} is private: ${problem}. It needs \`Authorization: Bearer <READ_TOKEN>\` or ` +
      `?expires=<seconds since 1970>&signature=<HMAC-SHA-256 in hex>`,
  );
}

/** The objects that a link opens besides its key, and its token. */
interface LinkTerms {
  /** Whether the key is a prefix, below which it opens every key. */
  readonly isPrefix?: boolean | undefined;
  /** The secret that its reader must know. */
  readonly password?: string | undefined;
}

/**
 * Returns the text that is signed for a link: the same at every PoP and for every route that reads. Links of different
 * terms are never each other.
 */
export function signedText(key: string, expires: number, { isPrefix = false, password }: LinkTerms = {}): string {
  const terms = `${isPrefix ? "-prefix" : ""}${password === undefined ? "" : ` ${encodeURIComponent(password)}`}`;
  return `agarose-read${terms}\n${key}\n${expires}`;
}

const BASIC = /^Basic ((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)$/i;

/** The password that a browser has asked its user for, behind a name that is ignored. */
function passwordOf(authorization = ""): string {
  const [, coded = ""] = BASIC.exec(authorization) ?? [];
  return /:(.*)/s.exec(new TextDecoder().decode(fromBase64(coded)))?.[1] ?? "";
}

/** Resolves to what is wrong with the signature, or to undefined when nothing is. */
async function problemOfSignature(
  { key, query, nowMs, authorization }: AccessRequest,
  signingKey: string | undefined,
): Promise<string | undefined> {
  const expires = query.get("expires") ?? "";
  const signature = query.get("signature") ?? "";
  if (!/^\d{1,12}$/.test(expires) || !/^[\da-f]{64}$/i.test(signature)) {
    return "the request has neither the token nor a signature";
  }
  const prefix = query.get("prefix");
  // Without the slash, a signature for `a` would open `ab/c` too.
  if (prefix !== null && !(prefix.endsWith("/") && key.startsWith(prefix))) {
    return `it is not below the prefix ${JSON.stringify(prefix)} of the link, which must end with a slash`;
  }
  const password = query.has("password") ? passwordOf(authorization) : undefined;
  const text = signedText(prefix ?? key, Number(expires), { isPrefix: prefix !== null, password });
  if (!signingKey || !(await verify(await hmacKey(signingKey), fromHex(signature), text))) {
    const what = `this ${prefix === null ? "key" : "prefix"} and time`;
    return `the signature is not one of ${password === undefined ? what : `this password, ${what}`}`;
  }
  const leftSeconds = Number(expires) - nowMs / 1000;
  if (leftSeconds <= -CLOCK_SKEW_SECONDS) return `the signature expired ${Math.floor(-leftSeconds)} s ago`;
  if (leftSeconds > LIFETIME_SECONDS_MAX + CLOCK_SKEW_SECONDS) {
    return `the signature is valid for ${Math.floor(leftSeconds)} s, and ${LIFETIME_SECONDS_MAX} s are the most`;
  }
  return undefined;
}

function longestPrefix(key: string, candidates: readonly string[]): number {
  return Math.max(-1, ...candidates.filter((prefix) => key.startsWith(prefix)).map(({ length }) => length));
}

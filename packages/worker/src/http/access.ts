/**
 * Who may read which keys. A key is private when the longest configured prefix of it is; a private key needs the read
 * token or a signed URL, and without both secrets nobody gets it. Pure but for hashing: the time is a parameter.
 */
import { AgaroseError } from "@agarose/core";
import { bearerToken, sameToken } from "./auth.ts";

export interface AccessSettings {
  readonly privatePrefixes: readonly string[];
  /** Exceptions within private prefixes. */
  readonly publicPrefixes: readonly string[];
  /** Opens every private key, for `Authorization: Bearer`. */
  readonly readToken: string | undefined;
  /** Signs URLs. */
  readonly signingKey: string | undefined;
}

export interface AccessRequest {
  readonly key: string;
  readonly authorization: string | undefined;
  readonly query: URLSearchParams;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
}

/** How far the clocks of whoever signs and of the PoP may be apart, in favour of the client. */
export const CLOCK_SKEW_SECONDS = 60;
/** A signature that would last longer is refused: what leaks must end. */
export const LIFETIME_SECONDS_MAX = 7 * 86_400;

/** The longest prefix decides; of equal ones, the private one does. */
export function isPrivate(key: string, { privatePrefixes, publicPrefixes }: AccessSettings): boolean {
  const closed = longestPrefix(key, privatePrefixes);
  return closed >= 0 && closed >= longestPrefix(key, publicPrefixes);
}

/** Returns whether the key is private. Throws FORBIDDEN when it is and the request may not read it. */
export async function checkAccess(request: AccessRequest, settings: AccessSettings): Promise<boolean> {
  if (!isPrivate(request.key, settings)) return false;
  const token = bearerToken(request.authorization);
  if (token !== undefined && settings.readToken && (await sameToken(token, settings.readToken))) return true;
  const problem = await problemOfSignature(request, settings.signingKey);
  if (problem === undefined) return true;
  throw new AgaroseError(
    "FORBIDDEN",
    `${JSON.stringify(request.key)} is private: ${problem}. It needs \`Authorization: Bearer <READ_TOKEN>\` or ` +
      `?expires=<seconds since 1970>&signature=<HMAC-SHA-256 in hex>`,
  );
}

/** What is signed: the same at every PoP and for every route that reads. */
export function signedText(key: string, expires: number): string {
  return `agarose-read\n${key}\n${expires}`;
}

/** What is wrong with the signature; undefined when nothing is. */
async function problemOfSignature(
  { key, query, nowMs }: AccessRequest,
  signingKey: string | undefined,
): Promise<string | undefined> {
  const expires = query.get("expires") ?? "";
  const signature = query.get("signature") ?? "";
  if (!/^\d{1,12}$/.test(expires) || !/^[\da-f]{64}$/i.test(signature)) {
    return "the request has neither the token nor a signature";
  }
  if (!signingKey || !(await isSigned(signedText(key, Number(expires)), signature, signingKey))) {
    return "the signature is not one of this key and time";
  }
  const leftSeconds = Number(expires) - nowMs / 1000;
  if (leftSeconds <= -CLOCK_SKEW_SECONDS) return `the signature expired ${Math.floor(-leftSeconds)} s ago`;
  if (leftSeconds > LIFETIME_SECONDS_MAX + CLOCK_SKEW_SECONDS) {
    return `the signature is good for ${Math.floor(leftSeconds)} s, and ${LIFETIME_SECONDS_MAX} s are the most`;
  }
  return undefined;
}

/** `verify` compares in constant time. */
async function isSigned(text: string, signature: string, signingKey: string): Promise<boolean> {
  const encoder = new TextEncoder();
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", encoder.encode(signingKey), algorithm, false, ["verify"]);
  const bytes = Uint8Array.from(signature.match(/../g)!, (byte) => Number.parseInt(byte, 16));
  return crypto.subtle.verify("HMAC", key, bytes, encoder.encode(text));
}

function longestPrefix(key: string, prefixes: readonly string[]): number {
  return Math.max(-1, ...prefixes.filter((prefix) => key.startsWith(prefix)).map(({ length }) => length));
}

/** The token of an upload in a page: text that the server has signed with the secret of its uploads. */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { AgaroseError } from "@agarose/core";
import { isRecord, parseKey } from "@agarose/core/format";
import { LEASE_MS } from "../commit/lease.ts";

/** A shorter secret could be guessed. */
const SECRET_LENGTH_MIN = 32;
const EXPIRES_MS = 600_000;
/** A committed upload is known as such for longer than this. */
const EXPIRES_MS_MAX = LEASE_MS;

/** The permission of a token: one upload of one object. */
export interface UploadToken {
  readonly key: string;
  /** The most that the object may have. */
  readonly bytesMax: number;
  /** 32 hex digits, in the names of its chunks. */
  readonly upload: string;
  /** When it ends, in milliseconds since 1970. */
  readonly untilMs: number;
}

/** The claims that `signUpload` signs. */
export interface SignUpload {
  /** That of `uploads`: at least 32 characters. */
  readonly secret: string;
  readonly key: string;
  readonly bytesMax: number;
  /** How long the upload may begin: at most an hour. Default: ten minutes. */
  readonly expiresMs?: number;
}

/**
 * Returns a token by which a page may store one object under `key`, once.
 *
 * @throws KEY_INVALID, KEY_TOO_LONG, or CONFIG_INVALID naming the option.
 */
export function signUpload({ secret, key, bytesMax, expiresMs = EXPIRES_MS }: SignUpload, nowMs = Date.now()): string {
  parseKey(key);
  checkBytesMax(bytesMax);
  if (!(expiresMs > 0 && expiresMs <= EXPIRES_MS_MAX)) {
    throw wrong("expiresMs", `is ${expiresMs}, but must be above 0 and at most ${EXPIRES_MS_MAX}, an hour`);
  }
  const token: UploadToken = { key, bytesMax, upload: randomBytes(16).toString("hex"), untilMs: nowMs + expiresMs };
  return sealed("token", token, secret);
}

/** Throws CONFIG_INVALID unless it is a number of bytes. */
export function checkBytesMax(bytesMax: number): void {
  if (!Number.isSafeInteger(bytesMax) || bytesMax < 0) throw wrong("bytesMax", `is ${bytesMax}, but must be a count`);
}

/** Throws CONFIG_INVALID where a secret is too short. */
export function checkSecret(secret: string): void {
  if (secret.length >= SECRET_LENGTH_MIN) return;
  throw wrong("secret", `has ${secret.length} characters, at least ${SECRET_LENGTH_MIN} are needed`);
}

/** `what` as text that `opened` gives back. A text of one `kind` is none of another. */
export function sealed(kind: string, what: object, secret: string): string {
  checkSecret(secret);
  const text = Buffer.from(JSON.stringify(what)).toString("base64url");
  return `${text}.${signatureOf(kind, text, secret).toString("base64url")}`;
}

/** The content of a token of `sealed`. FORBIDDEN where it is foreign or expired: `untilMs` is its end. */
export function opened<T extends { readonly untilMs: number }>(
  kind: string,
  token: string,
  secret: string,
  nowMs: number,
): T {
  const [text = "", signature = ""] = token.split(".");
  const given = Buffer.from(signature, "base64url");
  const right = signatureOf(kind, text, secret);
  if (given.length !== right.length || !timingSafeEqual(given, right)) {
    throw new AgaroseError("FORBIDDEN", `the ${kind} is not signed by this server: request a new one`);
  }
  const what: unknown = JSON.parse(Buffer.from(text, "base64url").toString());
  const { untilMs } = (isRecord(what) ? what : { untilMs: 0 }) as unknown as T;
  if (untilMs > nowMs) return what as T;
  const message = `the ${kind} ended ${Math.ceil((nowMs - untilMs) / 1000)} s ago: begin the upload again`;
  throw new AgaroseError("FORBIDDEN", message, { untilMs, nowMs });
}

function signatureOf(kind: string, text: string, secret: string): Buffer {
  return createHmac("sha256", secret).update(`agarose-upload-${kind}\n${text}`).digest();
}

function wrong(field: string, problem: string): AgaroseError {
  return new AgaroseError("CONFIG_INVALID", `${field} of the uploads ${problem}`, { field });
}

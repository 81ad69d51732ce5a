/** Tokens. Admin routes are closed unless ADMIN_TOKEN is set and the request bears it. */
import { AgaroseError } from "@agarose/core";
import type { MiddlewareHandler } from "hono";
import type { AppEnv } from "./http.ts";

/** Lets requests with `Authorization: Bearer <ADMIN_TOKEN>` pass; throws FORBIDDEN for all others. */
export const adminOnly: MiddlewareHandler<AppEnv> = async (c, next) => {
  const given = bearerToken(c.req.header("authorization"));
  const { ADMIN_TOKEN } = c.env;
  if (!ADMIN_TOKEN || given === undefined || !(await sameToken(given, ADMIN_TOKEN))) {
    throw new AgaroseError(
      "FORBIDDEN",
      "this route needs `Authorization: Bearer <ADMIN_TOKEN>`, and is closed while that secret is not set",
    );
  }
  await next();
};

/** The token of an `Authorization` header of the scheme Bearer. */
export function bearerToken(authorization: string | undefined): string | undefined {
  return /^Bearer (.+)$/i.exec(authorization ?? "")?.[1];
}

/** Compares in a time that tells nothing: hashes have one length, and all of their bytes are looked at. */
export async function sameToken(given: string, expected: string): Promise<boolean> {
  const [a, b] = await Promise.all([given, expected].map(sha256));
  return a!.reduce((difference, byte, i) => difference | (byte ^ b![i]!), 0) === 0;
}

async function sha256(text: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
}

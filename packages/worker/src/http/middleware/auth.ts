/** The admin token. */
import { AgaroseError, systemClock } from "@agarose/core";
import { errorAnswer } from "@agarose/core/http";
import type { Context, MiddlewareHandler } from "hono";
import { bearerAuth } from "hono/bearer-auth";
import { clientAddress } from "../../runtime/client-address.ts";
import { equalSecrets } from "../../runtime/crypto.ts";
import { RateLimiter } from "../../runtime/rate-limiter.ts";
import { settingsOf } from "../../runtime/settings.ts";
import type { AppEnv } from "../http.ts";

const TOKEN_NEEDED = errorAnswer(
  new AgaroseError(
    "FORBIDDEN",
    "this route needs `Authorization: Bearer <ADMIN_TOKEN>`, and is closed while that secret is not set",
  ),
);
/** Wrong admin tokens that one client may send to an isolate. */
const guesses = new RateLimiter(systemClock, { burst: 10, perSecond: 1 / 60 });

/** Answers 401, or 400 to a malformed header, with WWW-Authenticate. */
const refusal = (status: number) => ({
  message: () => new Response(TOKEN_NEEDED.body, { status, headers: TOKEN_NEEDED.headers }),
});

/** Lets requests with `Authorization: Bearer <ADMIN_TOKEN>` pass. */
export const adminOnly: MiddlewareHandler<AppEnv> = bearerAuth({
  realm: "agarose",
  verifyToken: async (token, c: Context<AppEnv>) => {
    const { adminToken } = settingsOf(c.env).access;
    const client = clientAddress(c.req.raw.headers);
    if (guesses.isBlocked(client)) {
      throw new AgaroseError("RATE_LIMITED", "this client has sent too many wrong tokens: retry in a minute");
    }
    if (adminToken !== undefined && (await equalSecrets(token, adminToken))) return true;
    await guesses.spend(client);
    return false;
  },
  noAuthenticationHeader: refusal(401),
  invalidAuthenticationHeader: refusal(400),
  invalidToken: refusal(401),
});

import { describe, expect, test } from "vitest";
import { checkAccess, isPrivate, LIFETIME_SECONDS_MAX, type AccessSettings } from "./access.ts";

const NOW_S = 1_800_000_000;
const settings: Omit<AccessSettings, "adminToken" | "secrets"> = {
  privatePrefixes: ["members/"],
  publicPrefixes: ["members/free/"],
  readToken: "read-token-of-16+",
  signingKey: "signing-key-of-16+",
};

function sign(key: string, expires: number, signingKey?: string): Promise<string> {
  return signedAs(`agarose-read\n${key}`, expires, signingKey);
}

async function signPrefix(prefix: string, expires: number, signingKey?: string): Promise<string> {
  return `${new URLSearchParams({ prefix })}&${await signedAs(`agarose-read-prefix\n${prefix}`, expires, signingKey)}`;
}

async function signedAs(what: string, expires: number, signingKey = "signing-key-of-16+"): Promise<string> {
  const [secret, text] = [signingKey, `${what}\n${expires}`].map((part) => new TextEncoder().encode(part));
  const hmac = { name: "HMAC", hash: "SHA-256" };
  const imported = await crypto.subtle.importKey("raw", secret!, hmac, false, ["sign"]);
  const bytes = new Uint8Array(await crypto.subtle.sign("HMAC", imported, text!));
  const signature = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return `expires=${expires}&signature=${signature}`;
}

interface Asked {
  readonly key?: string;
  readonly authorization?: string;
  readonly query?: string;
  readonly nowS?: number;
  readonly settings?: Partial<AccessSettings>;
}

/** "open", "private" (and allowed), or the problem. */
async function ask({ key = "members/a", authorization, query = "", nowS = NOW_S, ...other }: Asked): Promise<string> {
  const request = { key, authorization, query: new URLSearchParams(query), nowMs: nowS * 1000 };
  try {
    return (await checkAccess(request, { ...settings, ...other.settings })) !== undefined ? "private" : "open";
  } catch (error) {
    expect(error).toMatchObject({ name: "AgaroseError", code: "FORBIDDEN" });
    return (error as Error).message;
  }
}

describe("prefixes", () => {
  test.each([
    ["cat.jpg", false],
    ["members", false],
    ["members/", true],
    ["members/a", true],
    ["members/free/a", false],
    ["members/freebie", true],
    ["MEMBERS/a", false],
  ])("%s: private is %s", (key, expected) => {
    expect(isPrivate(key, settings)).toBe(expected);
  });

  test("the empty one makes every key private, and of two equal ones the private one counts", () => {
    const all = { ...settings, privatePrefixes: ["", "both/"], publicPrefixes: ["open/", "both/"] };
    expect(["cat.jpg", "open/a", "both/a"].map((key) => isPrivate(key, all))).toEqual([true, false, true]);
  });
});

describe("a private key", () => {
  test("is open to the token alone", async () => {
    expect(await ask({ authorization: "Bearer read-token-of-16+" })).toBe("private");
    for (const authorization of [
      undefined,
      "Bearer read-token-of-16",
      "Bearer x",
      "Basic read-token-of-16+",
      "Bearer ",
    ]) {
      expect(await ask(authorization === undefined ? {} : { authorization })).toContain(
        "neither the token nor a signature",
      );
    }
  });

  test("is closed while no secret is set, also to empty ones", async () => {
    const none = { readToken: undefined, signingKey: undefined };
    for (const authorization of ["Bearer undefined", "Bearer read-token-of-16+"]) {
      expect(await ask({ authorization, settings: none })).toContain("neither");
    }
    expect(await ask({ query: await sign("members/a", NOW_S + 60, "undefined"), settings: none })).toContain(
      "not one of",
    );
  });

  test("is open to its signature until that expires", async () => {
    const query = await sign("members/a", NOW_S + 300);
    expect(await ask({ query })).toBe("private");
    expect(
      await ask({
        query: query.replace(/signature=.*/, (text) => text.toUpperCase().replace("SIGNATURE", "signature")),
      }),
    ).toBe("private");
    expect(await ask({ query, nowS: NOW_S + 299 })).toBe("private");
    expect(await ask({ query, nowS: NOW_S + 361 })).toContain("expired 61 s ago");
  });

  test("is closed to a signature of another key, secret or time, and to one with a digit changed", async () => {
    const own = await sign("members/a", NOW_S + 300);
    const others = [
      await sign("members/b", NOW_S + 300),
      await sign("members/a", NOW_S + 300, "another-key-of-16+"),
      own.replace(`${NOW_S + 300}`, `${NOW_S + 301}`),
      own.replace(/.$/, (digit) => (digit === "0" ? "1" : "0")),
    ];
    for (const query of others) expect(await ask({ query })).toContain("not one of this key and time");
  });

  test.each([
    "expires=&signature=",
    "expires=1e9&signature=00",
    `expires=-1&signature=${"0".repeat(64)}`,
    `expires=1&signature=${"g".repeat(64)}`,
  ])("is closed to what is no signature: %s", async (query) => {
    expect(await ask({ query })).toContain("neither the token nor a signature");
  });
});

describe("a link to a prefix", () => {
  test("opens every key below it, at any depth, until it expires", async () => {
    const query = await signPrefix("members/a/", NOW_S + 300);
    for (const key of ["members/a/", "members/a/b", "members/a/b/c", "members/a/größe & co"]) {
      expect(await ask({ key, query })).toBe("private");
    }
    expect(await ask({ key: "members/a/b", query, nowS: NOW_S + 361 })).toContain("expired 61 s ago");
    const long = await signPrefix("members/a/", NOW_S + LIFETIME_SECONDS_MAX + 120);
    expect(await ask({ key: "members/a/b", query: long })).toContain("are the most");
  });

  test.each(["members/a", "members/ab", "members/b", "members/A/b", "members/b/members/a/c"])(
    "does not open %s, which is not below it",
    async (key) => {
      expect(await ask({ key, query: await signPrefix("members/a/", NOW_S + 300) })).toContain("not below the prefix");
    },
  );

  test.each(["", "m", "members", "members/a"])(
    "opens nothing where it ends within a segment, though it is signed: %j",
    async (prefix) => {
      expect(await ask({ key: "members/a/b", query: await signPrefix(prefix, NOW_S + 300) })).toContain(
        "end with a slash",
      );
    },
  );

  test("is closed with another prefix, time, secret or digit", async () => {
    const own = await signPrefix("members/a/", NOW_S + 300);
    const others = [
      own.replace("members%2Fa%2F", "members%2F"),
      own.replace("members%2Fa%2F", "members%2Fa%2Fb%2F"),
      `prefix=members/&${own.replace("members%2Fa%2F", "members%2Fa%2Fb%2F")}`,
      own.replace(`${NOW_S + 300}`, `${NOW_S + 301}`),
      await signPrefix("members/a/", NOW_S + 300, "another-key-of-16+"),
      own.replace(/.$/, (digit) => (digit === "0" ? "1" : "0")),
    ];
    for (const query of others) {
      expect(await ask({ key: "members/a/b/c", query })).toContain("not one of this prefix and time");
    }
  });

  test("and a link to a key are never one another", async () => {
    const ofKey = await sign("members/a/", NOW_S + 300);
    expect(await ask({ key: "members/a/b", query: `prefix=members/a/&${ofKey}` })).toContain("not one of this prefix");
    const ofPrefix = (await signPrefix("members/a/", NOW_S + 300)).replace(/^prefix=[^&]*&/, "");
    expect(await ask({ key: "members/a/", query: ofPrefix })).toContain("not one of this key");
    // Line breaks within a key or prefix move nothing from one to the other.
    const odd = await sign("-prefix\nmembers/a/", NOW_S + 300);
    expect(await ask({ key: "members/a/b", query: `prefix=members/a/&${odd}` })).toContain("not one of this prefix");
  });
});

describe("a link with a password", () => {
  const basic = (password: string): string =>
    `Basic ${btoa(String.fromCharCode(...new TextEncoder().encode(`anyone:${password}`)))}`;
  const linkTo = async (key: string, password: string): Promise<string> =>
    `password&${await signedAs(`agarose-read ${encodeURIComponent(password)}\n${key}`, NOW_S + 300)}`;

  test("opens with that password, whoever the user is, until it expires", async () => {
    const query = await linkTo("members/a", "pass: wörd");
    expect(await ask({ query, authorization: basic("pass: wörd") })).toBe("private");
    expect(await ask({ query, authorization: basic("pass: wörd"), nowS: NOW_S + 361 })).toContain("expired 61 s ago");
    const below = `prefix=members/a/&password&${await signedAs("agarose-read-prefix p\nmembers/a/", NOW_S + 300)}`;
    expect(await ask({ key: "members/a/b", query: below, authorization: basic("p") })).toBe("private");
  });

  test("does not open without it, nor with another one", async () => {
    const query = await linkTo("members/a", "right");
    const others = [undefined, basic("wrong"), basic(""), "Basic", "Basic !", "Basic cmlnaHQ=", "Bearer right"];
    for (const authorization of others) {
      expect(await ask({ query, ...(authorization !== undefined && { authorization }) })).toContain("password");
    }
  });

  test("is no link without one, in either direction", async () => {
    const query = await linkTo("members/a", "right");
    expect(await ask({ query: query.replace("password&", "") })).toContain("not one of this key and time");
    const open = await sign("members/a", NOW_S + 300);
    expect(await ask({ query: `password&${open}`, authorization: basic("") })).toContain("password");
    const odd = await linkTo("members/a", `x\nmembers/a`);
    expect(await ask({ query: odd, authorization: basic("x") }), "a line break in it moves nothing").toContain(
      "password",
    );
  });
});

describe("clocks that differ", () => {
  test("by up to a minute shorten no signature", async () => {
    const query = await sign("members/a", NOW_S + 10);
    expect(await ask({ query, nowS: NOW_S + 10 + 59 })).toBe("private");
    expect(await ask({ query, nowS: NOW_S + 10 + 60 })).toContain("expired 60 s ago");
  });

  test("by minutes, the signer's behind: short ones are refused, longer ones hold", async () => {
    const signerS = NOW_S - 300;
    expect(await ask({ query: await sign("members/a", signerS + 60) })).toContain("expired 240 s ago");
    expect(await ask({ query: await sign("members/a", signerS + 3_600) })).toBe("private");
  });

  test("by minutes, the signer's ahead: signatures last longer by so much, but for the longest", async () => {
    const signerS = NOW_S + 300;
    expect(await ask({ query: await sign("members/a", signerS + 3_600) })).toBe("private");
    expect(await ask({ query: await sign("members/a", signerS + LIFETIME_SECONDS_MAX) })).toContain("are the most");
    expect(await ask({ query: await sign("members/a", NOW_S + 60 + LIFETIME_SECONDS_MAX) })).toBe("private");
  });
});

import { read, sha256 } from "../fixtures/app.ts";
import { encryptedWorld, openWith, putEncrypted, READ_TOKEN } from "../fixtures/encrypted.ts";
import { expect, test } from "../fixtures/test.ts";

test.use({ worldOptions: encryptedWorld });

for (const how of ["refuses", "hangs"] as const) {
  test(`a worker without decryption reads at the next PoP while the nearest one ${how}`, async ({ context, world }) => {
    const content = await putEncrypted(world, `members/next-pop-${how}`);
    const page = await openWith(context, world, "agarose-sw.js");
    const headers = { authorization: `Bearer ${READ_TOKEN}` };
    let nearest: string | undefined;
    const asked: string[] = [];
    await context.route(/\/o\//, (route) => {
      const { host } = new URL(route.request().url());
      asked.push(host);
      nearest ??= host;
      if (host !== nearest) return route.continue();
      return how === "refuses" ? route.abort() : undefined;
    });
    const answer = await read(page, `members/next-pop-${how}`, headers);
    expect(answer).toMatchObject({ status: 200, sha256: sha256(content) });
    expect(answer.ms).toBeLessThan(15_000);
    expect(asked.length, "the nearest one was asked, and another").toBeGreaterThan(1);
    expect(new Set(asked).size).toBeGreaterThan(1);
  });
}

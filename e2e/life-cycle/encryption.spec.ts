/**
 * Encrypted objects in a page: by a secret of the app's configuration, by a data key from the PoP, and without both.
 */
import { read, sha256 } from "../fixtures/app.ts";
import { encryptedWorld, openWith, putEncrypted, READ_TOKEN, SECRET } from "../fixtures/encrypted.ts";
import { expect, test } from "../fixtures/test.ts";

test.use({ worldOptions: encryptedWorld });

test("a page with the secret reads them whole and by range, also while a region is down", async ({
  context,
  world,
}) => {
  const content = await putEncrypted(world, "open/a");
  const encryption = [{ prefix: "open/", secrets: [SECRET] }];
  const page = await openWith(context, world, "agarose-sw.encryption.js", { encryption });
  await world.region(world.regions[0]!.name).down();
  expect(await read(page, "open/a")).toMatchObject({ status: 200, sha256: sha256(content) });
  expect(await read(page, "open/a", { range: "bytes=65519-65521" })).toMatchObject({
    status: 206,
    sha256: sha256(content.subarray(65_519, 65_522)),
  });
});

test("a page with a token gets the data key of a private object from the PoP", async ({ context, world }) => {
  const content = await putEncrypted(world, "members/a");
  const page = await openWith(context, world, "agarose-sw.encryption.js");
  const asked: string[] = [];
  context.on("request", (request) => asked.push(new URL(request.url()).pathname));
  expect((await read(page, "members/a")).status).toBe(403);
  const answer = await read(page, "members/a", { authorization: `Bearer ${READ_TOKEN}` });
  expect(answer).toMatchObject({ status: 200, sha256: sha256(content) });
  expect(asked.filter((path) => path.startsWith("/o/"))).toEqual([]);
});

test("the worker that does not decrypt reads at a PoP, and without the secret there gets its code", async ({
  context,
  world,
}) => {
  const content = await putEncrypted(world, "members/b");
  await putEncrypted(world, "open/b");
  const page = await openWith(context, world, "agarose-sw.js");
  const answer = await read(page, "members/b", { authorization: `Bearer ${READ_TOKEN}` });
  expect(answer).toMatchObject({ status: 200, sha256: sha256(content) });
  const refused = await read(page, "open/b");
  expect(refused.headers["x-agarose-error"]).toBe("SECRET_MISSING");
});

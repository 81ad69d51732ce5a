/** What `register` refuses before it troubles the browser; the rest needs one and is tested end to end. */
import { afterEach, expect, test, vi } from "vitest";
import { register } from "../src/register.ts";

afterEach(() => vi.unstubAllGlobals());

function stubPage(container: Partial<ServiceWorkerContainer>): void {
  vi.stubGlobal("document", { baseURI: "https://app.test/page" });
  vi.stubGlobal("navigator", { serviceWorker: container });
}

test.each(["/agarose-sw.js", "/lib/agarose-sw.classic.js?prefix=/media/"])(
  "a drop-in file without a configuration is refused at once: %s",
  async (url) => {
    const asked = vi.fn<ServiceWorkerContainer["register"]>();
    stubPage({ register: asked });
    await expect(register(url)).rejects.toMatchObject({ code: "CONFIG_INVALID", details: { url } });
    expect(asked).not.toHaveBeenCalled();
  },
);

test("a worker of one's own needs no configuration in its URL", async () => {
  const registration = {} as ServiceWorkerRegistration;
  const asked = vi.fn<ServiceWorkerContainer["register"]>().mockResolvedValue(registration);
  stubPage({ register: asked, controller: {} as ServiceWorker });
  await expect(register("/my-agarose-sw.js")).resolves.toBe(registration);
  expect(asked).toHaveBeenCalledOnce();
});

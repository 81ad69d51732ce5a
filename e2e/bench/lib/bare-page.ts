/**
 * A page of Chromium that no tool listens to. Playwright has the network log of its pages on, which costs each request
 * and each part of a body some time on every process of the browser, so that many requests look slower than they are
 * for a user.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Browser } from "@playwright/test";
import type { AppPage } from "../../fixtures/app-page.ts";

/** Opens `url` in a context of its own, which Playwright does not attach to. It closes with `browser`. */
export async function openBarePage(browser: Browser, url: string): Promise<AppPage> {
  const session = await browser.newBrowserCDPSession();
  const { browserContextId } = await session.send("Target.createBrowserContext");
  const { targetId } = await session.send("Target.createTarget", { url, browserContextId });
  const { sessionId } = await session.send("Target.attachToTarget", { targetId });
  const answers = new Map<number, (answer: Answer) => void>();
  session.on("Target.receivedMessageFromTarget", ({ message }) => {
    const { id, result } = JSON.parse(message) as { id: number; result: Answer };
    answers.get(id)?.(result);
    answers.delete(id);
  });
  let sent = 0;
  const evaluate = async (expression: string): Promise<unknown> => {
    const id = ++sent;
    const { promise, resolve } = Promise.withResolvers<Answer>();
    answers.set(id, resolve);
    const params = { expression, awaitPromise: true, returnByValue: true };
    const message = JSON.stringify({ id, method: "Runtime.evaluate", params });
    await session.send("Target.sendMessageToTarget", { sessionId, message });
    const { result, exceptionDetails } = await promise;
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    // JSON has no Infinity.
    return result.unserializableValue === undefined ? result.value : Number(result.unserializableValue);
  };
  while ((await evaluate("location.href + document.readyState")) !== `${url}complete`) await sleep(10);
  return {
    evaluate: async (fn, argument) => (await evaluate(`(${String(fn)})(${JSON.stringify(argument)})`)) as never,
  };
}

interface Answer {
  readonly result: { readonly value?: unknown; readonly unserializableValue?: string };
  readonly exceptionDetails?: { readonly text: string; readonly exception?: { readonly description?: string } };
}

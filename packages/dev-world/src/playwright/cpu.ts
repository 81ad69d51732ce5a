/** A slow processor. */
import type { Page } from "@playwright/test";

/**
 * Slows down the main thread of a page by this factor; 1 is normal speed. Service workers and other threads keep their
 * speed. Works in Chromium only.
 */
export async function slowCpu(page: Page, factor: number): Promise<void> {
  const session = await page.context().newCDPSession(page);
  await session.send("Emulation.setCPUThrottlingRate", { rate: factor });
}

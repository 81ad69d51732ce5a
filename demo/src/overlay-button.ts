/**
 * The overlay that any app may show, behind a button.
 */
import { byId } from "./dom.ts";

export function startOverlayButton(): void {
  const button = byId("overlay");
  let hide: (() => void) | undefined;
  const toggle = async (): Promise<void> => {
    const { showOverlay } = await import("@agarose/sw/overlay");
    // It has a button of its own to close it, so it may be gone already.
    const isShown = hide !== undefined && document.querySelector("agarose-overlay") !== null;
    if (isShown) hide!();
    hide = isShown ? undefined : showOverlay();
    button.setAttribute("aria-pressed", String(!isShown));
  };
  button.addEventListener("click", () => void toggle());
}

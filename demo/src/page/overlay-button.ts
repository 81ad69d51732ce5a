/** The button of the overlay of reads, which any app can show. */
import { byId } from "./dom.ts";

export function startOverlayButton(): void {
  const button = byId("overlay");
  let hide: (() => void) | undefined;
  const toggle = async (): Promise<void> => {
    const { showOverlay } = await import("@agarose/sw/devtools");
    // The overlay has its own close button.
    const isShown = hide !== undefined && document.querySelector("agarose-overlay") !== null;
    if (isShown) hide!();
    hide = isShown ? undefined : showOverlay();
    button.setAttribute("aria-pressed", String(!isShown));
  };
  button.addEventListener("click", () => void toggle());
}

/** The buttons that kill the nearest region, and bring it back. */
import type { DemoWorld } from "../state/world.ts";

/** Lets every `button.kill` of the page kill the region that is nearest to the client. */
export function startKillButtons(world: DemoWorld, report: (error: unknown) => void): void {
  const buttons = [...document.querySelectorAll<HTMLButtonElement>("button.kill")];
  world.addEventListener("change", () => {
    const { nearest: region } = world;
    for (const button of buttons) {
      button.disabled = region === undefined;
      if (!region) continue;
      button.textContent = region.down ? `Bring ${region.name} back` : `Kill ${region.name}`;
      button.classList.toggle("dead", region.down);
    }
  });
  for (const button of buttons) {
    button.addEventListener("click", () => {
      const { nearest: region } = world;
      if (region) world.setRegion(region.name, { down: !region.down }).catch(report);
    });
  }
}

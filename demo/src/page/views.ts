/** The views of the page: one is shown, by the fragment of the address. */
import { byId } from "./dom.ts";

/** Calls `onShow` with the id of the view that is shown, now and at each change. The first one is the default. */
export function startViews(ids: readonly [string, ...string[]], onShow: (id: string) => void): void {
  const show = (): void => {
    const wanted = location.hash.slice(1);
    const shown = ids.includes(wanted) ? wanted : ids[0];
    for (const id of ids) byId(id).hidden = id !== shown;
    for (const link of document.querySelectorAll<HTMLAnchorElement>(".top nav a[href^='#']")) {
      if (link.hash === `#${shown}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    scrollTo(0, 0);
    onShow(shown);
  };
  addEventListener("hashchange", show);
  show();
}

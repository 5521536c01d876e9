/** Announcements for screen readers, without moving the focus. */
import { Cell } from "./cell.js";
import { shownText } from "./names.js";

export const announcement = new Cell("");

/** Announces a text politely; a repeated text is announced again. */
export function announce(text: string): void {
  const said = shownText(text);
  announcement.value = announcement.value === said ? `${said}\u00a0` : said;
}

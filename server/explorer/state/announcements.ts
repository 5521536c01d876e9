/** Announcements for screen readers, without moving the focus. */
import { Cell } from "./cell.js";

export const announcement = new Cell("");

/** Announces a text politely; a repeated text is announced again. */
export function announce(text: string): void {
  announcement.value = announcement.value === text ? `${text}\u00a0` : text;
}

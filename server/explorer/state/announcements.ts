/** What screen readers are told without the focus moving. */
import { Cell } from "./cell.js";

export const announcement = new Cell("");

/** Says it politely; the same text twice is said twice. */
export function announce(text: string): void {
  announcement.value = announcement.value === text ? `${text}\u00a0` : text;
}

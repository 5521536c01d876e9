/** Light or dark: like the system, until the reader chooses. */
import Type from "typebox";
import { Cell } from "./cell.js";
import { forget, recall, remember } from "./memory.js";

export type Theme = "system" | "light" | "dark";

const Choice = Type.Enum(["light", "dark"]);
const NEXT: Readonly<Record<Theme, Theme>> = { system: "light", light: "dark", dark: "system" };

export const theme = new Cell<Theme>("system");

export function startTheme(): void {
  theme.value = recall("theme", Choice) ?? "system";
  apply(theme.value);
}

export function changeTheme(): void {
  theme.value = NEXT[theme.value];
  if (theme.value === "system") forget("theme");
  else remember("theme", theme.value);
  apply(theme.value);
}

function apply(choice: Theme): void {
  if (choice === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
}

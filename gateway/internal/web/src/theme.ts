// Dark or light: as the system has it, unless the person has chosen.
import { signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const key = "grapnel.theme";

export const theme = signal<Theme>((localStorage.getItem(key) as Theme | null) ?? "system");

export function setTheme(t: Theme): void {
  theme.value = t;
  localStorage.setItem(key, t);
  apply();
}

export function apply(): void {
  if (theme.value === "system") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.dataset.theme = theme.value;
}

/** Light, dark, or what the system says. The choice is remembered in this browser. */
import { computed, signal } from '@preact/signals';

export type Theme = 'system' | 'light' | 'dark';
const KEY = 'barnabas.theme';
const dark = window.matchMedia('(prefers-color-scheme: dark)');
const systemIsDark = signal(dark.matches);
dark.addEventListener('change', (event) => {
  systemIsDark.value = event.matches;
});

function remembered(): Theme {
  try {
    const text = localStorage.getItem(KEY);
    return text === 'light' || text === 'dark' ? text : 'system';
  } catch {
    return 'system';
  }
}

export const theme = signal<Theme>(remembered());
export const isDark = computed(() =>
  theme.value === 'system' ? systemIsDark.value : theme.value === 'dark',
);

export function setTheme(choice: Theme): void {
  theme.value = choice;
  try {
    localStorage.setItem(KEY, choice);
  } catch {
    // A browser without storage keeps the choice until the page is left.
  }
}

/** Puts the theme on the document; styles take their tokens from there. */
export function applyTheme(): void {
  document.documentElement.dataset['theme'] = isDark.value ? 'dark' : 'light';
}

/** The value of a token, for canvases. */
export function token(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

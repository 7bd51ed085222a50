/** Where the page is: the path and the query of the address bar. Every state of the page is in there. */
import { computed, signal } from '@preact/signals';

/** The console's base path without a slash at its end, such as "" or "/kafka". */
export const base = new URL(document.baseURI).pathname.replace(/\/$/, '');

interface Place {
  path: string;
  search: string;
}

function read(): Place {
  const { pathname, search } = window.location;
  const path = pathname.startsWith(base) ? pathname.slice(base.length) : pathname;
  return { path: path === '' ? '/' : path, search };
}

export const place = signal<Place>(read());
export const query = computed(() => new URLSearchParams(place.value.search));
export const segments = computed(() =>
  place.value.path.split('/').filter(Boolean).map(decodeSegment),
);

function decodeSegment(text: string): string {
  try {
    const decoded = decodeURIComponent(text);
    return /^(%2E){1,2}$/.test(decoded) ? decodeURIComponent(decoded) : decoded;
  } catch {
    return text;
  }
}

/** Browsers resolve "." and ".." even if they are encoded once. */
function encodeSegment(text: string): string {
  return /^\.{1,2}$/.test(text) ? '%252E'.repeat(text.length) : encodeURIComponent(text);
}

/** The address of a path of the console, for links. */
export function href(to: string): string {
  return base + to;
}

/** A path from segments that may hold any character. */
export function path(...parts: (string | number)[]): string {
  return parts.map((part) => `/${encodeSegment(String(part))}`).join('');
}

/** A query string with its question mark, without empty values. */
export function queryOf(values: Record<string, string | number | undefined | null>): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined && value !== null && value !== '') params.set(name, String(value));
  }
  const text = params.toString();
  return text === '' ? '' : `?${text}`;
}

function keepScroll(): void {
  history.replaceState({ ...history.state, scroll: window.scrollY }, '');
}

/** Goes to another path (and query) of the console. */
export function go(to: string, options: { replace?: boolean } = {}): void {
  const samePath = to.split('?')[0] === place.value.path;
  if (options.replace) {
    history.replaceState(history.state, '', href(to));
  } else {
    keepScroll();
    history.pushState({}, '', href(to));
  }
  place.value = read();
  if (!options.replace && !samePath) window.scrollTo(0, 0);
}

/** Changes some parameters of the query; an empty value removes one. */
export function setQuery(
  changes: Record<string, string | number | undefined | null>,
  options: { replace?: boolean } = { replace: true },
): void {
  const params = new URLSearchParams(place.value.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === null || value === '') params.delete(name);
    else params.set(name, String(value));
  }
  const text = params.toString();
  go(place.value.path + (text === '' ? '' : `?${text}`), options);
}

function scrollBack(top: number): void {
  let tries = 0;
  const step = () => {
    window.scrollTo(0, top);
    tries += 1;
    if (Math.abs(window.scrollY - top) > 1 && tries < 20) requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
}

function isPlain(event: MouseEvent): boolean {
  return event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
}

/** Makes clicks on links of the console change the place without a reload. */
export function followLinks(): void {
  history.scrollRestoration = 'manual';
  window.addEventListener('popstate', (event) => {
    place.value = read();
    scrollBack(Number((event.state as { scroll?: number } | null)?.scroll ?? 0));
  });
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || !isPlain(event) || !(event.target instanceof Element)) return;
    const link = event.target.closest('a[href]');
    if (!(link instanceof HTMLAnchorElement) || link.target || link.hasAttribute('download')) return;
    const url = new URL(link.href);
    if (url.origin !== window.location.origin || !url.pathname.startsWith(`${base}/`)) return;
    if (url.pathname.startsWith(`${base}/api/`)) return;
    event.preventDefault();
    go(url.pathname.slice(base.length) + url.search);
  });
}

/** The session: who is logged in, whether changes are allowed, what the server offers. */
import { computed, signal } from '@preact/signals';
import { base, go, place, queryOf } from '../lib/place';
import { Problem, get, post } from './client';
import type { Session } from './types';

export const session = signal<Session | null>(null);
export const sessionProblem = signal<string | null>(null);

export const needsLogin = computed(
  () => session.value?.login.required === true && session.value.user === null,
);

/** Why a change is not possible now; null if it is. */
export const whyReadOnly = computed(() => {
  if (session.value === null) return 'The session is not loaded yet.';
  if (!session.value.read_only) return null;
  return 'This console is read-only. Start it with --read-write to allow changes.';
});

export async function loadSession(): Promise<void> {
  try {
    session.value = await get<Session>('/session');
    sessionProblem.value = null;
  } catch (error) {
    sessionProblem.value = error instanceof Problem ? error.message : String(error);
  }
}

export async function login(user: string, password: string): Promise<void> {
  session.value = await post<Session>('/login', { user, password });
}

export async function logout(): Promise<void> {
  await post('/logout', {});
  await loadSession();
  go('/login');
}

/** Goes to the login page, which comes back to this page afterwards. */
export function goToLogin(): void {
  if (place.value.path === '/login') return;
  go(`/login${queryOf({ next: place.value.path + place.value.search })}`, { replace: true });
}

export const oidcAddress = `${base}/api/login/oidc`;

/** What surrounds each page: navigation, search, the age of the data, the theme. */
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { ageSeconds, isLost, isStale, lostSinceMs, takenMs } from '../api/events';
import { useResource } from '../api/resource';
import { logout, session, whyReadOnly } from '../api/session';
import type { Alert } from '../api/types';
import { clock, duration, utc } from '../lib/format';
import { paletteOpen } from '../lib/keys';
import { href, place, segments } from '../lib/place';
import { type Theme, setTheme, theme } from '../lib/theme';
import { Icon, type IconName } from './icons';

interface Entry {
  to: string;
  label: string;
  icon: IconName;
}

const GROUPS: [title: string, entries: Entry[]][] = [
  ['', [{ to: '/', label: 'Overview', icon: 'overview' }]],
  [
    'Data',
    [
      { to: '/topics', label: 'Topics', icon: 'topics' },
      { to: '/messages', label: 'Messages', icon: 'messages' },
      { to: '/groups', label: 'Groups', icon: 'groups' },
      { to: '/transactions', label: 'Transactions', icon: 'transactions' },
    ],
  ],
  [
    'Cluster',
    [
      { to: '/brokers', label: 'Brokers', icon: 'brokers' },
      { to: '/heatmap', label: 'Heat map', icon: 'heatmap' },
      { to: '/plans', label: 'Plans', icon: 'plans' },
      { to: '/alerts', label: 'Alerts', icon: 'alerts' },
    ],
  ],
  [
    'Pipeline',
    [
      { to: '/streams', label: 'Streams', icon: 'streams' },
      { to: '/telemetry', label: 'Telemetry', icon: 'telemetry' },
    ],
  ],
];

const menuOpen = signal(false);

function isOffered(entry: Entry): boolean {
  const features = session.value?.features;
  if (entry.to === '/telemetry') return features?.telemetry ?? true;
  if (entry.to === '/streams') return features?.streams ?? true;
  return true;
}

function Firing() {
  const { data } = useResource<{ items: Alert[] }>('/alerts');
  const firing = data?.items.filter(({ state }) => state === 'firing').length ?? 0;
  return firing === 0 ? null : (
    <span class="firing">
      {firing}
      <span class="unseen"> firing</span>
    </span>
  );
}

function Navigation() {
  const first = `/${segments.value[0] ?? ''}`;
  return (
    <nav id="navigation" class={menuOpen.value ? 'side open' : 'side'} aria-label="Pages">
      {GROUPS.map(([title, entries]) => (
        <div key={title} class="side-group">
          {title && <p>{title}</p>}
          {entries.filter(isOffered).map((entry) => (
            <a key={entry.to} href={href(entry.to)} aria-current={entry.to === first ? 'page' : undefined}>
              <Icon name={entry.icon} />
              {entry.label}
              {entry.to === '/alerts' && <Firing />}
            </a>
          ))}
        </div>
      ))}
      <p class="side-foot">Barnabas {session.value?.version}</p>
    </nav>
  );
}

/** How old the data is. Old data is marked as such. */
function Age() {
  const seconds = ageSeconds.value;
  if (seconds === null) return <span class="age">no data yet</span>;
  const stale = isStale.value || isLost.value;
  const text = seconds < 1.5 ? 'now' : `${duration(Math.floor(seconds))} ago`;
  return (
    <span class={stale ? 'age stale' : 'age'} title={`Collected ${utc(takenMs.value)}`}>
      <i class="pulse" aria-hidden="true" />
      {stale ? `stale, ${text}` : text}
    </span>
  );
}

const NEXT: Record<Theme, [Theme, IconName, string]> = {
  system: ['light', 'system', 'as the system'],
  light: ['dark', 'sun', 'light'],
  dark: ['system', 'moon', 'dark'],
};

function ThemeSwitch() {
  const [next, icon, word] = NEXT[theme.value];
  const label = `Theme: ${word}. Change to ${NEXT[next][2]}`;
  return (
    <button class="icon-button" type="button" aria-label={label} title={label} onClick={() => setTheme(next)}>
      <Icon name={icon} />
    </button>
  );
}

function TopBar() {
  const { cluster, user, login } = session.value ?? {};
  return (
    <header class="top">
      <button
        class="icon-button menu"
        type="button"
        aria-label="Pages"
        aria-expanded={menuOpen.value}
        aria-controls="navigation"
        onClick={() => {
          menuOpen.value = !menuOpen.value;
        }}
      >
        <Icon name={menuOpen.value ? 'close' : 'menu'} />
      </button>
      <a class="brand" href={href('/')} title={cluster?.bootstrap ?? undefined}>
        <b>barnabas</b>
        {cluster?.name && (
          <>
            <i aria-hidden="true">/</i>
            <span>{cluster.name}</span>
          </>
        )}
      </a>
      <button class="finder" type="button" onClick={() => (paletteOpen.value = true)}>
        <Icon name="search" />
        <span>Search or command</span>
        <kbd aria-hidden="true">Ctrl K</kbd>
      </button>
      <div class="top-end">
        {whyReadOnly.value !== null && (
          <span class="chip quiet read-only" title={whyReadOnly.value}>
            read-only
          </span>
        )}
        <Age />
        <ThemeSwitch />
        {user && (
          <span class="user">
            <span title={user}>{user}</span>
            {login && login.methods.length > 0 && (
              <button class="button small" type="button" onClick={() => void logout()}>
                Log out
              </button>
            )}
          </span>
        )}
      </div>
    </header>
  );
}

function LostNote() {
  if (!isLost.value) return null;
  return (
    <div class="note warning lost" role="status">
      <p>
        No connection to the console since {clock(lostSinceMs.value)}. The page shows what it knew then and connects
        again by itself.
      </p>
    </div>
  );
}

export function Shell({ children }: { children: ComponentChildren }) {
  const path = place.value.path;
  useEffect(() => {
    menuOpen.value = false;
  }, [path]);
  return (
    <>
      <a class="skip" href="#main" onClick={() => document.getElementById('main')?.focus()}>
        Skip to the content
      </a>
      <TopBar />
      <Navigation />
      {menuOpen.value && <div class="curtain" onClick={() => (menuOpen.value = false)} />}
      <main id="main" tabIndex={-1}>
        <LostNote />
        {children}
      </main>
    </>
  );
}

/** Search fields, choices, tabs, figures: the small parts that pages are made of. */
import type { ComponentChildren, InputHTMLAttributes } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { whyReadOnly } from '../api/session';
import { href, place, query, setQuery } from '../lib/place';
import { Icon } from './icons';

const TYPING_MS = 120;

/** A search over a list, kept in the query. The key "/" focuses it. */
export function SearchField({ label, name = 'search' }: { label: string; name?: string }) {
  const kept = query.value.get(name) ?? '';
  const [text, setText] = useState(kept);
  const sent = useRef(kept);
  useEffect(() => {
    if (kept !== sent.current) setText(kept); // The place changed by other means: back, a link.
    sent.current = kept;
  }, [kept]);
  useEffect(() => {
    if (text === sent.current) return;
    const timer = setTimeout(() => {
      sent.current = text;
      setQuery({ [name]: text });
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [text, name]);
  const clear = (event: KeyboardEvent) => {
    if (event.key !== 'Escape') return;
    if (text === '') (event.target as HTMLElement).blur();
    else setText('');
    event.stopPropagation();
  };
  return (
    <div class="search">
      <Icon name="search" />
      <input
        type="search"
        data-search
        aria-label={label}
        placeholder={label}
        value={text}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={clear}
      />
      <kbd aria-hidden="true">/</kbd>
    </div>
  );
}

interface Choice {
  value: string;
  label: string;
  count?: number | undefined;
}

/** A few choices of which one is taken, kept in the query. The first is the default. */
export function Choices({ label, name, choices }: { label: string; name: string; choices: Choice[] }) {
  const taken = query.value.get(name) ?? choices[0]?.value ?? '';
  return (
    <div class="choices" role="group" aria-label={label}>
      {choices.map(({ value, label: text, count }, at) => (
        <button
          key={value}
          type="button"
          aria-pressed={taken === value}
          onClick={() => setQuery({ [name]: at === 0 ? '' : value })}
        >
          {text}
          {count !== undefined && <span class="count">{count}</span>}
        </button>
      ))}
    </div>
  );
}

export function Toggle({ name, label }: { name: string; label: string }) {
  return (
    <label class="toggle">
      <input
        type="checkbox"
        checked={query.value.get(name) === '1'}
        onChange={(event) => setQuery({ [name]: event.currentTarget.checked ? '1' : '' })}
      />
      {label}
    </label>
  );
}

export interface Tab {
  to: string;
  label: string;
  count?: string | undefined;
}

/** Tabs that are links: each has an address of its own. */
export function Tabs({ label, tabs, current }: { label: string; tabs: Tab[]; current: string }) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(({ to, label: text, count }) => (
        <a key={to} href={href(to)} aria-current={current === to ? 'page' : undefined}>
          {text}
          {count !== undefined && <span class="count">{count}</span>}
        </a>
      ))}
    </nav>
  );
}

export interface FigureProps {
  label: string;
  value: string;
  title?: string;
  detail?: ComponentChildren;
  tone?: 'critical' | 'warning' | undefined;
  to?: string;
}

/** One number of a strip, with its name above and what it means below. */
function Figure({ label, value, title, detail, tone, to }: FigureProps) {
  const cut = /^([<\d.,]+) (\D+)$/.exec(value);
  const body = (
    <>
      <span class="figure-label">{label}</span>
      <span class={`figure-value ${tone ?? ''}`} title={title}>
        {cut ? cut[1] : value}
        {cut && <small> {cut[2]}</small>}
      </span>
      <span class="figure-detail">{detail}</span>
    </>
  );
  return <li>{to ? <a href={href(to)}>{body}</a> : <div>{body}</div>}</li>;
}

export function Figures({ items }: { items: FigureProps[] }) {
  return (
    <ul class="figures">
      {items.map((item) => (
        <Figure key={item.label} {...item} />
      ))}
    </ul>
  );
}

/** A button for a change. In a read-only console it is off and says why. */
export function ChangeButton(props: {
  onClick: () => void;
  children: ComponentChildren;
  tone?: 'danger' | 'primary';
  off?: string | null | undefined;
}) {
  const why = whyReadOnly.value ?? props.off ?? null;
  return (
    <button
      class={`button ${props.tone ?? ''}`}
      type="button"
      aria-disabled={why !== null}
      title={why ?? undefined}
      onClick={() => why === null && props.onClick()}
    >
      {props.children}
    </button>
  );
}

interface FieldProps {
  label: string;
  hint?: ComponentChildren;
  /** A control of another kind; without it, the field is an input. */
  children?: ComponentChildren;
  type?: 'text' | 'number' | 'password';
  value?: string;
  name?: string;
  placeholder?: string;
  class?: string;
  inputMode?: 'numeric';
  autocomplete?: 'off' | 'username' | 'current-password';
  min?: number;
  maxLength?: number;
  autofocus?: boolean;
  required?: boolean;
  disabled?: boolean;
  onInput?: (event: { currentTarget: HTMLInputElement }) => void;
}

export function Field({ label, hint, children, ...rest }: FieldProps) {
  return (
    <div class="field">
      <label>
        <span class="field-label">{label}</span>
        {children ?? <Input {...rest} />}
      </label>
      {hint && <span class="field-hint">{hint}</span>}
    </div>
  );
}

function Input({ type = 'text', autocomplete = 'off', ...rest }: Omit<FieldProps, 'label' | 'hint' | 'children'>) {
  // Preact's types tell kinds of inputs apart by a literal type; here it is chosen by the caller.
  const props = { spellcheck: false, autocomplete, type, ...rest } as InputHTMLAttributes<HTMLInputElement>;
  return <input {...props} />;
}

export function Section(props: {
  title: string;
  children: ComponentChildren;
  note?: ComponentChildren;
  action?: ComponentChildren;
}) {
  return (
    <section class="section">
      <header>
        <h2>{props.title}</h2>
        {props.note && <p>{props.note}</p>}
        {props.action && <div class="section-action">{props.action}</div>}
      </header>
      {props.children}
    </section>
  );
}

/** The head of a page: where it is, its name, its state and what can be done. */
export function PageHead(props: {
  title: ComponentChildren;
  trail?: { to: string; label: string };
  state?: ComponentChildren;
  actions?: ComponentChildren;
}) {
  return (
    <div class="page-head">
      <div class="page-title">
        {props.trail && (
          <nav aria-label="Breadcrumb">
            <a href={href(props.trail.to)}>{props.trail.label}</a>
          </nav>
        )}
        <h1 tabIndex={-1}>{props.title}</h1>
        {props.state}
      </div>
      {props.actions && <div class="actions">{props.actions}</div>}
    </div>
  );
}

/** The path of this page with another query; for links that change one state. */
export function here(changes: Record<string, string>): string {
  const params = new URLSearchParams(place.value.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === '') params.delete(name);
    else params.set(name, value);
  }
  const text = params.toString();
  return place.value.path + (text === '' ? '' : `?${text}`);
}

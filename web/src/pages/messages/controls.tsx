/** Where to begin, what to look for: the line above the list of messages. */
import { useEffect, useState } from 'preact/hooks';
import { query, setQuery } from '../../lib/place';
import { Icon } from '../../parts/icons';
import { FILTERS, type Filter, STARTS, filtersOf } from './question';

const FILTER_WORDS: Record<Filter, [label: string, example: string]> = {
  text: ['Contains', 'anywhere, any case'],
  key: ['Key', 'abc or 0xCAFE'],
  value: ['Value', 'abc or 0xCAFE'],
  header: ['Header', 'trace or trace=42'],
  cel: ['CEL', 'value.total > 100'],
};

/** A field whose text goes into the query when it is left or Enter is pressed. */
function QueryField(props: { name: string; label: string; placeholder: string; search?: boolean }) {
  const kept = query.value.get(props.name) ?? '';
  const [text, setText] = useState(kept);
  useEffect(() => setText(kept), [kept]);
  const send = () => text !== kept && setQuery({ [props.name]: text, open: '' }, { replace: false });
  return (
    <label class="inline-field">
      <span>{props.label}</span>
      <input
        type="text"
        class={props.name === 'cel' ? 'mono' : ''}
        data-search={props.search ? '' : undefined}
        value={text}
        placeholder={props.placeholder}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => setText(event.currentTarget.value)}
        onChange={send}
        onKeyDown={(event) => event.key === 'Escape' && event.currentTarget.blur()}
      />
    </label>
  );
}

function Start() {
  const from = query.value.get('from') ?? '';
  const isListed = STARTS.some(([value]) => value === from);
  const [other, setOther] = useState(!isListed);
  useEffect(() => setOther(!isListed), [isListed]);
  const choose = (value: string) => {
    setOther(value === 'other');
    if (value !== 'other') setQuery({ from: value, live: '', open: '' }, { replace: false });
  };
  return (
    <>
      <label class="inline-field">
        <span>From</span>
        <select value={other ? 'other' : from} onChange={(event) => choose(event.currentTarget.value)}>
          {STARTS.map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
          <option value="other">offset or time …</option>
        </select>
      </label>
      {other && (
        <>
          <QueryField name="from" label="Begin" placeholder="1000 or 2026-03-01T12:00:00" />
          <QueryField name="until" label="End" placeholder="end" />
        </>
      )}
    </>
  );
}

/** The filters in use, and one to add. */
function Filters() {
  const used = Object.keys(filtersOf(query.value)) as Filter[];
  const [added, setAdded] = useState<Filter[]>([]);
  const shown = FILTERS.filter((name) => name === 'text' || used.includes(name) || added.includes(name));
  const left = FILTERS.filter((name) => !shown.includes(name));
  const ordered = ['text', ...shown.filter((name) => name !== 'text')] as Filter[];
  return (
    <>
      {ordered.map((name) => (
        <span key={name} class="filter">
          <QueryField name={name} label={FILTER_WORDS[name][0]} placeholder={FILTER_WORDS[name][1]} search={name === 'text'} />
          {(name !== 'text' || used.includes('text')) && (
            <button
              class="icon-button"
              type="button"
              aria-label={`Remove the filter ${FILTER_WORDS[name][0]}`}
              onClick={() => {
                setAdded(added.filter((each) => each !== name));
                setQuery({ [name]: '' });
              }}
            >
              <Icon name="close" />
            </button>
          )}
        </span>
      ))}
      {left.length > 0 && (
        <label class="inline-field">
          <span class="unseen">Add a filter</span>
          <select value="" onChange={(event) => setAdded([...added, event.currentTarget.value as Filter])}>
            <option value="">Add a filter …</option>
            {left.map((name) => (
              <option key={name} value={name}>
                {FILTER_WORDS[name][0]}
              </option>
            ))}
          </select>
        </label>
      )}
    </>
  );
}

export function Controls() {
  return (
    <div class="toolbar">
      <Start />
      <QueryField name="partitions" label="Partitions" placeholder="all, or 0,2-4" />
      <Filters />
    </div>
  );
}

/** What is read: the parameters of the page's query, and the API's path for them. */
import { query, queryOf } from '../../lib/place';

export const FILTERS = ['key', 'value', 'header', 'text', 'cel'] as const;
export type Filter = (typeof FILTERS)[number];

/** Where to begin; other values are an offset, a time or positions. */
export const STARTS: [value: string, label: string][] = [
  ['', 'newest'],
  ['beginning', 'the beginning'],
  ['-15m', '15 minutes ago'],
  ['-1h', '1 hour ago'],
  ['-24h', '24 hours ago'],
];

const NEWEST = 50;
const NEWEST_SEARCHED = 5000;
const LIMIT = 200;
const LIMIT_MAX = 1000;

export function filtersOf(params: URLSearchParams): Partial<Record<Filter, string>> {
  const found = FILTERS.map((name) => [name, params.get(name) ?? ''] as const);
  return Object.fromEntries(found.filter(([, value]) => value !== ''));
}

function partitionCount(text: string, all: number): number {
  if (text === '') return all;
  return text.split(',').reduce((sum, part) => {
    const [first = 0, last = first] = part.split('-').map(Number);
    return sum + Math.max(1, last - first + 1);
  }, 0);
}

/** "newest" is some last records of each partition, so that all of them can be shown. */
function newest(params: URLSearchParams, partitions: number): { from: string; limit: number } {
  if (Object.keys(filtersOf(params)).length > 0) return { from: `-${NEWEST_SEARCHED}`, limit: LIMIT_MAX };
  const read = Math.max(1, partitionCount(params.get('partitions') ?? '', partitions));
  const each = Math.max(1, Math.ceil(NEWEST / read));
  return { from: `-${each}`, limit: Math.min(LIMIT_MAX, each * read) };
}

/** The API's path of a search. */
export function searchPath(topic: string, partitions: number): string {
  const params = query.value;
  const from = params.get('from') ?? '';
  const start = from === '' ? newest(params, partitions) : { from, limit: LIMIT };
  return `/messages${queryOf({ topic, partitions: params.get('partitions'), ...start, until: params.get('until'), ...filtersOf(params), view: params.get('view') })}`;
}

export function tailPath(topic: string): string {
  const params = query.value;
  return `/messages/tail${queryOf({ topic, partitions: params.get('partitions'), ...filtersOf(params), view: params.get('view') })}`;
}

export function exportPath(topic: string, format: 'jsonl' | 'csv'): string {
  const params = query.value;
  return `/messages/export${queryOf({ topic, partitions: params.get('partitions'), from: params.get('from') ?? 'beginning', until: params.get('until'), ...filtersOf(params), format })}`;
}

/** Long lists that the server searches, sorts and cuts into pieces. */
import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { usePieces } from '../api/resource';
import type { Page } from '../api/types';
import { plural } from '../lib/format';
import { query, queryOf } from '../lib/place';
import { Waiting } from './feedback';
import { type Column, Grid } from './table';

const PIECE = 200;

interface RemoteProps<T> {
  label: string;
  /** What the rows are called, for the line that counts them. */
  one: string;
  many?: string;
  path: string;
  /** Parameters of the page's query that the server filters by. */
  filters: Record<string, string | undefined>;
  sort?: string;
  columns: Column<T>[];
  keyOf: (row: T) => string;
  empty: ComponentChildren;
}

function pieceStarts(first: number, end: number): number[] {
  const from = Math.floor(first / PIECE);
  const to = Math.max(from, Math.floor(Math.max(0, end - 1) / PIECE));
  return Array.from({ length: to - from + 1 }, (_, at) => (from + at) * PIECE);
}

/** A list of the server with its search, sort and filters in the query. */
export function RemoteList<T>(props: RemoteProps<T>) {
  const [range, setRange] = useState<[number, number]>([0, PIECE]);
  const last = useRef<{ of: string; pages: Map<number, Page<T>> }>({ of: '', pages: new Map() });
  const sort = query.value.get('sort') ?? props.sort ?? '';
  const starts = pieceStarts(range[0], range[1]);
  const paths = starts.map(
    (offset) => props.path + queryOf({ ...props.filters, sort, offset, limit: PIECE }),
  );
  const pieces = usePieces<Page<T>>(paths);
  const question = props.path + queryOf({ ...props.filters, sort });
  // The last answer stays until the first piece of another question is here.
  if (last.current.of !== question && pieces.some((piece) => piece.data)) {
    last.current = { of: question, pages: new Map() };
  }
  const { pages } = last.current;
  pieces.forEach(({ data }, at) => data && pages.set(starts[at] ?? 0, data));
  const problem = pieces.find((piece) => piece.problem);
  const loaded = pieces.some((piece) => piece.data);
  const total = (pieces.find((piece) => piece.data) ?? { data: pages.get(0) }).data?.total;
  if (total === undefined) return <Waiting of={problem ?? pieces[0]!} rows={12} />;
  if (total === 0 && loaded) return <>{props.empty}</>;
  const rowAt = (index: number): T | undefined => {
    const start = Math.floor(index / PIECE) * PIECE;
    const piece = pieces[starts.indexOf(start)]?.data ?? pages.get(start);
    return piece?.items[index - start];
  };
  return (
    <>
      {problem && <Waiting of={problem} />}
      <p class="counted" role="status">
        {plural(total, props.one, props.many)}
      </p>
      <Grid
        label={props.label}
        columns={props.columns}
        total={total}
        rowAt={rowAt}
        keyOf={props.keyOf}
        sortName="sort"
        sort={sort}
        onWindow={(first, end) => setRange((was) => (was[0] === first && was[1] === end ? was : [first, end]))}
      />
    </>
  );
}

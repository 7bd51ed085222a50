/** Tables. Only the rows in view are in the document, and only the columns that fit. */
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { query, setQuery } from '../lib/place';
import { isNarrow, isPhone } from '../lib/screen';

export interface Column<T> {
  key: string;
  title: string;
  /** What the column means, for its title. */
  hint?: string;
  /** In pixels. The column that grows takes what is left and at least this. */
  width: number;
  grow?: boolean;
  right?: boolean;
  /** Columns with a higher rank go first where there is no room; 0 never goes. */
  rank: number;
  /** On narrow screens, a second line of the row names it if there is no room. */
  line?: boolean;
  fixed?: boolean;
  cell: (row: T) => ComponentChildren;
  /** What to sort by; columns of lists that the server sorts need none. */
  by?: (row: T) => number | string | null | undefined;
}

interface GridProps<T> {
  label: string;
  columns: Column<T>[];
  total: number;
  rowAt: (index: number) => T | undefined;
  keyOf: (row: T) => string;
  /** The parameter of the query that holds the column to sort by, such as "-lag". */
  sortName?: string | undefined;
  sort?: string | undefined;
  /** Tells which rows are in view. */
  onWindow?: (first: number, end: number) => void;
  /** Marks a row, such as the one whose details are open. */
  isOpen?: (row: T) => boolean;
}

const ROW = 32;
const PHONE_ROW = 52;
const ALL_MAX = 120;
const OVERSCAN = 12;
const PADDING = 16;
const PHONE_LINE_COLUMNS = 2;
const LINE_COLUMNS = 4;

/** The columns that fit into a width, by their rank. */
export function fitting<T>(columns: Column<T>[], width: number): Column<T>[] {
  const byRank = [...columns].sort((a, b) => a.rank - b.rank);
  const kept = new Set<Column<T>>();
  let used = 0;
  for (const column of byRank) {
    if (column.rank > 0 && used + column.width > width) break;
    used += column.width;
    kept.add(column);
  }
  return columns.filter((column) => kept.has(column));
}

/** The most important of the columns that have no room, as many as a second line holds. */
function secondLine<T>(all: Column<T>[], shown: Column<T>[]): Column<T>[] {
  const left = all.filter((column) => column.line && !shown.includes(column));
  return left.sort((a, b) => a.rank - b.rank).slice(0, isPhone.value ? PHONE_LINE_COLUMNS : LINE_COLUMNS);
}

function useWidth(ref: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(Math.min(window.innerWidth - PADDING, 1200));
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    setWidth(element.clientWidth);
    return () => observer.disconnect();
  }, []);
  return width;
}

/** The rows in view, as [first, end): counted from where the body of the table begins on the page. */
function useWindow(body: { current: HTMLElement | null }, total: number, height: number) {
  const [range, setRange] = useState<[number, number]>([0, Math.min(total, ALL_MAX)]);
  useLayoutEffect(() => {
    let frame = 0;
    const measure = () => {
      frame = 0;
      const top = body.current?.getBoundingClientRect().top ?? 0;
      const first = Math.max(0, Math.floor(-top / height) - OVERSCAN);
      const end = Math.min(total, Math.ceil((window.innerHeight - top) / height) + OVERSCAN);
      setRange((was) => (was[0] === first && was[1] === end ? was : [first, Math.max(end, first)]));
    };
    const later = () => {
      frame ||= requestAnimationFrame(measure);
    };
    measure();
    window.addEventListener('scroll', later, { passive: true });
    window.addEventListener('resize', later);
    return () => {
      cancelAnimationFrame(frame);
      window.removeEventListener('scroll', later);
      window.removeEventListener('resize', later);
    };
  }, [total, height]);
  return total <= ALL_MAX ? ([0, total] as [number, number]) : range;
}

/** Numbers begin with the largest, names with the first; then the other way; then the default order. */
export function nextSort(key: string, sort: string, isNumber: boolean | undefined): string {
  const [first, second] = isNumber ? [`-${key}`, key] : [key, `-${key}`];
  if (sort === first) return second;
  return sort === second ? '' : first;
}

function HeadCell<T>(props: { column: Column<T>; sort: string; sortName: string | undefined }) {
  const { column, sort, sortName } = props;
  const direction = sort === column.key ? 'ascending' : sort === `-${column.key}` ? 'descending' : undefined;
  const turn = () => sortName && setQuery({ [sortName]: nextSort(column.key, sort, column.right) });
  return (
    <th scope="col" class={column.right ? 'n' : ''} aria-sort={direction}>
      {sortName && !column.fixed ? (
        <button type="button" title={column.hint} onClick={turn}>
          {column.title}
          <i class={`sort ${direction ?? ''}`} aria-hidden="true" />
        </button>
      ) : (
        <span title={column.hint}>{column.title}</span>
      )}
    </th>
  );
}

/** The second line of a row on narrow screens: what the columns without room say. */
function Line<T>({ columns, row }: { columns: Column<T>[]; row: T }) {
  return (
    <div class="line">
      {columns.map((column) => (
        <span key={column.key}>
          <i>{column.title}</i> {column.cell(row)}
        </span>
      ))}
    </div>
  );
}

interface RowProps<T> {
  row: T | undefined;
  index: number;
  columns: Column<T>[];
  lines: Column<T>[];
  open: boolean;
}

function Row<T>({ row, index, columns, lines, open }: RowProps<T>) {
  return (
    <tr data-row={index} aria-rowindex={index + 2} class={open ? 'open' : ''}>
      {columns.map((column, at) => (
        <td key={column.key} class={`${column.right ? 'n' : ''} ${column.rank === 0 ? 'first' : ''}`}>
          {row === undefined ? <i class={`bar w${(index + at) % 4}`} /> : column.cell(row)}
          {row !== undefined && column.grow && lines.length > 0 && <Line columns={lines} row={row} />}
        </td>
      ))}
    </tr>
  );
}

function Spacer({ rows, height, columns }: { rows: number; height: number; columns: number }) {
  if (rows <= 0) return null;
  return (
    <tr class="space" aria-hidden="true">
      <td colSpan={columns} style={{ height: `${rows * height}px` }} />
    </tr>
  );
}

function SortChoice<T>(props: { columns: Column<T>[]; sort: string; sortName: string }) {
  return (
    <label class="sort-choice">
      Sort by
      <select
        value={props.sort}
        onChange={(event) => setQuery({ [props.sortName]: event.currentTarget.value })}
      >
        <option value="">default</option>
        {props.columns
          .filter((column) => !column.fixed)
          .map((column) => (
            <option key={column.key} value={column.right ? `-${column.key}` : column.key}>
              {column.title}
            </option>
          ))}
      </select>
    </label>
  );
}

/** A table of rows that may not all be loaded. */
export function Grid<T>(props: GridProps<T>) {
  const frame = useRef<HTMLDivElement>(null);
  const body = useRef<HTMLTableSectionElement>(null);
  const width = useWidth(frame);
  const columns = fitting(props.columns, width);
  const lines = isNarrow.value ? secondLine(props.columns, columns) : [];
  const height = lines.length > 0 ? PHONE_ROW : ROW;
  const [first, end] = useWindow(body, props.total, height);
  useLayoutEffect(() => props.onWindow?.(first, end), [first, end, props.total]);
  const sort = props.sort ?? (props.sortName ? (query.value.get(props.sortName) ?? '') : '');
  return (
    <div class={`table ${lines.length > 0 ? 'two-lines' : ''}`} ref={frame}>
      {isPhone.value && props.sortName && props.total > 3 && (
        <SortChoice columns={props.columns} sort={sort} sortName={props.sortName} />
      )}
      <table aria-label={props.label} aria-rowcount={props.total + 1}>
        <colgroup>
          {columns.map((column) => (
            <col key={column.key} style={column.grow ? undefined : { width: `${column.width}px` }} />
          ))}
        </colgroup>
        <thead>
          <tr>
            {columns.map((column) => (
              <HeadCell key={column.key} column={column} sort={sort} sortName={props.sortName} />
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          <Spacer rows={first} height={height} columns={columns.length} />
          {Array.from({ length: Math.max(0, end - first) }, (_, at) => {
            const row = props.rowAt(first + at);
            return (
              <Row
                key={row === undefined ? `row-${first + at}` : props.keyOf(row)}
                row={row}
                index={first + at}
                columns={columns}
                lines={lines}
                open={row !== undefined && (props.isOpen?.(row) ?? false)}
              />
            );
          })}
          <Spacer rows={props.total - end} height={height} columns={columns.length} />
        </tbody>
      </table>
    </div>
  );
}

function compare(a: unknown, b: unknown): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return String(a).localeCompare(String(b), 'en', { numeric: true });
}

/** Rows in the order of the query. Unknown values come last in both directions. */
export function sorted<T>(rows: T[], columns: Column<T>[], sort: string): T[] {
  const descending = sort.startsWith('-');
  const by = columns.find((column) => column.key === sort.replace(/^-/, ''))?.by;
  if (!by) return rows;
  const known = rows.filter((row) => by(row) != null);
  const unknown = rows.filter((row) => by(row) == null);
  known.sort((a, b) => compare(by(a), by(b)) * (descending ? -1 : 1));
  return [...known, ...unknown];
}

interface ListProps<T> {
  label: string;
  columns: Column<T>[];
  rows: T[];
  keyOf: (row: T) => string;
  sortName?: string;
  isOpen?: (row: T) => boolean;
}

/** A table of rows that are all here. */
export function List<T>({ rows, sortName, ...rest }: ListProps<T>) {
  const sort = sortName ? (query.value.get(sortName) ?? '') : '';
  const ordered = sorted(rows, rest.columns, sort);
  return <Grid {...rest} sortName={sortName} total={ordered.length} rowAt={(at) => ordered[at]} />;
}

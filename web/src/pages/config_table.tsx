/** Settings of a topic or a broker; those that differ from their defaults come first. */
import type { ConfigRow } from '../api/types';
import { whyReadOnly } from '../api/session';
import { query } from '../lib/place';
import { SearchField } from '../parts/controls';
import { showDialog } from '../parts/dialog';
import { Empty } from '../parts/feedback';
import { type Column, List } from '../parts/table';
import { State } from '../parts/text';
import { EditConfig } from './topic/changes';

function valueOf(row: ConfigRow): string {
  return row.is_sensitive ? 'hidden' : (row.value ?? '–');
}

function columns(topic: string | null): Column<ConfigRow>[] {
  const name = (row: ConfigRow) =>
    topic !== null && !row.is_read_only && whyReadOnly.value === null ? (
      <button type="button" class="row-link as-link" title={row.documentation ?? undefined} onClick={() => showDialog(<EditConfig topic={topic} row={row} />)}>
        <span class="mono">{row.name}</span>
      </button>
    ) : (
      <span class="mono" title={row.documentation ?? undefined}>{row.name}</span>
    );
  return [
    { key: 'name', title: 'Setting', width: 220, grow: true, rank: 0, cell: name, by: (row) => row.name },
    { key: 'value', title: 'Value', width: 240, rank: 1, line: true, cell: (row) => <span class={`mono ${row.is_default ? 'unknown' : ''}`} title={valueOf(row)}>{valueOf(row)}</span>, by: valueOf },
    { key: 'is_default', title: 'Set', width: 96, rank: 2, cell: (row) => (row.is_default ? <State tone="quiet" word="default" /> : <State tone="info" word="changed" />), by: (row) => (row.is_default ? 1 : 0) },
    { key: 'default', title: 'Default', width: 200, rank: 3, cell: (row) => <span class="mono" title={row.default ?? undefined}>{row.default ?? '–'}</span>, by: (row) => row.default },
    { key: 'source', title: 'Source', width: 184, rank: 4, cell: (row) => row.source.replace(/_/g, ' ').toLowerCase(), by: (row) => row.source },
  ];
}

export function ConfigTable({ rows, topic }: { rows: ConfigRow[]; topic: string | null }) {
  const search = (query.value.get('search') ?? '').toLowerCase();
  const found = rows.filter((row) => row.name.toLowerCase().includes(search));
  return (
    <>
      <div class="toolbar">
        <SearchField label="Search settings" />
        {topic !== null && whyReadOnly.value !== null && <p class="quiet-line push">{whyReadOnly.value}</p>}
      </div>
      {found.length === 0 ? <Empty title="No setting has this in its name" /> : <List label="Settings" columns={columns(topic)} rows={found} keyOf={(row) => row.name} sortName="sort" />}
    </>
  );
}

/** The metadata quorum: which brokers vote, and how far each is behind. */
import { useResource } from '../api/resource';
import type { Maybe } from '../api/types';
import { duration, exact, integer } from '../lib/format';
import { href, path } from '../lib/place';
import { Section } from '../parts/controls';
import { Waiting } from '../parts/feedback';
import { type Column, List } from '../parts/table';
import { Num } from '../parts/text';

interface Voter {
  id: number;
  lag: Maybe<number>;
  last_contact_ms: Maybe<number>;
}

interface Quorum {
  leader?: Maybe<number>;
  epoch?: number;
  voters?: Voter[];
  observers?: Voter[];
}

interface Row extends Voter {
  role: string;
}

function ago(ms: Maybe<number>): string {
  return ms === null ? '–' : ms < 1000 ? 'now' : `${duration(ms / 1000)} ago`;
}

const COLUMNS: Column<Row>[] = [
  { key: 'id', title: 'Broker', width: 140, grow: true, rank: 0, cell: (row) => <a class="row-link" href={href(path('brokers', row.id))}>Broker {row.id}</a>, by: (row) => row.id },
  { key: 'role', title: 'Role', width: 120, rank: 1, cell: (row) => row.role, by: (row) => row.role },
  { key: 'lag', title: 'Behind', hint: 'Records of metadata behind the leader', width: 120, right: true, rank: 1, line: true, cell: (row) => <Num short={integer(row.lag)} exact={exact(row.lag, 'records')} />, by: (row) => row.lag },
  { key: 'last_contact_ms', title: 'Last contact', width: 120, right: true, rank: 2, line: true, cell: (row) => <Num short={ago(row.last_contact_ms)} exact={exact(row.last_contact_ms, 'ms ago')} />, by: (row) => row.last_contact_ms },
];

export function QuorumSection() {
  const loaded = useResource<Quorum>('/quorum');
  const { voters = [], observers = [], leader, epoch } = loaded.data ?? {};
  const rows: Row[] = [
    ...voters.map((each) => ({ ...each, role: each.id === leader ? 'leader' : 'voter' })),
    ...observers.map((each) => ({ ...each, role: 'observer' })),
  ];
  if (loaded.data && rows.length === 0) return null;
  return (
    <Section title="Metadata quorum" note={epoch !== undefined ? `epoch ${integer(epoch)}` : null}>
      <Waiting of={loaded} rows={3} />
      {rows.length > 0 && <List label="Metadata quorum" columns={COLUMNS} rows={rows} keyOf={(row) => `${row.role} ${row.id}`} sortName="quorum" />}
    </Section>
  );
}

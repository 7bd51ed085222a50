/** The columns of lists of groups. */
import type { GroupRow } from '../api/types';
import { count, duration, eta, exact, integer, rate } from '../lib/format';
import { href, path } from '../lib/place';
import type { Column } from '../parts/table';
import { Name, Num, StatusOf } from '../parts/text';
import { Trend } from '../parts/trend';

export function GroupLink({ name }: { name: string }) {
  return (
    <a class="row-link" href={href(path('groups', name))}>
      <Name text={name} />
    </a>
  );
}

/** Kafka's names of states in words: PreparingRebalance becomes "preparing rebalance". */
export function stateWords(state: string): string {
  return state.replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase();
}

export function seconds(value: number | null): string {
  return value === null ? 'unknown' : exact(value, 'seconds');
}

function etaOf(row: GroupRow) {
  const title = row.eta_s === 'never' ? 'The lag does not fall' : seconds(row.eta_s);
  return <Num short={eta(row.eta_s)} exact={title} />;
}

export const GROUP_COLUMNS: Column<GroupRow>[] = [
  { key: 'name', title: 'Group', width: 200, grow: true, rank: 0, cell: (row) => <GroupLink name={row.name} />, by: (row) => row.name },
  { key: 'status', title: 'Status', width: 104, rank: 1, line: true, cell: (row) => <StatusOf status={row.status} />, by: (row) => row.status },
  { key: 'state', title: 'State', hint: 'Of the group’s membership, in Kafka’s words', width: 144, rank: 7, cell: (row) => stateWords(row.state), by: (row) => row.state },
  { key: 'lag_s', title: 'Lag, time', hint: 'How long ago the oldest record that waits was written', width: 96, right: true, rank: 2, line: true, cell: (row) => <Num short={duration(row.lag_s)} exact={seconds(row.lag_s)} />, by: (row) => row.lag_s },
  { key: 'lag', title: 'Lag, records', width: 112, right: true, rank: 3, line: true, cell: (row) => <Num short={count(row.lag)} exact={exact(row.lag, 'records')} />, by: (row) => row.lag },
  { key: 'lag_trend', title: 'Trend', hint: 'The lag in records at the last samples', width: 104, rank: 4, fixed: true, cell: (row) => <Trend values={row.lag_trend} what="The lag" /> },
  { key: 'eta_s', title: 'Caught up in', hint: 'Lag by the speed at which it falls', width: 112, right: true, rank: 5, line: true, cell: etaOf, by: (row) => (row.eta_s === 'never' ? 1e12 : row.eta_s) },
  { key: 'read_per_s', title: 'Reads', hint: 'How fast its committed offsets advance', width: 96, right: true, rank: 6, cell: (row) => <Num short={rate(row.read_per_s)} exact={exact(row.read_per_s, 'records a second')} />, by: (row) => row.read_per_s },
  { key: 'members', title: 'Members', width: 88, right: true, rank: 8, cell: (row) => <Num short={integer(row.members)} exact={exact(row.members, 'members')} />, by: (row) => row.members },
];

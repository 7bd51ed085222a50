/** Open transactions: those that hang hold back read_committed consumers. */
import { useResource } from '../api/resource';
import type { Page, Transaction } from '../api/types';
import { now } from '../lib/clock';
import { duration, integer, shellWord, utc } from '../lib/format';
import { query, queryOf } from '../lib/place';
import { PageHead, SearchField } from '../parts/controls';
import { Empty, Waiting } from '../parts/feedback';
import { type Column, List } from '../parts/table';
import { Copy, Name, Num, State } from '../parts/text';
import { stateWords } from './group_columns';

function age(row: Transaction) {
  const seconds = row.since_ms === null ? null : Math.max(0, (now.value - row.since_ms) / 1000);
  return <Num short={duration(seconds === null ? null : Math.floor(seconds))} exact={`since ${utc(row.since_ms)}`} />;
}

const COLUMNS: Column<Transaction>[] = [
  { key: 'transactional_id', title: 'Transactional id', width: 200, grow: true, rank: 0, cell: (row) => <span class="with-copy"><Name text={row.transactional_id} /><Copy text={`barnabas txn abort ${shellWord(row.transactional_id)}`} label="Copy the command that ends it" /></span>, by: (row) => row.transactional_id },
  { key: 'hanging', title: 'Verdict', width: 112, rank: 1, line: true, cell: (row) => (row.hanging ? <State tone="critical" word="hanging" title="Open for longer than its timeout" /> : <State tone="good" word="open" />), by: (row) => (row.hanging ? 0 : 1) },
  { key: 'since_ms', title: 'Open for', width: 104, right: true, rank: 2, cell: age, by: (row) => (row.since_ms === null ? null : -row.since_ms) },
  { key: 'state', title: 'State', width: 144, rank: 3, cell: (row) => stateWords(row.state), by: (row) => row.state },
  { key: 'topics', title: 'Topics', width: 240, rank: 4, line: true, cell: (row) => <span title={row.topics.join('\n')}>{row.topics.join(', ')}</span>, by: (row) => row.topics.length },
  { key: 'producer_id', title: 'Producer id', width: 120, right: true, rank: 5, cell: (row) => <span class="mono">{integer(row.producer_id)}</span>, by: (row) => row.producer_id },
];

export function Transactions() {
  const search = query.value.get('search') ?? '';
  const loaded = useResource<Page<Transaction>>(`/transactions${queryOf({ search, limit: 1000 })}`, { keep: true });
  return (
    <>
      <PageHead title="Transactions" />
      <div class="toolbar">
        <SearchField label="Search transactional ids" />
      </div>
      <Waiting of={loaded} />
      {loaded.data?.total === 0 && (search ? <Empty title="No open transaction has this in its id" /> : <Empty title="No transaction is open">Open ones appear here while producers write in them.</Empty>)}
      {loaded.data && loaded.data.total > 0 && <List label="Open transactions" columns={COLUMNS} rows={loaded.data.items} keyOf={(row) => row.transactional_id} sortName="sort" />}
    </>
  );
}

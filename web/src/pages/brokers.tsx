/** All brokers, and the quorum that they form. */
import { useResource } from '../api/resource';
import type { BrokerRow, Page } from '../api/types';
import { PageHead } from '../parts/controls';
import { Empty, Waiting } from '../parts/feedback';
import { List } from '../parts/table';
import { BROKER_COLUMNS } from './broker_columns';
import { QuorumSection } from './quorum';

export function Brokers() {
  const loaded = useResource<Page<BrokerRow>>('/brokers?limit=1000');
  const silent = loaded.data?.items.filter((row) => row.silence) ?? [];
  return (
    <>
      <PageHead title="Brokers" />
      <Waiting of={loaded} rows={3} />
      {silent.map((row) => (
        <div key={row.id} class="note warning">
          <p>
            Broker {row.id}: {row.silence}
          </p>
        </div>
      ))}
      {loaded.data?.total === 0 && <Empty title="No broker answers" command="barnabas serve --data data" />}
      {loaded.data && loaded.data.total > 0 && (
        <List label="Brokers" columns={BROKER_COLUMNS} rows={loaded.data.items} keyOf={(row) => String(row.id)} sortName="sort" />
      )}
      <QuorumSection />
    </>
  );
}

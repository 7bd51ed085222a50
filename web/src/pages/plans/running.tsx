/** Replicas that move now. */
import { useState } from 'preact/hooks';
import { post } from '../../api/client';
import { useResource } from '../../api/resource';
import type { Moving } from '../../api/types';
import { bytes, exact, plural } from '../../lib/format';
import { href, path } from '../../lib/place';
import { ChangeButton, Section } from '../../parts/controls';
import { ChangeDialog, showDialog } from '../../parts/dialog';
import { Waiting } from '../../parts/feedback';
import { type Column, List } from '../../parts/table';
import { Name, Num } from '../../parts/text';

const COLUMNS: Column<Moving>[] = [
  { key: 'topic', title: 'Partition', width: 200, grow: true, rank: 0, cell: (row) => <a class="row-link" href={href(path('topics', row.topic, 'partitions'))}><Name text={`${row.topic}-${row.partition}`} /></a>, by: (row) => `${row.topic}-${row.partition}` },
  { key: 'adding', title: 'To broker', width: 120, rank: 1, cell: (row) => row.adding.join(', ') || '–', by: (row) => row.adding.join() },
  { key: 'removing', title: 'From broker', width: 120, rank: 2, line: true, cell: (row) => row.removing.join(', ') || '–', by: (row) => row.removing.join() },
  { key: 'bytes_left', title: 'Left to copy', width: 120, right: true, rank: 1, line: true, cell: (row) => <Num short={bytes(row.bytes_left)} exact={exact(row.bytes_left, 'bytes')} />, by: (row) => row.bytes_left },
];

function Cancel({ count }: { count: number }) {
  const [scope] = useState<string[]>([]);
  return (
    <ChangeDialog
      title="Cancel all moves"
      danger
      inputs={[]}
      send={() => post('/plans/cancel', { scope })}
      submit="Cancel all moves"
      done={() => 'The moves are cancelled.'}
    >
      <p>{plural(count, 'partition')} {count === 1 ? 'goes' : 'go'} back to the earlier replicas. What has been copied is deleted.</p>
    </ChangeDialog>
  );
}

export function RunningMoves() {
  const loaded = useResource<{ moving: Moving[] }>('/plans/running');
  const moving = loaded.data?.moving ?? [];
  if (loaded.data && moving.length === 0) return <p class="quiet-line">No replica moves now.</p>;
  return (
    <>
      <Waiting of={loaded} rows={2} />
      {moving.length > 0 && (
        <Section title="Moving now" note={plural(moving.length, 'partition')} action={<ChangeButton onClick={() => showDialog(<Cancel count={moving.length} />)}>Cancel all moves</ChangeButton>}>
          <List label="Moving now" columns={COLUMNS} rows={moving} keyOf={(row) => `${row.topic}-${row.partition}`} sortName="sort" />
        </Section>
      )}
    </>
  );
}

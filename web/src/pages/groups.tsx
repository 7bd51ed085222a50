/** All groups. */
import { useResource } from '../api/resource';
import type { GroupRow, GroupStatus, Overview } from '../api/types';
import { query } from '../lib/place';
import { Choices, PageHead, SearchField } from '../parts/controls';
import { Empty } from '../parts/feedback';
import { RemoteList } from '../parts/remote';
import { GROUP_COLUMNS } from './group_columns';

const STATUSES: GroupStatus[] = ['stopped', 'stalled', 'behind', 'rewound', 'ok', 'unknown'];

function None() {
  if (query.value.get('search') || query.value.get('status')) {
    return <Empty title="No group matches">Clear the search, or choose another status.</Empty>;
  }
  return <Empty title="There are no groups yet" command="barnabas consume orders --group billing" />;
}

export function Groups() {
  const { data } = useResource<Overview>('/overview');
  const counts = data?.groups_by_status;
  const shown = STATUSES.filter((status) => !counts || (counts[status] ?? 0) > 0 || query.value.get('status') === status);
  return (
    <>
      <PageHead title="Groups" />
      <div class="toolbar">
        <SearchField label="Search groups" />
        <Choices
          label="Status"
          name="status"
          choices={[
            { value: '', label: 'all' },
            ...shown.map((status) => ({ value: status, label: status, count: counts?.[status] })),
          ]}
        />
      </div>
      <RemoteList<GroupRow>
        label="Groups"
        one="group"
        path="/groups"
        filters={{ search: query.value.get('search') ?? '', status: query.value.get('status') ?? '' }}
        sort="-lag_s"
        columns={GROUP_COLUMNS}
        keyOf={(row) => row.name}
        empty={<None />}
      />
    </>
  );
}

/** All topics. */
import { useEffect } from 'preact/hooks';
import type { TopicRow } from '../api/types';
import { whyReadOnly } from '../api/session';
import { query, setQuery } from '../lib/place';
import { ChangeButton, PageHead, SearchField, Toggle } from '../parts/controls';
import { showDialog } from '../parts/dialog';
import { Empty } from '../parts/feedback';
import { Icon } from '../parts/icons';
import { RemoteList } from '../parts/remote';
import { CreateTopic } from './topic/create';
import { TOPIC_COLUMNS } from './topic_columns';

function None() {
  if (query.value.get('search')) {
    return <Empty title="No topic has this in its name">Clear the search, or show internal topics.</Empty>;
  }
  return <Empty title="There are no topics yet" command="barnabas topic create orders --partitions 6" />;
}

export function Topics() {
  const asked = query.value.get('create') === '1';
  useEffect(() => {
    if (!asked) return;
    setQuery({ create: '' });
    if (whyReadOnly.value === null) showDialog(<CreateTopic />);
  }, [asked]);
  return (
    <>
      <PageHead
        title="Topics"
        actions={
          <ChangeButton onClick={() => showDialog(<CreateTopic />)}>
            <Icon name="plus" /> Create a topic
          </ChangeButton>
        }
      />
      <div class="toolbar">
        <SearchField label="Search topics" />
        <Toggle name="internal" label="Internal topics" />
      </div>
      <RemoteList<TopicRow>
        label="Topics"
        one="topic"
        path="/topics"
        filters={{ search: query.value.get('search') ?? '', internal: query.value.get('internal') ?? '0' }}
        columns={TOPIC_COLUMNS}
        keyOf={(row) => row.name}
        empty={<None />}
      />
    </>
  );
}

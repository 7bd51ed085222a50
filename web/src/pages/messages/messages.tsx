/** Messages of any topic: choose one, then as in the topic's page. */
import { useEffect, useState } from 'preact/hooks';
import { useResource } from '../../api/resource';
import { whyReadOnly } from '../../api/session';
import type { Page, Topic, TopicRow } from '../../api/types';
import { path, query, queryOf, setQuery } from '../../lib/place';
import { ChangeButton, PageHead } from '../../parts/controls';
import { showDialog } from '../../parts/dialog';
import { Empty, Waiting } from '../../parts/feedback';
import { Icon } from '../../parts/icons';
import { Browser } from './browser';
import { Produce } from './produce';

const SUGGESTED = 20;

function TopicField({ topic }: { topic: string }) {
  const [text, setText] = useState(topic);
  useEffect(() => setText(topic), [topic]);
  const { data } = useResource<Page<TopicRow>>(`/topics${queryOf({ search: text, internal: 1, limit: SUGGESTED, sort: text === '' ? '-records_per_s' : 'name' })}`, { live: false, keep: true });
  const choose = (name: string) => name !== topic && setQuery({ topic: name, open: '', partitions: '', from: '' }, { replace: false });
  const take = (name: string) => {
    setText(name);
    if (data?.items.some((row) => row.name === name)) choose(name);
  };
  return (
    <form
      class="search topic-field"
      onSubmit={(event) => {
        event.preventDefault();
        choose(text.trim());
      }}
    >
      <Icon name="topics" />
      <input type="text" aria-label="Topic" placeholder="Topic" list="topic-names" spellcheck={false} autocomplete="off" value={text}
        onInput={(event) => take(event.currentTarget.value)} onChange={() => choose(text.trim())} />
      <datalist id="topic-names">
        {data?.items.map((row) => (
          <option key={row.name} value={row.name} />
        ))}
      </datalist>
    </form>
  );
}

function Chosen({ topic }: { topic: string }) {
  const loaded = useResource<Topic>(path('topics', topic));
  return (
    <>
      <Waiting of={loaded} rows={8} />
      {loaded.data && <Browser key={topic} topic={topic} partitions={loaded.data.partition_list.map((each) => each.number)} />}
    </>
  );
}

export function Messages() {
  const topic = query.value.get('topic') ?? '';
  const asked = query.value.get('produce') === '1';
  const produce = () => showDialog(<Produce {...(topic ? { topic } : {})} />);
  useEffect(() => {
    if (!asked) return;
    setQuery({ produce: '' });
    if (whyReadOnly.value === null) produce();
  }, [asked]);
  return (
    <>
      <PageHead
        title="Messages"
        actions={
          <ChangeButton onClick={produce}>
            <Icon name="plus" /> Produce a message
          </ChangeButton>
        }
      />
      <div class="toolbar">
        <TopicField topic={topic} />
      </div>
      {topic === '' ? <Empty title="Choose a topic to see its messages">Type a part of its name above.</Empty> : <Chosen topic={topic} />}
    </>
  );
}

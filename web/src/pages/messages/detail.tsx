/** One message in full, beside the list. */
import { useEffect, useState } from 'preact/hooks';
import { useResource } from '../../api/resource';
import type { Content, Message } from '../../api/types';
import { bytes, exact, integer, time, utc } from '../../lib/format';
import { href, path, query, queryOf, setQuery } from '../../lib/place';
import { ChangeButton, Choices } from '../../parts/controls';
import { showDialog } from '../../parts/dialog';
import { Waiting } from '../../parts/feedback';
import { Icon } from '../../parts/icons';
import { Copy, Name } from '../../parts/text';
import { Body, sizeOf } from './content';
import { Produce, Replay } from './produce';

const VIEWS = [
  { value: '', label: 'auto' },
  { value: 'json', label: 'JSON' },
  { value: 'text', label: 'text' },
  { value: 'avro', label: 'Avro' },
  { value: 'hex', label: 'hex' },
];

function Part({ title, content }: { title: string; content: Content }) {
  return (
    <section class="part">
      <header>
        <h3>{title}</h3>
        <span class="quiet-line">
          {content.encoding !== 'null' && `${content.encoding}, ${sizeOf(content)}`}
        </span>
        {content.text && <Copy text={content.text} label={`Copy the ${title.toLowerCase()}`} />}
      </header>
      <Body content={content} />
    </section>
  );
}

function Headers({ headers }: { headers: Message['headers'] }) {
  if (headers.length === 0) return null;
  return (
    <section class="part">
      <header>
        <h3>Headers</h3>
        <span class="quiet-line">{integer(headers.length)}</span>
      </header>
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Value</th>
          </tr>
        </thead>
        <tbody>
          {headers.map(({ name, value }, at) => (
            <tr key={at}>
              <td class="mono">{name}</td>
              <td class="mono">{value.encoding === 'null' ? <span class="null">null</span> : value.text}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Facts({ message }: { message: Message }) {
  return (
    <dl class="pairs">
      <div>
        <dt>Time</dt>
        <dd title={utc(message.timestamp_ms)}>
          {time(message.timestamp_ms)} <span class="quiet-line">{message.timestamp_type.replace(/_/g, ' ').toLowerCase()}</span>
        </dd>
      </div>
      <div>
        <dt>Size</dt>
        <dd title={exact(message.size_bytes, 'bytes')}>{bytes(message.size_bytes)}</dd>
      </div>
      <div>
        <dt>Leader epoch</dt>
        <dd>{integer(message.leader_epoch)}</dd>
      </div>
    </dl>
  );
}

function useEscape(close: () => void): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key === 'Escape' && !document.querySelector('dialog[open]')) close();
    };
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, []);
}

export function Detail({ topic, place }: { topic: string; place: string }) {
  const [partition = '0', offset = '0'] = place.split(':');
  const [wide, setWide] = useState(false);
  const view = query.value.get('view');
  const loaded = useResource<Message>(
    `/messages/one${queryOf({ topic, partition, offset, view })}`,
    { live: false, keep: true },
  );
  const close = () => setQuery({ open: '' });
  useEscape(close);
  const message = loaded.data;
  return (
    <aside class={wide ? 'detail wide' : 'detail'} aria-label={`Message ${offset} of partition ${partition}`}>
      <header class="detail-head">
        <h2>
          <a href={href(path('topics', topic))}><Name text={topic} /></a>
          <span class="mono">
            {partition}:{offset}
          </span>
        </h2>
        <button class="icon-button widen" type="button" aria-label={wide ? 'Make narrower' : 'Make wider'} onClick={() => setWide(!wide)}>
          <Icon name="transactions" />
        </button>
        <button class="icon-button" type="button" aria-label="Close the message" onClick={close}>
          <Icon name="close" />
        </button>
      </header>
      <div class="detail-body">
        <Waiting of={loaded} rows={6} />
        {message && (
          <>
            <Facts message={message} />
            <div class="toolbar">
              <Choices label="View" name="view" choices={VIEWS} />
            </div>
            <Part title="Key" content={message.key} />
            <Part title="Value" content={message.value} />
            <Headers headers={message.headers} />
            <div class="actions">
              <ChangeButton onClick={() => showDialog(<Replay message={message} />)}>Replay</ChangeButton>
              <ChangeButton onClick={() => showDialog(<Produce topic={topic} like={message} />)}>Produce a similar one</ChangeButton>
              <a class="button" href={href(`/api/messages/export${queryOf({ topic, partitions: partition, from: offset, until: Number(offset) + 1, format: 'jsonl' })}`)} download>
                <Icon name="download" /> JSONL
              </a>
            </div>
          </>
        )}
      </div>
    </aside>
  );
}

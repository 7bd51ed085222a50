/** Writes messages: a new one, or one that is there once more. */
import { useState } from 'preact/hooks';
import { post } from '../../api/client';
import type { Message } from '../../api/types';
import { integer } from '../../lib/format';
import { Field } from '../../parts/controls';
import { ChangeDialog } from '../../parts/dialog';

interface Stored {
  partition: number;
  offset: number;
}

const ENCODINGS = [
  ['text', 'text'],
  ['json', 'JSON'],
  ['base64', 'base64'],
  ['hex', 'hex'],
] as const;

type Encoding = (typeof ENCODINGS)[number][0];

/** One header a line: `trace=abc`. */
function headersOf(text: string): { name: string; value: string }[] {
  return text
    .split('\n')
    .filter((line) => line.includes('='))
    .map((line) => ({ name: line.slice(0, line.indexOf('=')).trim(), value: line.slice(line.indexOf('=') + 1) }));
}

/** A message that is no text is prefilled in base64, exact to the byte. */
function prefilled(like: Message | undefined) {
  if (!like) return { key: '', value: '', headers: '', encoding: 'text' as Encoding };
  const parts = [like.key, like.value, ...like.headers.map(({ value }) => value)];
  const isText = parts.every((part) => ['text', 'json', 'null'].includes(part.encoding) && !part.truncated);
  const pick = (part: Message['key']) => (isText ? part.text : part.bytes_base64) ?? '';
  return {
    key: pick(like.key),
    value: pick(like.value),
    headers: like.headers.map(({ name, value }) => `${name}=${pick(value)}`).join('\n'),
    encoding: (isText ? 'text' : 'base64') as Encoding,
  };
}

export function Produce({ topic: known, like }: { topic?: string; like?: Message }) {
  const start = prefilled(like);
  const [topic, setTopic] = useState(known ?? '');
  const [partition, setPartition] = useState('');
  const [encoding, setEncoding] = useState<Encoding>(start.encoding);
  const [key, setKey] = useState(start.key);
  const [value, setValue] = useState(start.value);
  const [headers, setHeaders] = useState(start.headers);
  const [noValue, setNoValue] = useState(like?.value.encoding === 'null');
  const body = {
    topic,
    partition: partition === '' ? null : Number(partition),
    key: key === '' ? null : key,
    value: noValue ? null : value,
    headers: headersOf(headers),
    encoding,
  };
  return (
    <ChangeDialog<Stored>
      title="Produce a message"
      wide
      inputs={[]}
      send={() => post('/messages', body)}
      submit="Produce"
      off={topic === ''}
      done={(stored) => `Written to ${topic}-${stored.partition} at offset ${integer(stored.offset)}.`}
    >
      <div class="fields">
        <Field label="Topic" value={topic} autofocus={!known} onInput={(event) => setTopic(event.currentTarget.value)} />
        <Field label="Partition" inputMode="numeric" placeholder="by key" value={partition} onInput={(event) => setPartition(event.currentTarget.value)} />
        <Field label="Key" value={key} class="mono" placeholder="none" autofocus={known !== undefined} onInput={(event) => setKey(event.currentTarget.value)} />
        <Field label="Key, value and headers are">
          <select value={encoding} onChange={(event) => setEncoding(event.currentTarget.value as Encoding)}>
            {ENCODINGS.map(([name, label]) => (
              <option key={name} value={name}>
                {label}
              </option>
            ))}
          </select>
        </Field>
      </div>
      <Field label="Value">
        <textarea rows={8} spellcheck={false} disabled={noValue} value={value} onInput={(event) => setValue(event.currentTarget.value)} />
      </Field>
      <label class="toggle">
        <input type="checkbox" checked={noValue} onChange={(event) => setNoValue(event.currentTarget.checked)} />
        null value: in a compacted topic it deletes the key
      </label>
      <Field label="Headers" hint="One a line: name=value">
        <textarea rows={2} spellcheck={false} value={headers} onInput={(event) => setHeaders(event.currentTarget.value)} />
      </Field>
    </ChangeDialog>
  );
}

export function Replay({ message }: { message: Message }) {
  const [topic, setTopic] = useState(message.topic);
  const [partition, setPartition] = useState('');
  const from = { topic: message.topic, partition: message.partition, offset: message.offset };
  const to = { topic, partition: partition === '' ? null : Number(partition) };
  return (
    <ChangeDialog<Stored>
      title={`Replay message ${message.partition}:${integer(message.offset)}`}
      inputs={[]}
      send={() => post('/messages/replay', { from, to })}
      submit="Replay"
      off={topic === ''}
      done={(stored) => `Written to ${topic}-${stored.partition} at offset ${integer(stored.offset)}.`}
    >
      <p>Key, value and headers are written again, byte for byte, as a new message.</p>
      <div class="fields">
        <Field label="To topic" value={topic} autofocus onInput={(event) => setTopic(event.currentTarget.value)} />
        <Field label="Partition" inputMode="numeric" placeholder="by key" value={partition} onInput={(event) => setPartition(event.currentTarget.value)} />
      </div>
    </ChangeDialog>
  );
}

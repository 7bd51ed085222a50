/** Moves a group's committed offsets: first what would change, then the change. */
import { useState } from 'preact/hooks';
import { post } from '../api/client';
import type { Group, OffsetChange } from '../api/types';
import { integer, plural } from '../lib/format';
import { path } from '../lib/place';
import { Field } from '../parts/controls';
import { ChangeDialog } from '../parts/dialog';
import { Name } from '../parts/text';

const TARGETS: [value: string, label: string, hint: string, example: string][] = [
  ['beginning', 'the beginning', '', ''],
  ['end', 'the end', '', ''],
  ['time', 'a time', 'A date and time, or a span before now such as -1h.', '-1h'],
  ['offset', 'an offset', 'The same offset in each partition.', '1000'],
  ['shift', 'by a number of records', 'Forward with +, back with -.', '-100'],
];

function signed(value: number | null): string {
  if (value === null) return '–';
  return value > 0 ? `+${integer(value)}` : integer(value);
}

interface Reset {
  changes: OffsetChange[];
  applied: boolean;
  warnings?: string[];
}

function Changes({ changes }: { changes: OffsetChange[] }) {
  if (changes.length === 0) return <p>No offset changes.</p>;
  return (
    <table class="plain">
      <thead>
        <tr>
          <th scope="col">Partition</th>
          <th scope="col" class="n">Before</th>
          <th scope="col" class="n">After</th>
          <th scope="col" class="n">Change</th>
        </tr>
      </thead>
      <tbody>
        {changes.map((each) => (
          <tr key={`${each.topic}-${each.partition}`}>
            <td><Name text={`${each.topic}-${each.partition}`} /></td>
            <td class="n mono">{integer(each.before)}</td>
            <td class="n mono">{integer(each.after)}</td>
            <td class="n mono">{signed(each.change)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function ResetOffsets({ group }: { group: Group }) {
  const topics = [...new Set(group.partition_list.map((each) => each.topic))].sort();
  const [target, setTarget] = useState('beginning');
  const [value, setValue] = useState('');
  const [topic, setTopic] = useState('');
  const [, , hint, example] = TARGETS.find(([name]) => name === target) ?? ['', '', '', ''];
  const to = hint === '' ? target : value.trim();
  return (
    <ChangeDialog<Reset>
      title={`Reset offsets of ${group.name}`}
      wide
      inputs={[to, topic]}
      send={(dryRun) => post(path('groups', group.name, 'reset'), { to, topics: topic === '' ? topics : [topic], dry_run: dryRun })}
      preview={({ changes, warnings }) => (
        <>
          {warnings?.map((warning) => (
            <div key={warning} class="note warning">
              <p>{warning}</p>
            </div>
          ))}
          <Changes changes={changes} />
        </>
      )}
      submit="Reset offsets"
      off={to === ''}
      done={({ changes }) => `${plural(changes.length, 'offset')} of ${group.name} changed.`}
    >
      <div class="fields">
        <Field label="To">
          <select value={target} onChange={(event) => setTarget(event.currentTarget.value)}>
            {TARGETS.map(([name, label]) => (
              <option key={name} value={name}>
                {label}
              </option>
            ))}
          </select>
        </Field>
        <Field label="Topics">
          <select value={topic} onChange={(event) => setTopic(event.currentTarget.value)}>
            <option value="">all {topics.length} of the group</option>
            {topics.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </Field>
      </div>
      {hint && <Field label="Which" value={value} placeholder={example} hint={hint} onInput={(event) => setValue(event.currentTarget.value)} />}
    </ChangeDialog>
  );
}

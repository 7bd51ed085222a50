/** What can be changed in a topic: more partitions, deleted records, the topic itself, its settings. */
import { useState } from 'preact/hooks';
import { change, post } from '../../api/client';
import type { ConfigRow, Topic } from '../../api/types';
import { integer, plural } from '../../lib/format';
import { go, path } from '../../lib/place';
import { Field } from '../../parts/controls';
import { ChangeDialog } from '../../parts/dialog';

const api = (name: string, ...rest: string[]) => path('topics', name, ...rest);

export function AddPartitions({ topic }: { topic: Topic }) {
  const [total, setTotal] = useState(String(topic.partitions + 1));
  return (
    <ChangeDialog
      title={`Add partitions to ${topic.name}`}
      inputs={[total]}
      send={(dryRun) => post(api(topic.name, 'partitions'), { count: Number(total), dry_run: dryRun })}
      preview={() => (
        <p>
          {plural(topic.partitions, 'partition')} become {integer(Number(total))}. Keys are spread anew: records of one
          key may be in two partitions.
        </p>
      )}
      submit="Add partitions"
      off={Number(total) <= topic.partitions}
      done={() => `${topic.name} has ${total} partitions.`}
    >
      <Field label="Partitions in all" type="number" min={topic.partitions + 1} value={total} autofocus onInput={(event) => setTotal(event.currentTarget.value)} />
    </ChangeDialog>
  );
}

/** Offsets by partition; the whole topic, or one partition below an offset. */
function beforeOf(topic: Topic, partition: string, offset: string): Record<string, number> {
  if (partition !== '') return { [partition]: Number(offset) };
  return Object.fromEntries(topic.partition_list.map((each) => [each.number, each.end ?? -1]));
}

export function DeleteRecords({ topic }: { topic: Topic }) {
  const [partition, setPartition] = useState('');
  const [offset, setOffset] = useState('');
  return (
    <ChangeDialog<{ deleted: Record<string, number> }>
      title={`Delete records of ${topic.name}`}
      danger
      inputs={[partition, offset]}
      send={(dryRun) => post(api(topic.name, 'trim'), { before: beforeOf(topic, partition, offset), dry_run: dryRun })}
      preview={({ deleted }) => (
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">Partition</th>
              <th scope="col" class="n">Records to delete</th>
            </tr>
          </thead>
          <tbody>
            {Object.entries(deleted).map(([number, records]) => (
              <tr key={number}>
                <td>{number}</td>
                <td class="n">{integer(records)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      submit="Delete the records"
      off={partition !== '' && !/^\d+$/.test(offset)}
      done={({ deleted }) => `${plural(Object.values(deleted).reduce((a, b) => a + b, 0), 'record')} deleted from ${topic.name}.`}
    >
      <Field label="Partition">
        <select value={partition} onChange={(event) => setPartition(event.currentTarget.value)}>
          <option value="">all, up to their ends</option>
          {topic.partition_list.map((each) => (
            <option key={each.number} value={String(each.number)}>
              {each.number}: {integer(each.start)} to {integer(each.end)}
            </option>
          ))}
        </select>
      </Field>
      {partition !== '' && <Field label="Below offset" inputMode="numeric" value={offset} onInput={(event) => setOffset(event.currentTarget.value)} />}
    </ChangeDialog>
  );
}

/** Deletes something after its name has been typed again. */
export function DeleteNamed(props: { what: 'topic' | 'group'; name: string; warning: string; back: string }) {
  const [typed, setTyped] = useState('');
  return (
    <ChangeDialog
      title={`Delete the ${props.what} ${props.name}`}
      danger
      inputs={[typed]}
      send={() => change('DELETE', path(`${props.what}s`, props.name), { confirm: typed })}
      submit={`Delete the ${props.what}`}
      off={typed !== props.name}
      done={() => `The ${props.what} ${props.name} is deleted.`}
      then={() => go(props.back)}
    >
      <p>{props.warning}</p>
      <Field label={`Type the name of the ${props.what}`} autofocus value={typed} onInput={(event) => setTyped(event.currentTarget.value)} hint={props.name} />
    </ChangeDialog>
  );
}

interface ConfigChanges {
  changes: { name: string; before: string | null; after: string | null }[];
}

export function EditConfig({ topic, row }: { topic: string; row: ConfigRow }) {
  const [value, setValue] = useState(row.value ?? '');
  const [toDefault, setToDefault] = useState(false);
  const body = toDefault ? { set: {}, delete: [row.name] } : { set: { [row.name]: value }, delete: [] };
  return (
    <ChangeDialog<ConfigChanges>
      title={row.name}
      inputs={[value, toDefault]}
      send={(dryRun) => post(api(topic, 'configs'), { ...body, dry_run: dryRun })}
      preview={({ changes }) => (
        <ul>
          {changes.length === 0 && <li>Nothing changes.</li>}
          {changes.map((each) => (
            <li key={each.name} class="mono breakable">
              {each.before ?? 'default'} → {each.after ?? 'default'}
            </li>
          ))}
        </ul>
      )}
      submit="Change"
      done={() => `${row.name} of ${topic} is changed.`}
    >
      {row.documentation && <p>{row.documentation}</p>}
      <Field label="Value" value={value} disabled={toDefault} autofocus onInput={(event) => setValue(event.currentTarget.value)} hint={`Default: ${row.default ?? 'unknown'}`} />
      <label class="toggle">
        <input type="checkbox" checked={toDefault} onChange={(event) => setToDefault(event.currentTarget.checked)} />
        Back to the default
      </label>
    </ChangeDialog>
  );
}

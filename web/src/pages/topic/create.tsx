/** Creates a topic. */
import { useState } from 'preact/hooks';
import { post } from '../../api/client';
import { plural } from '../../lib/format';
import { go, path } from '../../lib/place';
import { Field } from '../../parts/controls';
import { ChangeDialog } from '../../parts/dialog';

/** One config a line: `retention.ms=86400000`. */
export function configsOf(text: string): Record<string, string> {
  const lines = text.split('\n').map((line) => line.trim());
  return Object.fromEntries(
    lines
      .filter((line) => line.includes('='))
      .map((line) => [line.slice(0, line.indexOf('=')).trim(), line.slice(line.indexOf('=') + 1).trim()]),
  );
}

export function CreateTopic() {
  const [name, setName] = useState('');
  const [partitions, setPartitions] = useState('6');
  const [copies, setCopies] = useState('3');
  const [configs, setConfigs] = useState('');
  const body = {
    name,
    partitions: Number(partitions),
    replication_factor: Number(copies),
    configs: configsOf(configs),
  };
  return (
    <ChangeDialog
      title="Create a topic"
      inputs={[name, partitions, copies, configs]}
      send={(dryRun) => post('/topics', { ...body, dry_run: dryRun })}
      preview={() => (
        <p>
          The cluster accepts <b class="breakable">{name}</b> with {plural(body.partitions, 'partition')} and{' '}
          {plural(body.replication_factor, 'copy', 'copies')} of each.
        </p>
      )}
      submit="Create"
      off={name === ''}
      done={() => `Topic ${name} is created.`}
      then={() => go(path('topics', name, 'partitions'))}
    >
      <Field label="Name" value={name} autofocus maxLength={249} onInput={(event) => setName(event.currentTarget.value)} hint="Letters, digits, dots, dashes and underscores." />
      <div class="fields">
        <Field label="Partitions" type="number" min={1} value={partitions} onInput={(event) => setPartitions(event.currentTarget.value)} />
        <Field label="Replication factor" type="number" min={1} value={copies} onInput={(event) => setCopies(event.currentTarget.value)} />
      </div>
      <Field label="Settings" hint="One a line; what is not named keeps its default.">
        <textarea rows={3} spellcheck={false} placeholder="retention.ms=86400000" value={configs} onInput={(event) => setConfigs(event.currentTarget.value)} />
      </Field>
    </ChangeDialog>
  );
}

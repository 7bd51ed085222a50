/** Moves of replicas and leaders: the plan as a picture first, then the change. */
import { useState } from 'preact/hooks';
import { Problem, post, problemText } from '../../api/client';
import { refreshAll } from '../../api/resource';
import type { Maybe, Move, Plan } from '../../api/types';
import { bytes, exact, integer, plural } from '../../lib/format';
import { href, path, query } from '../../lib/place';
import { ChangeButton, Choices, Field, PageHead, Section } from '../../parts/controls';
import { ChangeDialog, showDialog } from '../../parts/dialog';
import { Empty, ProblemNote } from '../../parts/feedback';
import { type Column, List } from '../../parts/table';
import { Ids, Name, Num } from '../../parts/text';
import { BrokerTotals, FlowPicture } from './picture';
import { RunningMoves } from './running';

interface Election {
  topic: string;
  partition: number;
  before: Maybe<number>;
  after: Maybe<number>;
}

type Answer = Partial<Omit<Plan, 'changes'>> & { changes: (Move | Election)[] };
type Kind = 'balance' | 'reassign' | 'elect';

const KINDS: { value: Kind; label: string }[] = [
  { value: 'balance', label: 'Balance' },
  { value: 'reassign', label: 'Reassign' },
  { value: 'elect', label: 'Elect leaders' },
];
const MEANINGS: Record<Kind, string> = {
  balance: 'Spreads replicas and leaders evenly over the brokers, with as few moves as possible.',
  reassign: 'Gives partitions the replicas that you name. The first replica is the preferred leader.',
  elect: 'Makes the first replica of each partition its leader again. No data is copied.',
};

function scopesOf(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean);
}

/** One partition a line: `orders-0: 1, 2, 3`. */
export function changesOf(text: string): Record<string, number[]> {
  const found: Record<string, number[]> = {};
  for (const line of text.split('\n')) {
    const match = /^\s*(\S+-\d+)\s*[:=]\s*(.+)$/.exec(line);
    const ids = match?.[2]?.split(/[\s,]+/).filter(Boolean).map(Number) ?? [];
    if (match?.[1] && ids.every(Number.isInteger)) found[match[1]] = ids;
  }
  return found;
}

const asList = (value: number[] | Maybe<number>): number[] => (Array.isArray(value) ? value : value === null ? [] : [value]);

function isMove(change: Move | Election): change is Move {
  return Array.isArray(change.before);
}

const COLUMNS: Column<Move | Election>[] = [
  { key: 'topic', title: 'Partition', width: 200, grow: true, rank: 0, cell: (row) => <a class="row-link" href={href(path('topics', row.topic, 'partitions'))}><Name text={`${row.topic}-${row.partition}`} /></a>, by: (row) => `${row.topic}-${row.partition}` },
  { key: 'before', title: 'Before', width: 136, rank: 2, line: true, fixed: true, cell: (row) => <Ids ids={asList(row.before)} /> },
  { key: 'after', title: 'After', width: 136, rank: 1, line: true, fixed: true, cell: (row) => <AfterIds row={row} /> },
  { key: 'bytes', title: 'To copy', width: 112, right: true, rank: 2, line: true, cell: (row) => (isMove(row) ? <Num short={bytes(row.bytes)} exact={exact(row.bytes, 'bytes')} /> : <span class="zero">0 B</span>), by: (row) => (isMove(row) ? row.bytes : 0) },
];

function AfterIds({ row }: { row: Move | Election }) {
  const before = asList(row.before);
  return (
    <span class="ids">
      {asList(row.after).map((id) => (
        <span key={id} class={before.includes(id) ? 'id' : 'id added'}>
          {id}
          {!before.includes(id) && <span class="unseen"> (added)</span>}
        </span>
      ))}
    </span>
  );
}

function verb(count: number, many: string): string {
  if (count !== 1) return many;
  return many === 'have' ? 'has' : `${many}s`;
}

interface RunProps {
  kind: Kind;
  body: Record<string, unknown>;
  plan: Answer;
  /** The plan is carried out: it is no longer a plan. */
  done: () => void;
}

function Run({ kind, body, plan, done }: RunProps) {
  return (
    <ChangeDialog<Answer>
      title={kind === 'elect' ? 'Elect leaders' : 'Move replicas'}
      inputs={[]}
      send={() => post(`/plans/${kind}`, { ...body, dry_run: false })}
      submit={kind === 'elect' ? 'Elect' : 'Begin to move'}
      done={({ changes: { length } }) => `${plural(length, 'partition')} ${kind === 'elect' ? verb(length, 'have') : verb(length, 'begin')} ${kind === 'elect' ? 'the preferred leader now' : 'to move'}.`}
      then={done}
    >
      <p>
        {plural(plan.changes.length, 'partition')} {verb(plan.changes.length, 'change')}
        {kind !== 'elect' && <>, {bytes(plan.bytes_to_move)} are copied between brokers. Moves can be cancelled</>}.
      </p>
    </ChangeDialog>
  );
}

function PlanPicture({ kind, plan, body, done }: RunProps) {
  const moves = plan.changes.filter(isMove);
  if (plan.changes.length === 0) {
    return <Empty title="Nothing has to move">{kind === 'elect' ? 'Each partition is led by its first replica.' : 'The placement is as it should be.'}</Empty>;
  }
  return (
    <Section
      title="The plan"
      note={`${plural(plan.changes.length, 'partition')}${kind === 'elect' ? '' : `, ${bytes(plan.bytes_to_move)} to copy`}`}
      action={<ChangeButton tone="primary" onClick={() => showDialog(<Run kind={kind} body={body} plan={plan} done={done} />)}>{kind === 'elect' ? 'Elect' : 'Run the plan'}</ChangeButton>}
    >
      {moves.length > 0 && (
        <div class="plan-picture">
          <FlowPicture changes={moves} />
          {plan.brokers && <BrokerTotals brokers={plan.brokers} />}
        </div>
      )}
      <List label="Changes" columns={COLUMNS} rows={plan.changes} keyOf={(row) => `${row.topic}-${row.partition}`} sortName="changes" />
    </Section>
  );
}

/** A plan asks the brokers, so it is made when the button is pressed. A dry run is not a change, and yet needs the right to one. */
function Planner({ kind }: { kind: Kind }) {
  const [text, setText] = useState('');
  const [plan, setPlan] = useState<{ answer: Answer; body: Record<string, unknown> } | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const body = kind === 'reassign' ? { changes: changesOf(text) } : { scope: scopesOf(text) };
  const count = kind === 'reassign' ? Object.keys(changesOf(text)).length : 1;
  const make = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      setPlan({ answer: await post<Answer>(`/plans/${kind}`, { ...body, dry_run: true }), body });
      refreshAll();
    } catch (error) {
      setPlan(null);
      setProblem(error instanceof Problem ? error.message : problemText(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <form class="planner" onSubmit={make}>
        <p>{MEANINGS[kind]}</p>
        {kind === 'reassign' ? (
          <Field label="Partitions and their replicas" hint={`One a line. ${integer(count)} understood.`}>
            <textarea rows={4} class="mono" placeholder="orders-0: 1, 2, 3" spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value)} />
          </Field>
        ) : (
          <Field label="Topics or partitions" placeholder="all" value={text} hint="Names such as orders, or orders-0; empty is all." onInput={(event) => setText(event.currentTarget.value)} />
        )}
        <button class="button" type="submit" disabled={busy || count === 0}>
          {busy ? 'Planning …' : 'Show the plan'}
        </button>
      </form>
      {problem && <ProblemNote text={problem} />}
      {plan && <PlanPicture kind={kind} plan={plan.answer} body={plan.body} done={() => setPlan(null)} />}
    </>
  );
}

export function Plans() {
  const kind = (query.value.get('kind') ?? 'balance') as Kind;
  const known = KINDS.some(({ value }) => value === kind) ? kind : 'balance';
  return (
    <>
      <PageHead title="Plans" />
      <RunningMoves />
      <div class="toolbar after-charts">
        <Choices label="Kind" name="kind" choices={KINDS} />
      </div>
      <Planner key={known} kind={known} />
    </>
  );
}

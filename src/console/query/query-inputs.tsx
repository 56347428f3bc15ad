import type { Collection } from '../collection.js';
import { JsonEditor } from '../parts/json-editor.js';

interface InputProps {
  collection: Collection;
  text: string;
  /** What the editor begins with. */
  shown: string;
  isBusy: boolean;
  onText: (text: string) => void;
  onRun: () => void;
  onExplain: () => void;
  /** Puts another text in place of what is typed. */
  onReplace: (text: string) => void;
}

/** The query string of a list. */
export function ListInput(props: InputProps) {
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        props.onRun();
      }}
    >
      <label class="query-line">
        Query string of a list
        <textarea
          rows={3}
          spellcheck={false}
          value={props.text}
          placeholder={example(props.collection)}
          onInput={(event) => props.onText(event.currentTarget.value)}
          onKeyDown={(event) => isRunKey(event) && props.onRun()}
        />
        <span class="hint">Such as {example(props.collection)}. One a line is fine, and so is a pasted address.</span>
      </label>
      <Buttons {...props} problem={null} />
    </form>
  );
}

function example({ fields }: Collection): string {
  const counted = fields.find(({ type }) => type === 'Number')?.name;
  return counted === undefined ? 'sort=-createdAt&limit=20' : `${counted}_gte=10&sort=-${counted}&limit=20`;
}

/** Stages of a pipeline as JSON. */
export function PipelineInput(props: InputProps) {
  const { collection, text, shown, onText, onReplace, onRun } = props;
  const problem = problemOf(text);
  return (
    <div class="pipeline" onKeyDown={(event) => problem === null && isRunKey(event) && onRun()}>
      <div class="row">
        <label>
          Add a stage
          <select
            value=""
            disabled={problem !== null}
            onChange={({ currentTarget }) => {
              const stages = [...(JSON.parse(text) as unknown[]), stageOf(currentTarget.value, collection)];
              onReplace(`[\n${stages.map((stage) => `  ${JSON.stringify(stage)}`).join(',\n')}\n]`);
              currentTarget.value = '';
            }}
          >
            <option value="">Choose…</option>
            {STAGES.map((stage) => (
              <option key={stage}>{stage}</option>
            ))}
          </select>
        </label>
      </div>
      <JsonEditor text={shown} label="Pipeline as JSON" onChange={onText} />
      {problem !== null && <p class="bad">{problem}</p>}
      <Buttons {...props} problem={problem} />
    </div>
  );
}

const STAGES = ['$match', '$group', '$sort', '$project', '$lookup', '$unwind', '$count', '$limit', '$skip'] as const;

/** A stage as a beginning, of the collection's own fields. */
function stageOf(stage: string, { fields }: Collection): object {
  const named = fields[0]?.name ?? '_id';
  const counted = fields.find(({ type }) => type === 'Number')?.name;
  const grouped = fields.find((field) => field.enum || field.type === 'Ref')?.name ?? named;
  const ref = fields.find((field) => field.ref !== undefined);
  const begun: Record<string, unknown> = {
    $match: counted === undefined ? { [named]: { $exists: true } } : { [counted]: { $gte: 0 } },
    $group: {
      _id: `$${grouped}`,
      count: { $sum: 1 },
      ...(counted !== undefined && { [`${counted}Average`]: { $avg: `$${counted}` } }),
    },
    $sort: { [counted ?? named]: -1 },
    $project: { [named]: 1 },
    $lookup: {
      from: ref?.ref ?? 'other',
      localField: ref?.name ?? named,
      foreignField: '_id',
      as: `${ref?.name ?? named}Found`,
    },
    $unwind: `$${fields.find(({ type }) => type === 'Array')?.name ?? named}`,
    $count: 'count',
    $limit: 20,
    $skip: 20,
  };
  return { [stage]: begun[stage] };
}

function problemOf(text: string): string | null {
  try {
    return Array.isArray(JSON.parse(text)) ? null : 'A pipeline is an array of stages.';
  } catch (error) {
    return `This is not JSON: ${(error as Error).message}`;
  }
}

/** Ctrl-Enter. */
function isRunKey(event: KeyboardEvent): boolean {
  const isRun = event.key === 'Enter' && (event.ctrlKey || event.metaKey);
  if (isRun) event.preventDefault();
  return isRun;
}

function Buttons({ isBusy, problem, onRun, onExplain }: InputProps & { problem: string | null }) {
  return (
    <p class="row">
      <button class="primary" type="button" disabled={isBusy || problem !== null} onClick={onRun}>
        Run
      </button>
      <button type="button" disabled={isBusy || problem !== null} onClick={onExplain}>
        Explain
      </button>
      <span class="muted keys">
        <kbd>Ctrl</kbd> <kbd>Enter</kbd> runs it
      </span>
    </p>
  );
}

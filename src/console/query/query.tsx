import { useEffect, useRef, useState } from 'preact/hooks';
import { below, withQuery } from '../api-paths.js';
import type { ApiSchemas } from '../api-routes.js';
import { type Refusal, call, refusalOf, addressOf } from '../api.js';
import {
  USERS,
  type Collection,
  type CollectionsPath,
  documentsIn,
  type DocumentsPath,
  type CollectionField,
} from '../collection.js';
import { CellValue } from '../documents/grid/cell-value.js';
import { useDraft } from '../drafts.js';
import { howMany, number } from '../format.js';
import { quoteShell } from '../../exchange/shell-word.js';
import { readJson } from '../json.js';
import { useLoad } from '../load.js';
import { ErrorNote, Copy } from '../parts/basics.js';
import { NameChoice } from '../parts/form.js';
import { loadEditor, JsonEditor } from '../parts/json-editor.js';
import { Empty, PageHead, Tabs } from '../parts/page-head.js';
import { Table } from '../parts/table.js';
import { goTo, linkHere, linkTo, place } from '../routes.js';
import { projectPath, project } from '../session.js';
import { clientCall, queryOptions } from './list-samples.js';

/** Lists and pipelines tried on stored documents, and what an app writes for the same. */
export function Query() {
  const { parts, query } = place.value;
  const [, id = ''] = parts;
  const base = below(projectPath(), '/collections');
  const list = useLoad(base);
  const listed = list.data?.items.filter(({ name }) => name !== USERS) ?? [];
  const wanted = query.get('of');
  const collection = wanted === null ? listed[0] : listed.find(({ name }) => name === wanted);
  const kind: QueryKind = query.get('as') === 'pipeline' ? 'pipeline' : 'list';
  useEffect(() => void (kind === 'pipeline' && loadEditor()), [kind]);
  return (
    <>
      <PageHead title="Query">
        {listed.length > 0 && (
          <NameChoice
            label="Collection"
            value={collection?.name}
            names={listed.map(({ name }) => [name, name])}
            unchosen="Choose a collection"
            onChange={(value) => goTo(linkHere({ of: value, q: null }))}
          />
        )}
      </PageHead>
      <ErrorNote error={list.error} onRetry={list.reload} />
      {list.data && listed.length === 0 && (
        <Empty title="No collections yet">
          <a href={linkTo(['p', id, 'collections'], { new: '1' })}>Create your first collection</a>
        </Empty>
      )}
      {list.data && wanted !== null && !collection && <p class="empty">There is no collection {wanted}.</p>}
      {collection && (
        <>
          <Tabs
            label="Kinds of queries"
            current={kind}
            tabs={[
              ['list', 'List', linkHere({ as: null, q: null })],
              ['pipeline', 'Pipeline', linkHere({ as: 'pipeline', q: null })],
            ]}
          />
          <OneQuery key={`${collection.name} ${kind}`} kind={kind} base={base} collection={collection} />
        </>
      )}
    </>
  );
}

const FIRST: Record<QueryKind, string> = {
  list: 'limit=20',
  pipeline: '[\n  { "$match": {} },\n  { "$limit": 20 }\n]',
};

/** What is typed, and what came of it when it was last run: that is in the address. */
function OneQuery({ kind, base, collection }: { kind: QueryKind; base: CollectionsPath; collection: Collection }) {
  const run = place.value.query.get('q');
  const first = run ?? FIRST[kind];
  const documents = below(base, '/{collection}/documents', { collection: collection.name });
  const [text, setText] = useDraft(`${documents} ${kind} query`, first);
  // The editor begins with a text, and is given another one where the address names another or a stage is added.
  const [shown, setShown] = useState(text);
  const seen = useRef(run);
  useEffect(() => {
    // What was typed before the page was loaded again stays.
    if (run === seen.current) return;
    seen.current = run;
    if (run === null || run === text) return;
    setText(run);
    setShown(run);
  }, [run]);
  const [turn, setTurn] = useState(0);
  const [isExplained, setExplained] = useState(false);
  const answer = useRun({ kind, documents, text: run, turn, isExplained });
  const start = (explain: boolean): void => {
    setExplained(explain);
    setTurn((n) => n + 1);
    goTo(linkHere({ q: text }));
  };
  const input = {
    collection,
    text,
    shown,
    isBusy: answer.isBusy,
    onText: setText,
    onRun: () => start(false),
    onExplain: () => start(true),
    onReplace(next: string) {
      setText(next);
      setShown(next);
    },
  };
  return (
    <>
      <div data-kept="">{kind === 'list' ? <ListInput {...input} /> : <PipelineInput {...input} />}</div>
      <p class="muted">Runs with the rights of a secret key. With a publishable key, access rules apply.</p>
      <CodeSamples kind={kind} name={collection.name} text={text} />
      <Results answer={answer} collection={collection} />
    </>
  );
}

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
function ListInput(props: InputProps) {
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
        <span class="hint">Such as {example(props.collection)}. One a line is fine, and so is a pasted URL.</span>
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
function PipelineInput(props: InputProps) {
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
  const { value, problem } = readJson(text);
  return problem ?? (Array.isArray(value) ? null : 'A pipeline is an array of stages.');
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

type QueryKind = 'list' | 'pipeline';

interface Answer {
  isBusy: boolean;
  rows: Record<string, unknown>[] | null;
  /** Documents that match on all pages, where a list says it. */
  total: number | null;
  /** How the query was read. */
  explained: ApiSchemas['ExplainedRead'] | null;
  error: Refusal | null;
  ms: number;
}

const NOTHING: Answer = { isBusy: false, rows: null, total: null, explained: null, error: null, ms: 0 };

/** Runs what the address asks for, again with each turn; a newer one ends the one before. */
function useRun({
  kind,
  documents,
  text,
  turn,
  isExplained,
}: {
  kind: QueryKind;
  documents: DocumentsPath;
  text: string | null;
  turn: number;
  isExplained: boolean;
}): Answer {
  const [answer, setAnswer] = useState(NOTHING);
  useEffect(() => {
    if (text === null) {
      setAnswer(NOTHING);
      return undefined;
    }
    const ending = new AbortController();
    setAnswer((last) => ({ ...last, isBusy: true, error: null }));
    const started = performance.now();
    const ask = isExplained ? explain : kind === 'list' ? readList : readPipeline;
    ask(documents, kind, text, ending.signal).then(
      (found) =>
        !ending.signal.aborted && setAnswer({ ...NOTHING, ...found, ms: Math.round(performance.now() - started) }),
      (error: unknown) => !ending.signal.aborted && setAnswer({ ...NOTHING, error: refusalOf(error) }),
    );
    return () => ending.abort();
  }, [documents, kind, text, turn]);
  return answer;
}

type Found = Partial<Answer>;

async function readList(documents: DocumentsPath, _kind: QueryKind, text: string, signal: AbortSignal): Promise<Found> {
  const data = await call('GET', withQuery(documents, new URLSearchParams(queryIn(text))), { signal });
  return 'count' in data ? { rows: [data] } : { rows: documentsIn(data), total: data.total };
}

async function readPipeline(
  documents: DocumentsPath,
  _kind: QueryKind,
  text: string,
  signal: AbortSignal,
): Promise<Found> {
  const body = { pipeline: JSON.parse(text) as Record<string, unknown>[] };
  return { rows: await call('POST', below(documents, '/aggregate'), { body, signal }) };
}

async function explain(documents: DocumentsPath, kind: QueryKind, text: string, signal: AbortSignal): Promise<Found> {
  const body = kind === 'list' ? { query: queryIn(text) } : { pipeline: JSON.parse(text) as unknown };
  return { explained: await call('POST', below(documents, '/explain'), { body, signal }) };
}

/** The query of what is typed or pasted: a whole address too, on one line or several. */
function queryIn(text: string): string {
  const line = text
    .split('\n')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .join('&');
  return line.replace(/^[^=]*\?/, '').replace(/&{2,}/g, '&');
}

/** The same query as an app, a script or a terminal asks it. */
function CodeSamples({ kind, name, text }: { kind: QueryKind; name: string; text: string }) {
  const samples = kind === 'list' ? listSamples(name, queryIn(text)) : pipelineSamples(name, text);
  return (
    <details class="commands">
      <summary>As code</summary>
      {samples.map(([label, code]) => (
        <div key={label} class="sample">
          <h2>
            {label} <Copy text={code} what={label} />
          </h2>
          <pre tabIndex={0} aria-label={label}>
            {code}
          </pre>
        </div>
      ))}
    </details>
  );
}

const ofProject = (): string => `--project ${quoteShell(project.value?.name ?? '')}`;

type Sample = readonly [label: string, code: string];

function listSamples(name: string, query: string): Sample[] {
  const address = addressOf(`/api/data/${encodeURIComponent(name)}${query === '' ? '' : `?${query}`}`);
  const named = [...new URLSearchParams(query)];
  const call = clientCall(name, named);
  const options = queryOptions(named);
  return [
    ['URL', address],
    ['curl', `curl -H "x-api-key: $KEY" ${quoteShell(address)}`],
    ...(call === null ? [] : [['Client', call] as const]),
    ...(options === null
      ? []
      : [['Command', `bsvc data query ${name} ${ofProject()}${options && ` ${options}`}`] as const]),
  ];
}

function pipelineSamples(name: string, text: string): Sample[] {
  const pipeline = compact(text);
  const address = addressOf(`/api/data/${encodeURIComponent(name)}/aggregate`);
  const body = quoteShell(`{"pipeline":${pipeline}}`);
  return [
    ['curl', `curl -H "x-api-key: $KEY" -H 'content-type: application/json' -d ${body} ${quoteShell(address)}`],
    ['Client', `const rows = await api.collection('${name}').aggregate(${text.trim()});`],
    ['Command', `bsvc data query ${name} --pipeline ${quoteShell(pipeline)} ${ofProject()}`],
  ];
}

function compact(text: string): string {
  const { value, problem } = readJson(text);
  return problem === null ? JSON.stringify(value) : text;
}

const MAX_COLUMNS = 40;
/** More are for a download: a page of them would not scroll. */
const MAX_ROWS = 200;
const NO_TITLES: ReadonlyMap<string, string> = new Map();

/** What came of a query: as a table or as JSON, or by which index it was read. */
function Results({ answer, collection }: { answer: Answer; collection: Collection }) {
  const [isJson, setJson] = useState(false);
  const { rows, total, explained, error, ms, isBusy } = answer;
  return (
    <section aria-label="Result" aria-busy={isBusy}>
      <ErrorNote error={error} />
      {explained && <Plan of={explained} />}
      {rows && (
        <>
          <div class="row centred">
            <span role="status">
              {howMany(rows.length, 'row')}
              {total !== null && total > rows.length && ` of ${number(total)}`} · {ms} ms
            </span>
            <button class="small" onClick={() => setJson(!isJson)}>
              {isJson ? 'As a table' : 'As JSON'}
            </button>
            <button class="small" disabled={rows.length === 0} onClick={() => download(rows, collection.name)}>
              Download
            </button>
          </div>
          {rows.length > MAX_ROWS && <p class="muted">The first {MAX_ROWS} are shown; the download has all.</p>}
          {isJson ? (
            <pre class="result" tabIndex={0} aria-label="Result as JSON">
              {JSON.stringify(rows.slice(0, MAX_ROWS), null, 2)}
            </pre>
          ) : (
            <RowTable rows={rows.slice(0, MAX_ROWS)} collection={collection} />
          )}
        </>
      )}
    </section>
  );
}

/** A row has no name of its own: its place is its key. */
interface PlacedRow {
  row: Record<string, unknown>;
  at: number;
}

function RowTable({ rows, collection }: { rows: readonly Record<string, unknown>[]; collection: Collection }) {
  const declared = new Map(collection.fields.map((field) => [field.name, field]));
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))].slice(0, MAX_COLUMNS);
  const fieldOf = (name: string): CollectionField =>
    declared.get(name) ?? { name, type: name === '_id' ? 'Ref' : 'any' };
  return (
    <Table<PlacedRow>
      label="Rows of the result"
      rows={rows.map((row, at) => ({ row, at }))}
      keyOf={({ at }) => String(at)}
      empty={<Empty title="Nothing matches" />}
      loading={false}
      columns={names.map((name) => ({
        name,
        ...(rows.some((row) => typeof row[name] === 'number') && { kind: 'number' as const }),
        show: ({ row }) => <CellValue field={fieldOf(name)} value={row[name]} titles={NO_TITLES} />,
      }))}
    />
  );
}

function Plan({ of: { indexes, examined, returned, plan } }: { of: NonNullable<Answer['explained']> }) {
  return (
    <>
      <p role="status" class={indexes.length === 0 ? 'warn' : 'good'}>
        {indexes.length === 0
          ? 'No index is used: every document is scanned.'
          : `Read by ${indexes.length === 1 ? 'the index' : 'the indexes'} ${indexes.join(', ')}.`}{' '}
        {howMany(examined, 'document')} examined for {number(returned)}.
      </p>
      <details>
        <summary>The plan</summary>
        <pre tabIndex={0}>{JSON.stringify(plan, null, 2)}</pre>
      </details>
    </>
  );
}

function download(rows: readonly object[], name: string): void {
  const url = URL.createObjectURL(new Blob([JSON.stringify(rows, null, 2)], { type: 'application/json' }));
  const link = Object.assign(document.createElement('a'), { href: url, download: `${name}.json` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

import { useEffect, useRef, useState } from 'preact/hooks';
import { below } from '../api-paths.js';
import { USERS, type Collection, type CollectionsPath } from '../collection.js';
import { useLoad } from '../load.js';
import { Trouble } from '../parts/basics.js';
import { loadEditor } from '../parts/json-editor.js';
import { Empty, PageHead } from '../parts/page-head.js';
import { goTo, linkHere, linkTo, place } from '../routes.js';
import { projectPath } from '../session.js';
import { useDraft } from '../use-draft.js';
import { CodeSamples } from './code-samples.js';
import { ListInput, PipelineInput } from './query-inputs.js';
import { Results } from './results.js';
import { useRun, type QueryKind } from './use-run.js';

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
          <label>
            <span class="hidden">Collection</span>
            <select
              value={collection?.name ?? ''}
              onChange={({ currentTarget: { value } }) => goTo(linkHere({ of: value, q: null }))}
            >
              {!collection && <option value="">Choose a collection</option>}
              {listed.map(({ name }) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
        )}
      </PageHead>
      <Trouble error={list.error} onRetry={list.reload} />
      {list.data && listed.length === 0 && (
        <Empty title="The project has no collection yet">
          <a href={linkTo(['p', id, 'collections'], { new: '1' })}>Make the first one</a>
        </Empty>
      )}
      {list.data && wanted !== null && !collection && <p class="empty">There is no collection {wanted}.</p>}
      {collection && (
        <>
          <nav class="tabs" aria-label="Kinds of queries">
            <KindTab kind="list" chosen={kind} label="List" />
            <KindTab kind="pipeline" chosen={kind} label="Pipeline" />
          </nav>
          <OneQuery key={`${collection.name} ${kind}`} kind={kind} base={base} collection={collection} />
        </>
      )}
    </>
  );
}

function KindTab({ kind, chosen, label }: { kind: QueryKind; chosen: QueryKind; label: string }) {
  return (
    <a
      href={linkHere({ as: kind === 'list' ? null : kind, q: null })}
      {...(kind === chosen && { 'aria-current': 'page' as const })}
    >
      {label}
    </a>
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
      <p class="muted">It runs as with a secret key. With a publishable key, rules narrow what comes.</p>
      <CodeSamples kind={kind} name={collection.name} text={text} />
      <Results answer={answer} collection={collection} />
    </>
  );
}

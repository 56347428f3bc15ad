import { useEffect, useState } from 'preact/hooks';
import { prepare, send } from '../api.js';
import type { Address, AskedOf, DataOf } from '../api-paths.js';
import type { ApiSchemas } from '../api-routes.js';
import { readJson } from '../json.js';
import { invalidate, useLoad } from '../load.js';
import { Dialog, say, ErrorNote, useAction } from '../parts/basics.js';
import { Commands } from '../parts/commands.js';
import { Confirm } from '../parts/confirm.js';
import { Tick } from '../parts/form.js';
import { JsonEditor, loadEditor } from '../parts/json-editor.js';
import { mayChange, project } from '../session.js';

type SchemaRoute = '/api/projects/{projectId}/schema';
type Schema = ApiSchemas['ProjectSchema'];
type Change = ApiSchemas['SchemaChange'];

/** All collections of a project as one file: what would change is shown before it is applied. */
export function SchemaDialog({ base, onClose }: { base: Address<SchemaRoute>; onClose: () => void }) {
  useEffect(() => void loadEditor(), []);
  const { data, error, reload } = useLoad(base);
  return (
    <Dialog title="Schema of the project" onClose={onClose} wide>
      <ErrorNote error={error} onRetry={reload} />
      {data && <Editor base={base} schema={data} onClose={onClose} />}
    </Dialog>
  );
}

function Editor({ base, schema, onClose }: { base: Address<SchemaRoute>; schema: Schema; onClose: () => void }) {
  const [first] = useState(() => JSON.stringify(schema, null, 2));
  const [text, setText] = useState(first);
  const [prune, setPrune] = useState(false);
  const [looked, setLooked] = useState<{ text: string; prune: boolean; changes: Change[] } | null>(null);
  const [confirming, setConfirming] = useState(false);
  const { value, problem } = readJson(text);
  const body = problem === null ? (value as Schema) : null;
  const name = project.value?.name ?? '';
  const applying = (options?: AskedOf<'PUT', SchemaRoute>['query']) =>
    // While the text is no JSON there is no button that sends it.
    prepare('PUT', base, { query: { ...options, prune: prune || null }, body: body ?? schema });
  const [looking, look, lookRefused] = useAction(async () => {
    setLooked({ text, prune, changes: (await send(applying({ dryRun: true }))).changes });
  });
  const onApplied = (answer: DataOf<'PUT', SchemaRoute>): void => {
    say(answer.changes.length === 0 ? 'Nothing to change' : 'Schema applied');
    onClose();
  };
  const [busy, applyNow, refused] = useAction(async () => {
    onApplied(await send(applying()));
    invalidate(base);
  });
  const changes = looked?.text === text && looked.prune === prune ? looked.changes : null;
  // Permanent deletions and more access require typing the project's name.
  const isRisky = prune || changes?.some(({ loosens }) => (loosens?.length ?? 0) > 0) === true;
  return (
    <>
      <JsonEditor text={first} label="Schema as JSON" isReadOnly={!mayChange.value} onChange={setText} />
      {problem !== null && <p class="bad">{problem}</p>}
      <ErrorNote error={lookRefused ?? refused} />
      {changes && <Changes changes={changes} />}
      {mayChange.value && (
        <p class="row">
          <Tick label="Delete what is not in the file" value={prune} onChange={setPrune} />
          <button disabled={looking || body === null} onClick={() => void look()}>
            See what would change
          </button>
          {changes && changes.length > 0 && (
            <button class="primary" disabled={busy} onClick={() => (isRisky ? setConfirming(true) : void applyNow())}>
              Apply
            </button>
          )}
        </p>
      )}
      <Commands of={() => [prepare('GET', base), ...(mayChange.value ? [applying()] : [])]} />
      {confirming && (
        <Confirm
          title="Apply the schema"
          text={
            prune
              ? 'Collections, fields and indexes that are not in the file are deleted permanently, with all documents of the collections.'
              : 'It loosens access or checks.'
          }
          name={name}
          request={applying({ confirm: name })}
          onClose={() => setConfirming(false)}
          onDone={onApplied}
        />
      )}
    </>
  );
}

function Changes({ changes }: { changes: readonly Change[] }) {
  return (
    <section role="status" aria-label="Preview of changes">
      {changes.length === 0 && <p>Nothing would change.</p>}
      <ul>
        {changes.map(({ action, name, what = [], loosens = [] }) => (
          <li key={name}>
            <b>
              {action} {name}
            </b>
            {what.length > 0 && `: ${what.join('; ')}`}
            {loosens.length > 0 && <span class="bad"> This loosens {loosens.join('; ')}.</span>}
          </li>
        ))}
      </ul>
    </section>
  );
}

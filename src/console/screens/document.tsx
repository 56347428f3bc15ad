import { useState } from 'preact/hooks';
import { api } from '../api.js';
import { moment } from '../format.js';
import { useLoad } from '../load.js';
import { Commands, Dialog, quote, say, tellRefusal, Trouble, useAction } from '../parts/basics.js';
import { findLostNumber, JsonEditor } from '../parts/json-editor.js';
import { mayChange, project } from '../session.js';

export interface StoredDocument {
  _id: string;
  isDeleted?: boolean;
  [field: string]: unknown;
}

/** Kept by the server: shown, never sent. */
const OF_SERVER = new Set(['_id', 'isDeleted', 'deletedAt', 'createdAt', 'updatedAt']);

interface Props {
  base: string;
  /** `new` for one that is not stored yet. */
  id: string;
  collection: string;
  onClose: () => void;
  onChange: () => void;
}

export function DocumentDialog({ base, id, collection, onClose, onChange }: Props) {
  const isNew = id === 'new';
  const { data, error, reload } = useLoad<StoredDocument>(isNew ? null : `${base}/${id}`);
  return (
    <Dialog title={isNew ? `New document of ${collection}` : `${collection} ${id}`} onClose={onClose} wide>
      <Trouble error={error} onRetry={reload} />
      {isNew && <Editor base={base} stored={null} collection={collection} onClose={onClose} onChange={onChange} />}
      {data && <Editor base={base} stored={data} collection={collection} onClose={onClose} onChange={onChange} />}
    </Dialog>
  );
}

function fieldsOf(document: StoredDocument | null): Record<string, unknown> {
  return Object.fromEntries(Object.entries(document ?? {}).filter(([name]) => !OF_SERVER.has(name)));
}

function Editor({
  base,
  stored,
  collection,
  onClose,
  onChange,
}: Omit<Props, 'id'> & { stored: StoredDocument | null }) {
  const [first] = useState(() => JSON.stringify(fieldsOf(stored), null, 2));
  const [text, setText] = useState(first);
  const read = parse(text);
  const change = stored && read.fields ? differences(fieldsOf(stored), read.fields) : read.fields;
  const lost = findLostNumber(text);
  const [busy, save, error] = useAction(async () => {
    if (!change) return;
    if (stored) await api('PATCH', `${base}/${stored._id}`, change);
    else await api('POST', base, change);
    say(stored ? 'Document changed' : 'Document stored');
    onChange();
    onClose();
  });
  const isTrashed = stored?.isDeleted === true;
  const mayEdit = mayChange.value && !isTrashed;
  const isSame = stored !== null && change !== null && Object.keys(change).length === 0;
  const named = quote(project.value?.name ?? '');
  const id = stored?._id ?? '';
  const act = async (recover: boolean): Promise<void> => {
    try {
      await api(recover ? 'POST' : 'DELETE', `${base}/${id}${recover ? '/recover' : ''}`);
      say(recover ? 'Document taken back' : 'Document moved to the trash', { undo: () => void act(!recover) });
      onChange();
      onClose();
    } catch (refusal) {
      tellRefusal(refusal);
    }
  };
  return (
    <>
      {stored && (
        <p class="muted">
          Created {moment(stored.createdAt as string)}, changed {moment(stored.updatedAt as string)}
          {isTrashed && ', in the trash'}
        </p>
      )}
      <JsonEditor text={first} label="Document as JSON" isReadOnly={!mayEdit} onChange={setText} />
      {read.problem && <p class="bad">{read.problem}</p>}
      {lost && <p class="bad">{lost} has more digits than a number of JSON keeps: write it as a text.</p>}
      <Trouble error={error} />
      {mayChange.value && (
        <p class="row">
          {mayEdit && (
            <button
              class="primary"
              disabled={busy || !read.fields || lost !== null || isSame}
              onClick={() => void save()}
            >
              {stored ? 'Save' : 'Insert'}
            </button>
          )}
          {stored && (
            <button onClick={() => void act(isTrashed)}>{isTrashed ? 'Take back' : 'Move to the trash'}</button>
          )}
        </p>
      )}
      {stored ? (
        isSame || !change ? (
          <Commands cli={`bsvc data get ${collection} ${id} --project ${named}`} path={`${base}/${id}`} />
        ) : (
          <Commands
            cli={`bsvc data change ${collection} ${id} ${quote(JSON.stringify(change))} --project ${named}`}
            method="PATCH"
            path={`${base}/${id}`}
            body={change}
          />
        )
      ) : (
        <Commands
          cli={`bsvc data insert ${collection} ${quote(JSON.stringify(read.fields ?? {}))} --project ${named}`}
          method="POST"
          path={base}
          body={read.fields ?? {}}
        />
      )}
    </>
  );
}

function parse(text: string): { fields: Record<string, unknown> | null; problem: string | null } {
  try {
    const value = JSON.parse(text) as unknown;
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      return { fields: null, problem: 'A document is a JSON object.' };
    return { fields: value as Record<string, unknown>, problem: null };
  } catch (error) {
    return { fields: null, problem: `This is not JSON: ${(error as Error).message}` };
  }
}

/** Only what was changed is sent, so that others' changes to other fields stay; a field that was taken out becomes null. */
function differences(before: Record<string, unknown>, after: Record<string, unknown>): Record<string, unknown> {
  const changed = Object.entries(after).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]),
  );
  const gone = Object.keys(before).filter((name) => !Object.hasOwn(after, name));
  return Object.fromEntries([...changed, ...gone.map((name) => [name, null] as const)]);
}

import { useEffect, useState } from 'preact/hooks';
import { api, Refusal } from '../api.js';
import { noteDraft, takeDraft } from '../drafts.js';
import { moment } from '../format.js';
import { useLoad } from '../load.js';
import { Commands, Dialog, quote, say, tellRefusal, Trouble, useAction } from '../parts/basics.js';
import { findLostNumber, JsonEditor } from '../parts/json-editor.js';
import { mayChange, project } from '../session.js';
import { Conflict } from './conflict.js';
import { differences, fieldsOf, type ShownFields } from './document-fields.js';

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
  const { data, error, reload } = useLoad<ShownFields>(isNew ? null : `${base}/${id}`);
  return (
    <Dialog title={isNew ? `New document of ${collection}` : `${collection} ${id}`} onClose={onClose} wide>
      <Trouble error={error} onRetry={reload} />
      {isNew && <Editor base={base} stored={null} collection={collection} onClose={onClose} onChange={onChange} />}
      {data && <Editor base={base} stored={data} collection={collection} onClose={onClose} onChange={onChange} />}
    </Dialog>
  );
}

function Editor({
  base,
  stored: loaded,
  collection,
  onClose,
  onChange,
}: Omit<Props, 'id'> & { stored: ShownFields | null }) {
  const draftName = `${base}/${loaded?._id ?? 'new'}`;
  // What was typed before the page was loaded anew belongs to the document as it was then.
  const [draft] = useState(() => takeDraft<Draft>(draftName));
  const [stored, setStored] = useState(draft?.stored ?? loaded);
  const [first, setFirst] = useState(() => draft?.text ?? write(stored));
  const [text, setText] = useState(first);
  const [theirs, setTheirs] = useState<ShownFields | null>(null);
  useEffect(() => {
    noteDraft(draftName, text === write(stored) ? undefined : ({ text, stored } satisfies Draft));
    return () => noteDraft(draftName, undefined);
  }, [draftName, text, stored]);
  const read = parse(text);
  const change = stored && read.fields ? differences(fieldsOf(stored), read.fields) : read.fields;
  const lost = findLostNumber(text);
  const [busy, save, error] = useAction(async () => {
    if (!change) return;
    if (stored) {
      const known = String((theirs ?? stored).updatedAt);
      try {
        await api('PATCH', `${base}/${stored._id}`, change, { headers: { 'if-match': `"${known}"` } });
      } catch (refusal) {
        if (!(refusal instanceof Refusal) || refusal.code !== 'CHANGED_MEANWHILE') throw refusal;
        setTheirs(await api<ShownFields>('GET', `${base}/${stored._id}`));
        return;
      }
    } else await api('POST', base, change);
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
      {stored && theirs && change && (
        <Conflict
          stored={stored}
          theirs={theirs}
          mine={change}
          busy={busy || !read.fields || lost !== null}
          onKeep={() => void save()}
          onTake={() => {
            setStored(theirs);
            setFirst(write(theirs));
            setText(write(theirs));
            setTheirs(null);
          }}
        />
      )}
      {mayChange.value && !theirs && (
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
            cli={`bsvc data change ${collection} ${id} ${quote(JSON.stringify(change))} --if-match ${String(stored.updatedAt)} --project ${named}`}
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

/** What is being typed, and the document that it began with. */
interface Draft {
  text: string;
  stored: ShownFields | null;
}

const write = (document: ShownFields | null): string => JSON.stringify(fieldsOf(document), null, 2);

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

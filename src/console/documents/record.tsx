import { useEffect, useMemo, useState } from 'preact/hooks';
import { api, Refusal } from '../api.js';
import { noteDraft, takeDraft } from '../drafts.js';
import { moment } from '../format.js';
import { useLoad } from '../load.js';
import { Dialog, say, tellRefusal, Trouble, useAction } from '../parts/basics.js';
import { type CommandLine, CommandList, ofProject, quote } from '../parts/commands.js';
import { findLostNumber, JsonEditor, loadEditor } from '../parts/json-editor.js';
import { goTo, linkHere, linkTo, place } from '../routes.js';
import { mayChange } from '../session.js';
import { Conflict } from './conflict.js';
import { differences, fieldsOf, type ShownFields } from './document-fields.js';

interface Props {
  base: string;
  /** `new` for one that is not stored yet. */
  id: string;
  collection: string;
  /** Fields that name documents of other collections, as far as it is known. */
  refs: readonly Ref[];
  onClose: () => void;
  onChange: () => void;
}

interface Ref {
  name: string;
  ref: string;
}

export function DocumentDialog({ base, id, ...rest }: Props) {
  const isNew = id === 'new';
  const { collection, onClose } = rest;
  // Beside the document, not behind it.
  useEffect(() => void loadEditor(), []);
  const { data, error, reload } = useLoad<ShownFields>(isNew ? null : `${base}/${id}`);
  return (
    <Dialog title={isNew ? `New document of ${collection}` : `${collection} ${id}`} onClose={onClose} wide>
      <Trouble error={error} onRetry={reload} />
      {isNew && <Editor base={base} stored={null} {...rest} />}
      {data && <Editor base={base} stored={data} {...rest} />}
    </Dialog>
  );
}

function Editor({
  base,
  stored: loaded,
  collection,
  refs,
  onClose,
  onChange,
}: Omit<Props, 'id'> & { stored: ShownFields | null }) {
  const draftName = `${base}/${loaded?._id ?? 'new'}`;
  // What was typed before the page was loaded anew belongs to the document as it was then.
  const [draft] = useState(() => takeDraft<Draft>(draftName));
  const [stored, setStored] = useState(draft?.stored ?? loaded);
  const written = useMemo(() => write(stored), [stored]);
  const [first, setFirst] = useState(draft?.text ?? written);
  const [text, setText] = useState(first);
  const [theirs, setTheirs] = useState<ShownFields | null>(null);
  useEffect(() => {
    noteDraft(draftName, text === written ? undefined : ({ text, stored } satisfies Draft));
    return () => noteDraft(draftName, undefined);
  }, [draftName, text, written, stored]);
  // A large document is not taken apart before somebody types.
  const { read, change, lost } = useMemo(() => {
    if (stored && text === written) return { read: { fields: {}, problem: null }, change: {}, lost: null };
    const read = parse(text);
    const change = stored && read.fields ? differences(fieldsOf(stored), read.fields) : read.fields;
    return { read, change, lost: findLostNumber(text) };
  }, [text, written, stored]);
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
    } else {
      await api('POST', base, change);
    }
    say(stored ? 'Document changed' : 'Document stored');
    onChange();
    onClose();
  });
  const isTrashed = stored?.isDeleted === true;
  const mayEdit = mayChange.value && !isTrashed;
  const isSame = stored !== null && change !== null && Object.keys(change).length === 0;
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
  const duplicate = (): void => {
    noteDraft(`${base}/new`, { text: written, stored: null } satisfies Draft);
    goTo(linkHere({ open: 'new' }));
  };
  const commands = (): CommandLine[] => {
    const words = (command: string): string => `bsvc data ${command} ${collection} ${id} ${ofProject()}`;
    const path = `${base}/${id}`;
    const fields = read.fields ?? {};
    if (!stored) {
      const cli = `bsvc data insert ${collection} ${quote(JSON.stringify(fields))} ${ofProject()}`;
      return [{ cli, method: 'POST', path: base, body: fields }];
    }
    const known = String(stored.updatedAt);
    const act: CommandLine = isTrashed
      ? { name: 'Take back', cli: words('recover'), method: 'POST', path: `${path}/recover` }
      : { name: 'Move to the trash', cli: words('trash'), method: 'DELETE', path };
    if (isSame || !change) return [{ name: 'Show', cli: words('get'), path }, act];
    return [
      {
        name: 'Save',
        cli: `bsvc data change ${collection} ${id} ${quote(JSON.stringify(change))} --if-match ${known} ${ofProject()}`,
        method: 'PATCH',
        path,
        body: change,
        headers: { 'if-match': `"${known}"` },
      },
      act,
    ];
  };
  return (
    <>
      {stored && (
        <p class="muted">
          Created {moment(stored.createdAt as string)}, changed {moment(stored.updatedAt as string)}
          {isTrashed && ', in the trash'}
        </p>
      )}
      {stored && <Refs document={stored} refs={refs} />}
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
          {stored && <button onClick={duplicate}>Duplicate…</button>}
        </p>
      )}
      <CommandList lines={commands} />
    </>
  );
}

/** Links to the documents that a document names. */
function Refs({ document, refs }: { document: ShownFields; refs: readonly Ref[] }) {
  const [, project = ''] = place.value.parts;
  const links = refs.flatMap(({ name, ref }) =>
    [document[name]].flat().flatMap((id) => (typeof id === 'string' ? [{ name, ref, id }] : [])),
  );
  if (links.length === 0) return null;
  return (
    <p class="row">
      {links.map(({ name, ref, id }) => (
        <a
          key={`${name} ${id}`}
          href={
            ref === 'users'
              ? linkTo(['p', project, ref], { open: id })
              : linkTo(['p', project, 'documents', ref], { open: id })
          }
        >
          {name}: {ref} {id}
        </a>
      ))}
    </p>
  );
}

/** The text being typed, and the document that it began with. */
interface Draft {
  text: string;
  stored: ShownFields | null;
}

const write = (document: ShownFields | null): string => JSON.stringify(fieldsOf(document), null, 2);

function parse(text: string): { fields: Record<string, unknown> | null; problem: string | null } {
  try {
    const value = JSON.parse(text) as unknown;
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      return { fields: null, problem: 'A document is a JSON object.' };
    }
    return { fields: value as Record<string, unknown>, problem: null };
  } catch (error) {
    return { fields: null, problem: `This is not JSON: ${(error as Error).message}` };
  }
}
